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

"""Joint assignment of several VMs to hosts."""

from __future__ import annotations

from typing import Callable, Sequence

import numpy as np

from tracon_watcher.characteristics import FloatArray, IntArray
from tracon_watcher.placement import assessment
from tracon_watcher.placement import placement_constraints
from tracon_watcher.placement import storage_backends

#: From (k, m) costs, infinite where it must not be, to (k,) columns, all different; None where
#: there is no way.
Assign = Callable[[FloatArray], 'IntArray | None']


def destinations(assessor: assessment.Assessor, room: placement_constraints.Occupancy,
                 uuids: Sequence[str],
                 assign: Assign, cost: float, now: float) -> list[tuple[str, int]] | None:
    """Return (uuid, host index) of the moves that together leave the least harm.

    VMs that had better stay are left out. Whether it can be done in some order is not looked at.

    :param assessor: of the state before all moves
    :param room: of that state too
    :param cost: of a migration, in log responses
    """
    cluster = assessor.cluster
    without = assessor.of(cluster.moved(dict.fromkeys(uuids)))
    table = np.full((len(uuids), len(cluster.hosts)), np.inf)
    for line, uuid in enumerate(uuids):
        row = cluster.resident_index[uuid]
        verdict = without.assess(cluster.resident_profile(row), cluster.resident_limits(row),
                                 now, pool=storage_backends.pool_of(cluster, row))
        allowed, _worse = room.destinations(uuid)
        allowed &= verdict.known & ~verdict.refused & storage_backends.reachable(cluster, row)
        table[line, allowed] = verdict.score[allowed] + cost
        own = int(cluster.host[row])
        if verdict.known[own]:
            # It may stay, also where it would not be let in.
            table[line, own] = verdict.score[own]
    # Of equal ones the order of hosts must not decide.
    order = np.argsort(np.array(cluster.hosts))
    # Nor must rounding, which differs between CPUs.
    found = assign(np.round(table[:, order], 9))
    if found is None:
        return None
    hosts = order[found]
    return [(uuid, int(host)) for uuid, host in zip(uuids, hosts)
            if host != cluster.host[cluster.resident_index[uuid]]]
