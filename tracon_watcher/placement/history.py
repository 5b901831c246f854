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

"""What is told newcomers by: profiles of many VMs, added up by their kinds.

As :func:`.newcomer.learn` does it, for profiles that are not known exactly and for many of them.
"""

from __future__ import annotations

from typing import Sequence

import numpy as np

from tracon_watcher import characteristics
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.placement import newcomer

# Of a newcomer's keys, the first that is told of however few VMs there are.
_FLAVOR = 2


def learn(mean: FloatArray, deviation: FloatArray, kinds: Sequence[tuple[str, str, str]],
          least: int = 1, own_wait: FloatArray | None = None,
          storage_wait: FloatArray | None = None) -> dict[str, newcomer.Profile]:
    """Learn the history of newcomers from VMs whose profiles are known more or less.

    What a newcomer will demand at some time varies from VM to VM and within each of them: the
    variance of the means, times 1 + 1/n as the mean of few is uncertain as well, and the mean of
    the variances. Of a single VM the first is not known, and it is taken for as uncertain as its
    demand is large.

    :param mean: (n, 4); VMs with NaN are passed over
    :param deviation: (n, 4) standard deviations
    :param kinds: (project, flavor, image) of each
    :param least: VMs that a project's key, or an image's, needs: a cloud may have as many of
        them as VMs. Flavors, and all VMs, are always told of
    :param own_wait: (n,) share of time that each waits for its own limits; None where all are 0
    :param storage_wait: (n,) part of its time alone that each waits for storage, NaN where
        unknown; None where all are
    """
    known = np.flatnonzero(characteristics.is_known(mean) & characteristics.is_known(deviation))
    mean, variance = mean[known], deviation[known] ** 2
    waits = np.zeros(len(known)) if own_wait is None else own_wait[known]
    storage = (np.full(len(known), np.nan) if storage_wait is None else storage_wait[known])
    told = ~np.isnan(storage)
    history: dict[str, newcomer.Profile] = {}
    keys = [newcomer.keys(*kinds[int(index)]) for index in known]
    for place in range(len(keys[0]) if keys else 0):
        names: dict[str, int] = {}
        group = np.fromiter((names.setdefault(key[place], len(names)) for key in keys),
                            dtype=np.intp, count=len(keys))
        sizes = np.bincount(group)[:, None]
        centre = characteristics.domain_totals(mean, group, len(names)) / sizes
        between = characteristics.domain_totals((mean - centre[group]) ** 2, group, len(names))
        within = characteristics.domain_totals(variance, group, len(names)) / sizes
        between = np.where(sizes > 1, between / np.maximum(sizes - 1, 1) * (1 + 1 / sizes),
                           centre ** 2)
        spread = np.sqrt(between + within)
        # A VM of an unknown flavor must not inherit the limits of other flavors.
        waited = np.bincount(group, waits) / sizes[:, 0] * (place < len(keys[0]) - 1)
        with np.errstate(invalid='ignore'):
            stored = np.bincount(group[told], storage[told], len(names)) / np.bincount(
                group[told], minlength=len(names))
        for name, index in names.items():
            count = int(sizes[index, 0])
            if count >= least or place >= _FLAVOR:
                history[name] = newcomer.Profile(centre[index], spread[index], count,
                                                 name or 'all VMs',
                                                 own_wait=float(waited[index]),
                                                 storage_wait=float(stored[index]))
    return history
