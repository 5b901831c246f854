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

import functools

import numpy as np

from tracon_watcher.characteristics import BoolArray, FloatArray
from tracon_watcher.placement import assessment
from tracon_watcher.placement import newcomer_profiles


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

    A VM with as many virtual CPUs, all of which always compute and send no requests, comes to the
    host: the largest one is sought beside which no limit of a resident is breached, by the
    assessment that judges newcomers. What the VM itself suffers counts nothing.

    :param now: seconds since the epoch
    :returns: whole numbers; where no resident has a limit, the idle cores alone bound it
    """
    idle = idle_cores(assessor, now)
    known = ~np.isnan(idle)

    @functools.cache
    def bears(vcpus: int) -> BoolArray:
        profile = newcomer_profiles.own(np.array([0.0, 0.0, vcpus, 0.0]), vcpus=vcpus)
        return ~assessor.assess(profile, now=now).refused

    # The more load, the more harm: bisection, all hosts at once.
    low = np.zeros(len(idle), dtype=np.intp)
    high = np.where(known, np.floor(idle + 1e-9), 0.0).astype(np.intp)
    while (low < high).any():
        middle = (low + high + 1) // 2
        for vcpus in np.unique(middle[low < high]).tolist():
            hosts = (middle == vcpus) & (low < high)
            held = bears(vcpus)
            low[hosts & held] = vcpus
            high[hosts & ~held] = vcpus - 1
    return np.where(known, low, np.nan)
