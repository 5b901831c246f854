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

"""Background capacity: the largest load of the background that every VM's limit still bears."""

from __future__ import annotations

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.placement import assessment
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles

#: Parts of a host's cores in which loads are tried.
STEPS = 50


def idle_cores(assessor: assessment.Assessor, now: float) -> FloatArray:
    """Return the cores of each host that its VMs leave idle, (h,); NaN where unknown.

    It is by the uncontended demand of the VMs; what the host itself does is not in it.

    :param now: seconds since the epoch
    """
    cluster, law = assessor.cluster, assessor.law
    found = np.full(len(cluster.hosts), np.nan)
    taken = np.bincount(law.place, law.taken, minlength=len(law.hosts))
    found[law.hosts] = np.maximum(cluster.cores[law.hosts] - taken, 0.0)
    found[assessor.stale(now)] = np.nan
    return found


def background_cores(assessor: assessment.Assessor, now: float) -> FloatArray:
    """Return how many of the idle cores background work may have, (h,); NaN where unknown.

    A VM comes to the host that has as many virtual CPUs as the host has cores, each of which
    computes for the same part of its time, and that sends no requests. The largest load is sought
    beside which no limit of a resident is breached, by the assessment that judges newcomers. What
    the VM itself suffers counts nothing.

    :param now: seconds since the epoch
    :returns: in steps of :data:`STEPS` of the host's cores; where no resident has a limit, the
        idle cores alone bound it
    """
    cluster, idle = assessor.cluster, idle_cores(assessor, now)
    known = ~np.isnan(idle)
    # The more load, the more harm: bisection, all hosts with the same load at once.
    low = np.zeros(len(idle), dtype=np.intp)
    high = np.where(known, np.floor(idle * STEPS / cluster.cores + 1e-9), 0.0).astype(np.intp)
    while (low < high).any():
        middle = (low + high + 1) // 2
        open_hosts = np.flatnonzero(low < high)
        cases, case = np.unique(np.stack([cluster.cores, middle])[:, open_hosts], axis=1,
                                return_inverse=True)
        for place, (cores, step) in enumerate(cases.T.tolist()):
            rows = open_hosts[case == place]
            part = assessor.of(cluster.restricted(rows.tolist()))
            load = np.array([0.0, 0.0, cores * step / STEPS, 0.0])
            refused = part.assess(newcomer_profiles.own(load, vcpus=int(cores)),
                                  limits.BACKGROUND).refused
            low[rows[~refused]] = middle[rows[~refused]]
            high[rows[refused]] = middle[rows[refused]] - 1
    return np.where(known, low * cluster.cores / STEPS, np.nan)
