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

from tracon_watcher.characteristics import FloatArray, IntArray, IO
from tracon_watcher.placement import assessment
from tracon_watcher.placement import elsewhere
from tracon_watcher.placement import queues
from tracon_watcher.placement import residents
from tracon_watcher.placement import storage


@dataclasses.dataclass(frozen=True)
class Departures:
    """What the leaving of each of a host's m residents brings on that host.

    :param uuids: the m residents
    :param relief: (m,) exponents, log slowdown and −log IOPS ratio together, that end: the
        leaver's own and its part in everybody else's
    :param ended: (m,) breaches that end, the leaver's own among them
    """

    uuids: tuple[str, ...]
    relief: FloatArray
    ended: IntArray


def departures(assessor: assessment.Assessor, host: int) -> Departures:
    """Predict a host's residents without each one of them, all m × m anew."""
    cluster = assessor.cluster
    rows = slice(cluster.first[host], cluster.first[host + 1])
    uuids = cluster.uuids[rows]
    count = len(uuids)
    relief = np.zeros(count)
    breached = np.zeros(count, dtype=bool)
    still = np.zeros((count, count), dtype=bool)    # who leaves, who stays
    found = assessor.of_host(host)
    if count and assessor.queues is not None and host in assessor.queues.hosts:
        return _by_law(assessor, assessor.queues, host)
    if not count or found is None:
        return Departures(uuids, relief, np.zeros(count, dtype=np.intp))
    group, own = found
    with np.errstate(divide='ignore'):
        limits = (np.log(cluster.max_slowdown[rows]), -np.log(cluster.min_iops_ratio[rows]))
    for response, limit in zip(group.responses, limits):
        counted = response.counted[own]
        before = np.where(counted, response.exponent[own], 0.0)
        after = np.where(counted, _without(assessor, group, response, own), 0.0)
        np.fill_diagonal(after, 0.0)
        relief += before.sum() - after.sum(axis=1)
        if (counted & np.isfinite(limit)).any():
            doubt = response.doubt[own]
            breached |= counted & (assessor.lower(response.model, before, doubt) > limit)
            still |= counted & (assessor.lower(
                response.model, after.ravel(), np.tile(doubt, count)
            ).reshape(count, count) > limit)
    np.fill_diagonal(still, False)
    ended: IntArray = (breached & ~still).sum(axis=1)
    return Departures(uuids, relief, ended)


def _by_law(assessor: assessment.Assessor, law: queues.Queues, host: int) -> Departures:
    """Predict the residents of a host without a model without each of them."""
    rows, after = law.without(host)
    before = law.exponent[:, rows]
    relief = np.nansum(before, axis=(0, 1)) - np.nansum(after, axis=(0, 2))
    level, limit = 1 - assessor.settings.confidence, law.limit[:, rows]
    spread = law.law_spread[law.place[rows]]
    breached = queues.bound(before, level, spread) > limit
    still = queues.bound(after, level, spread) > limit[:, np.newaxis, :]
    for one in still:
        np.fill_diagonal(one, False)
    ended: IntArray = (breached.any(axis=0) & ~still.any(axis=0)).sum(axis=1)
    return Departures(tuple(assessor.cluster.uuids[row] for row in law.residents[rows]), relief,
                      ended)


def _without(assessor: assessment.Assessor, group: residents.Group, response: residents.Response,
             rows: IntArray) -> FloatArray:
    """Return the exponents of those who stay (axis 1) for each who leaves (axis 0), (m, m)."""
    cluster, count = assessor.cluster, len(rows)
    model = response.model
    parts = model.parts(response.behaviour.excess(rows[None, :])[0].T)
    # Who leaves a host stays on its pool, where its I/O is one more from elsewhere.
    io = np.repeat(cluster.io_beyond[group.residents[rows]][None, :, :], count, axis=0)
    domain = response.behaviour.domain[rows]
    pooled = ~storage.is_local(cluster)[domain]
    stays = (domain[:, None] == domain[None, :]) & pooled[:, None]
    io += np.where(stays[..., None], cluster.profiles[group.residents[rows]][:, None, IO], 0.0)
    beyond = np.zeros((count, count))
    # Tabulated here, since a host that is looked at alone has no tables: nobody shares its pool.
    shared = np.flatnonzero(pooled)
    tables = elsewhere.tabulate(model, response.behaviour.sensitivity[rows[shared]])
    beyond[:, shared] = elsewhere.excess(
        model, tables, np.tile(np.arange(len(shared)), count),
        io[:, shared].reshape(-1, 2)).reshape(count, -1)
    single, cross = (np.maximum(one.sum(axis=0) - one, 0.0) + other
                     for one, other in zip(parts, model.parts(beyond)))
    return response.total(single, cross, rows, (0,))
