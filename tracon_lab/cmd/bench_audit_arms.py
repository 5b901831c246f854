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

"""Two audits of one synthetic cloud: by this strategy, and by Watcher's own consolidation.

Both are Watcher's strategies as its decision engine runs them, on the same model of the cluster.
What a service would answer over the network is answered from memory: Nova, Placement and Neutron
for the one, Gnocchi for the other. Neither waits for a service, so both times are their own work.
"""

from __future__ import annotations

import contextlib
import datetime
import time
from typing import Any, Callable, Iterator
from unittest import mock

import numpy as np
from watcher.common import utils
from watcher.decision_engine.datasources import gnocchi
from watcher.decision_engine.model import element
from watcher.decision_engine.model import model_root
from watcher.decision_engine.strategy.strategies import vm_workload_consolidation

from tracon_lab.cmd import bench_audit_cloud
from tracon_lab.cmd import bench_child
from tracon_watcher.decision_engine import constraints_builder
from tracon_watcher.decision_engine import inventory
from tracon_watcher.decision_engine import reconcile
from tracon_watcher.decision_engine import records
from tracon_watcher.decision_engine import strategy
from tracon_watcher.placement import planner
from tracon_watcher.placement import snapshot

#: The parts of an audit of ours that are timed by themselves: what is called, and what it does.
_PARTS = ((snapshot, 'read', 'reading the snapshot'),
          (inventory, 'collect', "reading the services' answers"),
          (reconcile, 'reconcile', "reconciling with Watcher's model"),
          (constraints_builder, 'build', 'collecting what forbids moves'),
          (planner, 'plan_moves', 'planning'))


def watcher_model(cloud: bench_audit_cloud.Cloud) -> model_root.ModelRoot:
    """Return the cloud as Watcher's collector would have it."""
    model = model_root.ModelRoot()
    for index, name in enumerate(cloud.state.hosts):
        model.add_node(element.ComputeNode(
            uuid=bench_audit_cloud.node_uuid(index), hostname=name, state='up',
            status='enabled', disabled_reason=None, memory=cloud.memory, memory_mb_reserved=0,
            memory_ratio=1.0, disk=cloud.disk, disk_gb_reserved=0, disk_ratio=1.0,
            vcpus=cloud.vcpus, vcpu_reserved=0, vcpu_ratio=float(bench_audit_cloud.OVERCOMMIT)))
    nodes = {node.hostname: node for node in model.get_all_compute_nodes().values()}
    for vm in cloud.vms:
        instance = element.Instance(
            uuid=vm.uuid, name=f'vm-{vm.uuid[:8]}', state='active', memory=vm.memory,
            disk=vm.disk, vcpus=vm.vcpus, locked=vm.locked, metadata={}, watcher_exclude=False)
        model.add_instance(instance)
        model.map_instance(instance, nodes[vm.host])
    return model


class Ours(strategy.InterferenceStrategy):
    """This strategy, with the services in memory."""

    def __init__(self, model: model_root.ModelRoot, connection: bench_audit_cloud.Connection,
                 given: dict[str, Any]) -> None:
        super().__init__(None)
        self._compute_model = model
        self._connection = connection
        self.input_parameters = utils.Struct(given)

    def _connect(self) -> Any:
        return self._connection

    def _records(self, since: float) -> records.Records:
        return records.Records()


def ours(cloud: bench_audit_cloud.Cloud, model: model_root.ModelRoot, snapshot_file: str,
         migrations: int, wait: float = 0.0) -> bench_child.Work:
    """Return an audit by this strategy, ready to run.

    :param migrations: in the plan at most
    :param wait: seconds at each request
    """
    connection = bench_audit_cloud.Connection(cloud, wait)
    audit = Ours(model, connection, {'snapshot_file': snapshot_file,
                                     'max_migrations': migrations})

    def run(report: Callable[[float], None]) -> dict[str, Any]:
        seconds: dict[str, float] = {}
        with contextlib.ExitStack() as stack:
            for number, (module, name, what) in enumerate(_PARTS):
                stack.enter_context(_timed(module, name, what, seconds,
                                           lambda number=number: report(number / len(_PARTS))))
            solution = audit.execute()
        return {'parts': seconds, 'requests': connection.compute.requests,
                'migrations': len(solution.actions)}
    return run


