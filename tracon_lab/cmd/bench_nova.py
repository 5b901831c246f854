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

"""Nova's side of ``tracon bench placement``: real HostStates, handlers and weighers."""

from __future__ import annotations

import logging
import pathlib
import time
import uuid

import nova.conf
from nova import objects
from nova.scheduler import filters
from nova.scheduler import host_manager
from nova.scheduler import weights

from nova_filters import assumed_placements
from nova_filters import interference_filter
from nova_filters import interference_weigher
from nova_filters import reassessment
from tracon_watcher.conf import nova_filters as conf_module
from tracon_watcher import errors
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer_profiles

_INITIAL_WAIT = 30.0


def configure(snapshot_file: pathlib.Path) -> None:
    """Set the options as nova.conf would."""
    conf = nova.conf.CONF
    conf([], project='nova', default_config_files=[])
    # As a scheduler logs without debug; the records are made, and written nowhere.
    for name in ('nova', 'nova_filters'):
        log = logging.getLogger(name)
        log.setLevel(logging.INFO)
        log.propagate = False
        log.addHandler(logging.NullHandler())
    conf_module.register_opts(conf)
    for name, value in (('snapshot_file', str(snapshot_file)), ('mode', 'enforce'),
                        ('initial_wait_seconds', _INITIAL_WAIT), ('pending_directory', '')):
        conf.set_override(name, value, group='tracon')
    objects.register_all()


def host_states(cluster: cluster_module.ClusterState) -> list[host_manager.HostState]:
    """Return a HostState for each host, filled as Nova's host manager fills it."""
    # One for all: the weighers look at the keys only.
    instance = objects.Instance(uuid=str(uuid.uuid4()))
    states = []
    for index, name in enumerate(cluster.hosts):
        uuids = cluster.uuids[cluster.first[index]:cluster.first[index + 1]]
        count = len(uuids)
        state = host_manager.HostState(name, name, None)
        state.update(
            objects.ComputeNode(
                uuid=str(uuid.UUID(int=index, version=4)), host=name, hypervisor_hostname=name,
                memory_mb=262144, memory_mb_used=4096 * count, free_ram_mb=262144 - 4096 * count,
                local_gb=4000, local_gb_used=40 * count, free_disk_gb=4000 - 40 * count,
                disk_available_least=None, vcpus=64, vcpus_used=2 * count, updated_at=None,
                numa_topology=None, pci_device_pools=None, host_ip=None, hypervisor_type='QEMU',
                hypervisor_version=8002000, cpu_info='', supported_hv_specs=[],
                stats={'num_instances': str(count)}, metrics=None, cpu_allocation_ratio=4.0,
                ram_allocation_ratio=1.0, disk_allocation_ratio=1.0),
            {'host': name}, [], dict.fromkeys(uuids, instance))
        states.append(state)
    return states


def renew(states: list[host_manager.HostState]) -> None:
    """Make again what Nova makes again for each request, and what is compared."""
    for state in states:
        state.nodename = ''.join(list(state.nodename))


def request_spec() -> objects.RequestSpec:
    """Return the request for one new VM with limits."""
    return objects.RequestSpec(
        instance_uuid=str(uuid.uuid4()), project_id='project', num_instances=1,
        flavor=objects.Flavor(name='synthetic', vcpus=2, memory_mb=4096, root_gb=40,
                              ephemeral_gb=0, swap=0,
                              extra_specs={limits_module.MAX_SLOWDOWN: '20'}),
        image=None, instance_group=None, requested_destination=None, scheduler_hints={},
        ignore_hosts=None, force_hosts=None, force_nodes=None, pci_requests=None,
        numa_topology=None)


class Stock:
    """Nova's own weighers."""

    def __init__(self, states: list[host_manager.HostState]) -> None:
        self._states = states
        self._handler = weights.HostWeightHandler()
        self._weighers = [cls() for cls in self._handler.get_matching_classes(
            ['nova.scheduler.weights.all_weighers'])]
        self.count = len(self._weighers)

    def weigh(self) -> None:
        """Run them."""
        self._handler.get_weighed_objects(self._weighers, self._states, request_spec())


class _Pair:
    """One filter and one weigher in Nova's handlers."""

    def __init__(self, states: list[host_manager.HostState], filter_: filters.BaseHostFilter,
                 weigher: weights.BaseHostWeigher) -> None:
        self._states = states
        self._filter = filter_
        self._weigher = weigher
        self._filters = filters.HostFilterHandler()
        self._weights = weights.HostWeightHandler()

    def both(self) -> list[host_manager.HostState]:
        """Filter and weigh, and return the hosts that have passed, the best one first."""
        spec = request_spec()
        passed = self._filters.get_filtered_objects([self._filter], self._states, spec)
        weighed = self._weights.get_weighed_objects([self._weigher], passed, spec)
        return [one.obj for one in weighed]


class _NoOpFilter(filters.BaseHostFilter):

    def __init__(self, passing: list[host_manager.HostState]) -> None:
        self._passing = passing

    def filter_all(self, filter_obj_list, spec_obj):  # type: ignore[no-untyped-def]
        return list(self._passing)


class _NoOpWeigher(weights.BaseHostWeigher):
    minval, maxval = 0.0, 1.0

    def weigh_objects(self, weighed_obj_list, weight_properties):  # type: ignore
        return [0.0] * len(weighed_obj_list)

    def _weigh_object(self, obj, weight_properties):  # type: ignore[no-untyped-def]
        return 0.0


class NoOp(_Pair):
    """A filter and a weigher that do nothing.

    :param passing: the hosts that pass nevertheless, since Nova's own work is less for fewer
    """

    def __init__(self, states: list[host_manager.HostState],
                 passing: list[host_manager.HostState]) -> None:
        super().__init__(states, _NoOpFilter(passing), _NoOpWeigher())


class Ours(_Pair):
    """The interference filter and weigher, with the snapshot read.

    :param pending: how many placements they are to know of beside it
    """

    def __init__(self, states: list[host_manager.HostState],
                 cluster: cluster_module.ClusterState, pending: int) -> None:
        super().__init__(states, interference_filter.InterferenceFilter(),
                         interference_weigher.InterferenceWeigher())
        self.judge = self._filter._worker.judge()
        self.judge._background.wake()
        end = time.monotonic() + _INITIAL_WAIT * 4
        while self.judge.snapshots.current is None:
            if time.monotonic() > end:
                raise errors.TraconError('the snapshot was not read in time')
            time.sleep(0.005)
        profile = newcomer_profiles.expected(cluster.history, '', '', '')
        self.judge.pending.add([assumed_placements.Placement(
            str(uuid.uuid4()), name, name, profile, limits_module.NONE, time.time())
            for name in cluster.hosts[:pending]])

    def forget(self) -> None:
        """Forget what was judged before, as after the first request of a kind."""
        self.judge._cache = reassessment.AssessmentCache()

    def close(self) -> None:
        """End the background thread."""
        self.judge.close()
