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

"""What a VM would meet and do on every other host, as ``assess`` judges a newcomer."""

from __future__ import annotations

import numpy as np

from tracon_watcher import characteristics
from tracon_watcher.characteristics import CPU, FloatArray, IO
from tracon_watcher.placement import assessment
from tracon_watcher.placement import newcomer
from tracon_watcher.placement import storage


def arrivals(assessor: assessment.Assessor, row: int, now: float) -> FloatArray:
    """Return the harm of the VM in ``row`` arriving, (h,); NaN where it is refused or unknown.

    On a host's own disk it is a newcomer like any other. On a pool its I/O is there already: it
    brings its CPU only, and finds the pool as it is without itself.
    """
    cluster = assessor.cluster
    profile = cluster.profiles[row]
    if storage.is_local(cluster)[cluster.io_domain[row]]:
        verdict = assessor.assess(newcomer.own(profile), cluster.resident_limits(row), now)
        return np.where(verdict.known & ~verdict.refused, verdict.score, np.nan)
    cpu = profile.copy()
    cpu[IO] = 0.0
    verdict = assessor.assess(newcomer.own(cpu), now=now)
    others = verdict.score - np.nansum(verdict.exponent, axis=0)
    return np.where(verdict.known & ~verdict.refused, others + _own(assessor, row), np.nan)


def _own(assessor: assessment.Assessor, row: int) -> FloatArray:
    """Return the exponents, together, of a VM on a pool on each host, (h,)."""
    cluster = assessor.cluster
    profile = cluster.profiles[row]
    background = cluster.load.copy()
    background[:, IO] = cluster.background[row, IO]
    background[cluster.host[row], CPU] = cluster.background[row, CPU]
    total = np.full(len(cluster.hosts), np.nan)
    busy = characteristics.request_rate(profile[None, :])[0] >= characteristics.MINIMUM_IOPS
    for name in {one for one in cluster.host_type if one is not None and one in assessor.models}:
        hosts = np.flatnonzero(np.array([one == name for one in cluster.host_type], dtype=bool))
        target = np.broadcast_to(profile, (len(hosts), characteristics.COUNT))
        models = assessor.models[name]
        total[hosts] = models.slowdown.exponents(target, background[hosts])
        if busy:
            total[hosts] += models.iops_ratio.exponents(target, background[hosts])
    return total
