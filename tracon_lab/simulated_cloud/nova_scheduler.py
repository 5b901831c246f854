# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.
"""Real weighers of Nova over simulated hosts, with this extension's judgement or without it."""

from __future__ import annotations

import dataclasses
import json
import logging
from typing import Any, Sequence, TextIO
import uuid

import nova.conf
from nova import objects
from nova.objects import monitor_metric
from nova.scheduler import host_manager
from nova.scheduler import weights
import numpy as np

from nova_filters import decision_record
from nova_filters import interference_weigher
from nova_filters import policy
from nova_filters import reassessment
from nova_filters import request_assessor
from tracon_lab.simulated_cloud import demand
from tracon_lab.simulated_cloud import proxlb_rule
from tracon_lab.simulated_cloud import watcher_audit
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.messaging import protocol
from tracon_watcher.placement import limits
from tracon_watcher.placement import snapshot

#: Memory of a vCPU; hosts have as much of it as of vCPUs.
_MEMORY_MB = 4096
_SILENT = logging.getLogger('tracon_lab.simulated_cloud.nova')
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False
_SILENT.setLevel(logging.CRITICAL)


#: Of Nova's thirteen, those that decide between hosts that differ in their CPU, memory and CPU use
#: alone. To the others such hosts are equal, or they are off.
WEIGHERS = [f'nova.scheduler.weights.{name}' for name in (
    'cpu.CPUWeigher', 'ram.RAMWeigher', 'metrics.MetricsWeigher')]
#: Audits that migrate VMs: this extension's, Watcher's, and ProxLB's.
OWN, STABILIZATION, PROXLB = 'tracon-watcher', 'workload_stabilization', 'ProxLB'
AUDITS = {STABILIZATION: watcher_audit.audit, PROXLB: proxlb_rule.audit}


@dataclasses.dataclass(frozen=True)
class Arm:
    """One way to run a cloud.

    :ivar multipliers: of Nova's weighers of CPU and memory: 1 spreads VMs, -1 packs them
    :ivar by_use: whether Nova's MetricsWeigher prefers hosts whose CPU is used less
    :ivar mode: of this extension in nova-scheduler; None: it is not there
    :ivar audits: which ones migrate VMs: :data:`OWN`, this extension's, or a key of
        :data:`AUDITS`; None: there are none
    :ivar oracle: whether VMs are placed by what they and all others will use until they leave
    """

    multipliers: float = 1.0
    by_use: bool = False
    mode: str | None = None
    audits: str | None = None
    oracle: bool = False

    @property
    def judged(self) -> bool:
        """Whether telemetry is needed."""
        return self.mode is not None or self.audits == OWN


#: By the name that the table has.
ARMS = {
    'stock Nova': Arm(),
    'packing': Arm(multipliers=-1.0),
    'least CPU use': Arm(by_use=True),
    STABILIZATION: Arm(audits=STABILIZATION),
    PROXLB: Arm(audits=PROXLB),
    'weigh': Arm(mode='weigh'),
    'weigh and refuse': Arm(mode='enforce'),
    'audits': Arm(audits=OWN),
    'weigh and audits': Arm(mode='weigh', audits=OWN),
    'all': Arm(mode='enforce', audits=OWN),
    'oracle': Arm(oracle=True),
}


