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

"""What it brings that a VM leaves its host: the culprits, by leaving each one out."""

from __future__ import annotations

import dataclasses

import numpy as np

from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray
from tracon_watcher.placement import assessment


@dataclasses.dataclass(frozen=True)
class Departures:
    """What the leaving of each of a host's m residents brings on that host.

    :param uuids: the m residents
    :param relief: (m,) exponents, log slowdown and −log IOPS ratio together, that end: the
        leaver's own and its part in those of all others
    :param ends: (m, m) whose breach ends, a line for each leaver; its own breach among them
    """

    uuids: tuple[str, ...]
    relief: FloatArray
    ends: BoolArray

    @property
    def ended(self) -> IntArray:
        """(m,) breaches that end."""
        return np.asarray(self.ends.sum(axis=1), dtype=np.intp)


def departures(assessor: assessment.Assessor, host: int) -> Departures:
    """Predict a host's residents without each one of them; who leaves stays on its pool."""
    cluster, law = assessor.cluster, assessor.law
    if host not in law.hosts:
        uuids = cluster.uuids[cluster.first[host]:cluster.first[host + 1]]
        return Departures(uuids, np.zeros(len(uuids)),
                          np.zeros((len(uuids), len(uuids)), dtype=bool))
    rows, after = law.without(host)
    before = law.exponent[:, rows]
    relief = np.nansum(before, axis=(0, 1)) - np.nansum(after, axis=(0, 2))
    level, limit = 1 - assessor.settings.confidence, law.limit[:, rows]
    breached = law.bound(level, before, rows) > limit
    still = law.bound(level, after, rows) > limit[:, np.newaxis, :]
    for one in still:
        np.fill_diagonal(one, False)
    return Departures(tuple(cluster.uuids[row] for row in law.residents[rows]), relief,
                      np.asarray(breached.any(axis=0) & ~still.any(axis=0)))
