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

from tracon_watcher import characteristics
from tracon_watcher.characteristics import FloatArray, IntArray, IO
from tracon_watcher.placement import assessment
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
    """Predict a host's residents without each one of them.

    All m × m predictions are made anew, since a background that shrinks has no closed form: it
    may come back into the hull.
    """
    cluster = assessor.cluster
    rows = slice(cluster.first[host], cluster.first[host + 1])
    uuids = cluster.uuids[rows]
    count = len(uuids)
    relief = np.zeros(count)
    ended = np.zeros(count, dtype=np.intp)
    host_type = cluster.host_type[host]
    if not count or host_type is None or host_type not in assessor.models:
        return Departures(uuids, relief, ended)
    profiles, background = cluster.profiles[rows], cluster.background[rows]
    local = storage.is_local(cluster)[cluster.io_domain[rows]]
    # Axis 0: who leaves; axis 1: who stays. I/O on a pool stays where it is.
    taken = np.repeat(profiles[:, None, :], count, axis=1)
    taken[..., IO] *= (local[:, None] & local[None, :])[..., None]
    rest = np.maximum(background[None, :, :] - taken, 0.0).reshape(-1, characteristics.COUNT)
    targets = np.broadcast_to(profiles, (count, *profiles.shape)).reshape(rest.shape)
    busy = characteristics.request_rate(profiles) >= characteristics.MINIMUM_IOPS
    breached = np.zeros(count, dtype=bool)
    still = np.zeros((count, count), dtype=bool)
    models = assessor.models[host_type]
    with np.errstate(divide='ignore'):
        limits = (np.log(cluster.max_slowdown[rows]), -np.log(cluster.min_iops_ratio[rows]))
    for model, counted, limit in zip((models.slowdown, models.iops_ratio),
                                     (np.ones(count, dtype=bool), busy), limits):
        before = np.where(counted, model.exponents(profiles, background), 0.0)
        after = np.where(counted, model.exponents(targets, rest).reshape(count, count), 0.0)
        np.fill_diagonal(after, 0.0)
        relief += np.nansum(before) - np.nansum(after, axis=1)
        if (counted & np.isfinite(limit)).any():
            breached |= counted & (assessor.lower(model, before) > limit)
            still |= counted & (assessor.lower(model, after.ravel()).reshape(count, count) > limit)
    np.fill_diagonal(still, False)
    ended = (breached & ~still).sum(axis=1)
    return Departures(uuids, relief, ended)