@contextlib.contextmanager
def _timed(module: Any, name: str, what: str, seconds: dict[str, float],
           begun: Callable[[], None]) -> Iterator[None]:
    function = getattr(module, name)

    def call(*arguments: Any, **named: Any) -> Any:
        begun()
        start = time.perf_counter()
        try:
            return function(*arguments, **named)
        finally:
            seconds[what] = seconds.get(what, 0.0) + time.perf_counter() - start

    with mock.patch.object(module, name, call):
        yield


class Gnocchi:
    """Stands where gnocchiclient does, with the utilisation that the snapshot tells of as well."""

    def __init__(self, cloud: bench_audit_cloud.Cloud, wait: float) -> None:
        self.requests = 0
        self.report: Callable[[float], None] = lambda share: None
        self._expected = 3 * len(cloud.vms)
        self._wait = wait
        self.metric = self.resource = self
        state = cloud.state
        cores = cloud.cores
        self._at = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
        self._values: dict[tuple[str, str], float] = {}
        for vm, busy in zip(cloud.vms, cores):
            self._values[vm.uuid, 'cpu'] = busy * 1e9
            self._values[vm.uuid, 'memory.resident'] = 0.8 * vm.memory
            self._values[vm.uuid, 'disk.root.size'] = vm.disk
        used = np.bincount(state.host, cores, len(state.hosts))
        memory = np.bincount(state.host, [vm.memory for vm in cloud.vms], len(state.hosts))
        for name, busy, resident in zip(state.hosts, used, memory):
            node = f'{name}_{name}'
            self._values[node, 'compute.node.cpu.percent'] = 100 * busy / cloud.vcpus
            self._values[node, 'hardware.memory.used'] = 0.8 * 1024 * resident

    def search(self, query: Any, limit: int) -> list[dict[str, str]]:
        """Find a resource: its id is its original one here."""
        self._count()
        return [{'id': query['=']['original_resource_id']}]

    def get_measures(self, metric: str, resource_id: str, granularity: int,
                     **_when: Any) -> list[tuple[datetime.datetime, float, float]]:
        """Return one measure."""
        self._count()
        value = self._values[resource_id, metric]
        return [(self._at, granularity, value * granularity if metric == 'cpu' else value)]

    def _count(self) -> None:
        self.requests += 1
        if self._wait:
            time.sleep(self._wait)
        if self.requests % 100 == 0:
            # All data is asked for in the first phases; how long the rest takes is unknown.
            self.report(0.9 * min(self.requests / self._expected, 1.0))


class _Config:
    datasources = None


class Reference(vm_workload_consolidation.VMWorkloadConsolidation):
    """Watcher's own, with Gnocchi in memory."""

    def __init__(self, model: model_root.ModelRoot, client: Gnocchi) -> None:
        super().__init__(_Config())
        self._compute_model = model
        self._datasource_backend = gnocchi.GnocchiHelper(
            mock.Mock(gnocchi=mock.Mock(return_value=client)))
        self.input_parameters = utils.Struct({'period': 3600, 'granularity': 300})


def reference(cloud: bench_audit_cloud.Cloud, model: model_root.ModelRoot,
              wait: float = 0.0) -> bench_child.Work:
    """Return an audit by Watcher's vm_workload_consolidation, ready to run.

    :param wait: seconds at each request
    """
    client = Gnocchi(cloud, wait)
    audit = Reference(model, client)

    def run(report: Callable[[float], None]) -> dict[str, Any]:
        client.report = report
        audit.execute()
        return {'requests': client.requests, 'migrations': audit.number_of_migrations}
    return run
