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

"""Parts of a request that are read: its type, its instance and its HostStates."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from tracon_watcher.characteristics import IntArray
from tracon_watcher import hypervisor_types
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import limits


def never_refused(spec, resident: bool) -> bool:
    """Say whether a request is weighed only.

    A RequestSpec does not name its operation. It shows

    * rebuild by the hint ``_nova_check_type``;
    * evacuation and live migration by ``ignore_hosts``; resize and cold migration too, unless
      resizing to the same host is allowed;
    * live migration, resize, cold migration and unshelving by the cell that the destination is
      restricted to, which Nova states for existing instances only;
    * forced and requested hosts by name.

    An instance that the snapshot shows running is being moved, whatever else is said.
    Unshelving counts as a move: the instance exists, and its owner has no other way to it.

    :param spec: RequestSpec
    :param resident: whether the snapshot has the instance
    """
    if resident or _value(spec, 'force_hosts') or _value(spec, 'force_nodes') or _value(
            spec, 'ignore_hosts'):
        return True
    if (_value(spec, 'scheduler_hints') or {}).get('_nova_check_type'):
        return True
    destination = _value(spec, 'requested_destination')
    if destination is None:
        return False
    # Request filters make a destination with aggregates alone for plain boots.
    return bool(_value(destination, 'host') or _value(destination, 'node')
                or _value(destination, 'cell'))


def boots_from_volume(spec) -> bool:
    """Say whether a newcomer's disk is a volume, wherever it is placed."""
    return bool(_value(spec, 'is_bfv'))


def kind(spec) -> tuple[str, str, str]:
    """Return (project, flavor name, image), under which the profiles of earlier VMs are found.

    The flavor is named as hypervisors name it in a domain's metadata. A VM that boots from a
    volume has no image, which is ''.
    """
    image = _value(spec, 'image')
    return (_value(spec, 'project_id') or '', spec.flavor.name,
            (_value(image, 'id') if image is not None else None) or '')


def kind_of_instance(instance) -> tuple[str, str, str] | None:
    """Return the same of an instance, None unless it is loaded: nothing is fetched for it."""
    for field in ('flavor', 'project_id', 'image_ref'):
        if field not in instance:
            return None
    return instance.project_id or '', instance.flavor.name, instance.image_ref or ''


def vcpus(flavor) -> int:
    """Return how many virtual CPUs a flavor has, 1 where that is not loaded."""
    return _value(flavor, 'vcpus') or 1


def cpu_weight(flavor) -> float:
    """Return the weight of a flavor's VMs on the cores they share; 0 for cores of their own."""
    return limits.cpu_weight(_value(flavor, 'extra_specs') or {})


def background(flavor) -> bool:
    """Say whether a flavor's VMs are background work."""
    return limits.of_flavor(_value(flavor, 'extra_specs') or {}).background


def _value(thing, name: str):
    """Return a field of a Nova object, None when it is not set; never loads it."""
    return getattr(thing, name) if name in thing else None


_AT_ONCE = 512


class HostStates:
    """The n HostStates of a request.

    :param counts: n, the instances that each host has or will have, by Nova's count
    """

    def __init__(self, states: list) -> None:
        self.states = states
        self._nodes: list[str] = []
        self.counts: list[int] = []
        self.aggregates: list[list] = []
        # Comprehensions that make no new objects: those would set off the garbage collection. Some
        # hosts at a time, so that a HostState is still in the processor's cache the next time.
        for start in range(0, len(states), _AT_ONCE):
            some = states[start:start + _AT_ONCE]
            self._nodes += [state.nodename for state in some]
            self.counts += [state.num_instances for state in some]
            self.aggregates += [state.aggregates for state in some]

    def rows(self, cluster: cluster_module.ClusterState,
             latest: LatestHostStates | None = None) -> IntArray:
        """Return the cluster's index of each host, (n,), -1 where it has none.

        The cluster may name a host by its node (the hypervisor's host name) or by its service's
        host; the node, which is more specific, is tried first. One whose service stands for
        several machines is not judged, whatever the cluster says.

        :param latest: what the latest request's were
        """
        if latest is not None and latest.cluster is cluster and latest.nodes == self._nodes:
            return latest.rows
        get = cluster.host_index.get
        rows = np.fromiter(map(get, self._nodes, itertools.repeat(-1)), np.intp, len(self.states))
        without = np.flatnonzero(rows < 0)
        for place in without:
            rows[place] = get(self.states[place].host, -1)
        several = hypervisor_types.SEVERAL_MACHINES
        rows[[place for place, state in enumerate(self.states)
              if getattr(state, 'hypervisor_type', None) in several]] = -1
        # The rest was found by the node alone, and is so again.
        if latest is not None and not len(without):
            rows.flags.writeable = False
            latest.cluster, latest.nodes, latest.rows = cluster, self._nodes, rows
        return rows


@dataclasses.dataclass
class LatestHostStates:
    """The nodes of the latest request, which the next one brings mostly again in their order."""

    cluster: cluster_module.ClusterState | None = None
    nodes: list[str] = dataclasses.field(default_factory=list)
    rows: IntArray = dataclasses.field(default_factory=lambda: np.empty(0, dtype=np.intp))
