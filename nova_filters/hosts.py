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

"""What is read of a request's HostStates, of which there may be 10,000."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np

from tracon_watcher.characteristics import IntArray
from tracon_watcher import hypervisor_types
from tracon_watcher.placement import cluster as cluster_module

_AT_ONCE = 512


class Hosts:
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
             latest: Latest | None = None) -> IntArray:
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
class Latest:
    """The nodes of the latest request, which the next one brings mostly again in their order."""

    cluster: cluster_module.ClusterState | None = None
    nodes: list[str] = dataclasses.field(default_factory=list)
    rows: IntArray = dataclasses.field(default_factory=lambda: np.empty(0, dtype=np.intp))
