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

"""Watcher in the loop: now and then the product's planner proposes live migrations."""

from __future__ import annotations

import math
from typing import Sequence

from tracon_watcher import assignment
from tracon_watcher.characteristics import FloatArray
from tracon_watcher import errors
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import placement_constraints
from tracon_watcher.placement import plan
from tracon_watcher.placement import planner


class Audit:
    """An audit of the interference strategy, with the planner that Watcher's plugin calls.

    :param interval: seconds between audits
    :param pause: seconds for which a task that moves stands still
    :param kinds: index of each host's type
    :param slots: of a host of each type, and ``cores`` likewise
    :param profiles: (t, c, 4) characteristics of each class alone
    :param storage_waits: (t, c) part of its time alone that each waits for storage, NaN where
        unknown
    :param parameters: how bold a plan may be
    """

    def __init__(self, interval: float, pause: float, kinds: Sequence[int],
                 slots: Sequence[int], cores: Sequence[int], profiles: FloatArray,
                 storage_waits: FloatArray,
                 parameters: plan.Parameters = plan.Parameters()) -> None:
        for name, value, least in (('audit_interval', interval, 'above 0'),
                                   ('pause', pause, 'not below 0')):
            if not math.isfinite(value) or value < 0 or (value == 0 and name != 'pause'):
                raise errors.InvalidOption(name, value, f'a number of seconds {least}')
        self.interval = interval
        self.pause = pause
        self._kinds = kinds
        self._slots = slots
        self._cores = cores
        self._profiles = profiles
        self._storage_waits = storage_waits
        self._parameters = parameters

    def moves(self, residents: Sequence[Sequence[int]],
              now: float) -> list[tuple[int, int, int]]:
        """Return (source, place among its residents, destination), one after the other.

        Every host's residents stand in the order that the moves before leave them in.
        """
        where: dict[str, tuple[int, int]] = {}
        hosts, free, needs = [], {}, {}
        for index, (kind, tasks) in enumerate(zip(self._kinds, residents)):
            members = []
            for place, task in enumerate(tasks):
                uuid = f'{index}.{place}'
                where[uuid] = index, place
                needs[uuid] = (1.0, 0.0, 0.0)
                members.append(cluster.Resident(
                    uuid, self._profiles[kind, task],
                    storage_wait=float(self._storage_waits[kind, task])))
            free[str(index)] = (float(self._slots[kind] - len(tasks)), 0.0, 0.0)
            hosts.append(cluster.Host(str(index), tuple(members), cores=self._cores[kind]))
        found = planner.plan_moves(
            assessment.Assessor(cluster.build(hosts)),
            placement_constraints.Constraints(needs=needs, free=free), self._parameters,
            assign=assignment.least_cost)
        present = [[f'{index}.{place}' for place in range(len(tasks))]
                   for index, tasks in enumerate(residents)]
        result = []
        for move in found.moves:
            source, destination = int(move.source), int(move.destination)
            place = present[source].index(move.uuid)
            present[destination].append(present[source].pop(place))
            result.append((source, place, destination))
        return result