class Scheduler:
    """Chooses hosts.

    :param names: of the hosts
    :param cores: of each
    :param ratio: vCPUs that a host takes for each core
    :param limit: slowdown that every VM tolerates
    """

    def __init__(self, arm: Arm, names: Sequence[str], cores: int, ratio: float,
                 limit: float) -> None:
        conf = nova.conf.CONF
        conf([], project='nova', default_config_files=[])
        objects.register_all()
        group = 'filter_scheduler'
        for weigher in ('cpu', 'ram'):
            conf.set_override(f'{weigher}_weight_multiplier', arm.multipliers, group=group)
        conf.set_override('weight_setting', ['cpu.percent=-1.0'] if arm.by_use else [],
                          group='metrics')
        # More than CPU and memory together.
        conf.set_override('weight_multiplier', 10.0, group='metrics')
        self._handler = weights.HostWeightHandler()
        self._weighers = [cls() for cls in self._handler.get_matching_classes(WEIGHERS)]
        self.now = 0.0
        self._assessor: request_assessor.RequestAssessor | None = None
        self._chosen: str | None = None
        if arm.mode is not None:
            self._assessor = request_assessor.RequestAssessor(
                policy.Options('', mode=arm.mode, limits=limits.Limits(max_slowdown=limit),
                               on_all_refused='refuse', snapshot_refresh_seconds=1e9,
                               initial_wait_seconds=0.0),
                _SILENT, clock=lambda: self.now)
            # It answers the same without preparing for requests, of which there are few here.
            self._assessor.snapshots._ready = lambda prepared: None
            # So it starts no thread: its background work is done after each request, so that a
            # day is the same again.
            self._assessor.close()
            weigher = interference_weigher.InterferenceWeigher()
            weigher._worker = self
            self._weighers.append(weigher)
        self._capacity = ratio * cores
        self.states = [_host_state(name, index, cores, ratio) for index, name in enumerate(names)]
        self._instance = objects.Instance(uuid=demand.vm_uuid(0))
        self.used(np.zeros(len(names)))

    def judge(self) -> request_assessor.RequestAssessor:
        """Return what judges, as the weigher asks for it."""
        assert self._assessor is not None
        return self._assessor

    def record(self, stream: TextIO) -> None:
        """Write each decision from now on, a JSON document a line."""
        def post(method: str, document: dict[str, Any]) -> None:
            if method == protocol.RECORD_DECISIONS:
                stream.write(json.dumps({**document, 'chosen': self._chosen}) + '\n')

        assert self._assessor is not None
        self._assessor._decisions = decision_record.DecisionQueue(post, self._assessor.faults)

    def take(self, content: snapshot.Snapshot) -> None:
        """Judge by a snapshot from now on."""
        if self._assessor is not None:
            self._assessor._cache = reassessment.AssessmentCache()
            self._assessor.snapshots.take(content, 'the simulation')

    def used(self, share: FloatArray) -> None:
        """Tell Nova how much of its CPU each host uses, (hosts,)."""
        for state, one in zip(self.states, share):
            state.metrics = objects.MonitorMetricList(objects=[
                monitor_metric.MonitorMetric(name='cpu.percent', value=int(round(100 * one)))])

    def choose(self, number: int, vcpus: int, project: int,
               candidates: Sequence[int]) -> int | None:
        """Place a VM.

        :param candidates: hosts that Placement names, in its order
        :returns: index of its host; None: there is none
        """
        room = [self.states[one] for one in candidates
                if self.states[one].vcpus_used + vcpus <= self._capacity]
        request = _request(number, vcpus, project)
        if self._assessor is not None and room:
            room = self._assessor.passing(room, request)
        weighed = self._handler.get_weighed_objects(self._weighers, room, request)
        if self._assessor is not None:
            self._chosen = weighed[0].obj.host if room else None
            self._assessor._tell_engine()
        if not room:
            return None
        state = weighed[0].obj
        state.consume_from_request(request)
        # It is built before the next one is asked for.
        state.num_io_ops = 0
        state.instances[demand.vm_uuid(number)] = self._instance
        if self._assessor is not None:
            self._assessor._work()
            # The request has ended; when Python forgets it is another matter.
            self._assessor.pending.unexpected(request.instance_uuid)
            self._assessor._choices._open.clear()
        return int(state.index)

    def move(self, number: int, vcpus: int, source: int | None, destination: int | None) -> None:
        """Take a VM from its host, and put it onto another (None: from nowhere, to nowhere)."""
        for host, sign in ((source, -1), (destination, 1)):
            if host is None:
                continue
            state = self.states[host]
            state.vcpus_used += sign * vcpus
            state.free_ram_mb -= sign * vcpus * _MEMORY_MB
            state.num_instances += sign
            if sign > 0:
                state.instances[demand.vm_uuid(number)] = self._instance
            else:
                state.instances.pop(demand.vm_uuid(number), None)

    def free(self) -> list[float]:
        """Return how many vCPUs each host still takes."""
        return [self._capacity - state.vcpus_used for state in self.states]


def _host_state(name: str, index: int, cores: int, ratio: float) -> Any:
    memory = int(ratio * cores * _MEMORY_MB)
    state = host_manager.HostState(name, name, None)
    state.update(
        objects.ComputeNode(
            uuid=str(uuid.UUID(int=index, version=4)), host=name, hypervisor_hostname=name,
            memory_mb=memory, memory_mb_used=0, free_ram_mb=memory, local_gb=10 ** 6,
            local_gb_used=0, free_disk_gb=10 ** 6, disk_available_least=None, vcpus=cores,
            vcpus_used=0, updated_at=None, numa_topology=None, pci_device_pools=None,
            host_ip=None, hypervisor_type='QEMU', hypervisor_version=8002000, cpu_info='',
            supported_hv_specs=[], stats={'num_instances': '0'}, metrics=None,
            cpu_allocation_ratio=ratio, ram_allocation_ratio=1.0, disk_allocation_ratio=1.0),
        {'host': name}, [], {})
    state.index = index
    return state


def _request(number: int, vcpus: int, project: int) -> objects.RequestSpec:
    return objects.RequestSpec(
        instance_uuid=demand.vm_uuid(number), project_id=f'project-{project}', num_instances=1,
        flavor=objects.Flavor(name=demand.flavor(vcpus), vcpus=vcpus, memory_mb=vcpus * _MEMORY_MB,
                              root_gb=0, ephemeral_gb=0, swap=0, extra_specs={}),
        image=objects.ImageMeta(id=demand.IMAGE), instance_group=None, requested_destination=None,
        scheduler_hints={}, ignore_hosts=None, force_hosts=None, force_nodes=None,
        pci_requests=None, numa_topology=None, is_bfv=False)


def order(rng: np.random.Generator, hosts: int, most: int) -> list[int]:
    """Return the hosts that Placement names: some at random, as it is told to."""
    return list(rng.permutation(hosts)[:most])
