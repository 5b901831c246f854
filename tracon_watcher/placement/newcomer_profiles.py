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

"""Expected profiles of VMs that do not run yet, by project, flavor and image."""

from __future__ import annotations

import dataclasses
import math
from typing import Mapping, Sequence

import numpy as np

from tracon_watcher import characteristics
from tracon_watcher.characteristics import COUNT, FloatArray

ALL = ''
_SEPARATOR = '|'
#: What the source of a profile ends with that is :attr:`.Profile.apart`.
APART = ', CPU alone'


@dataclasses.dataclass(frozen=True)
class Profile:
    """An expected demand and how far it may be off.

    :param mean: (4,) characteristics; NaN where nothing is known
    :param deviation: (4,) standard deviation of what is not known, 0 for a profile that is known
    :param count: VMs that it was learnt from
    :param source: where it came from, for explanations
    :param apart: whether its storage is another than that of all hosts and residents, as that of
        a volume on a backend that is not known: with whom it meets it shares the CPU alone
    :param own_wait: share of time that it waits for its own limits, see
        :mod:`.current_interference`
    :param vcpus: how many virtual CPUs it has
    :param storage_wait: part of its time alone that each of them waits for storage, NaN where
        unknown
    :param cpu_weight: of its share of the cores beside others; 0 for a VM with cores of its own
    """

    mean: FloatArray
    deviation: FloatArray
    count: int = 1
    source: str = 'own'
    apart: bool = False
    own_wait: float = 0.0
    vcpus: int = 1
    storage_wait: float = math.nan
    cpu_weight: float = 1.0

    @property
    def known(self) -> bool:
        """Whether all four characteristics are known."""
        return not bool(np.isnan(self.mean).any())

    def set_apart(self) -> Profile:
        """Return the profile of a newcomer that shares the CPU alone with those it meets."""
        return dataclasses.replace(self, source=f'{self.source}{APART}', apart=True)


UNKNOWN = Profile(np.full(COUNT, np.nan), np.zeros(COUNT), 0, 'nothing known')


def own(values: FloatArray, own_wait: float = 0.0, vcpus: int = 1,
        storage_wait: float = math.nan, cpu_weight: float = 1.0) -> Profile:
    """Return the profile of a VM that brings its own, as one that moves does."""
    return Profile(characteristics.as_characteristics(values)[0], np.zeros(COUNT),
                   own_wait=own_wait, vcpus=vcpus, storage_wait=storage_wait,
                   cpu_weight=cpu_weight)


def kind_keys(project: str, flavor: str, image: str) -> tuple[str, ...]:
    """Return the keys under which history is sought, the most specific first."""
    return (_SEPARATOR.join((project, flavor, image)), _SEPARATOR.join((flavor, image)),
            flavor, ALL)


def learn(profiles: FloatArray, kinds: list[tuple[str, str, str]]) -> dict[str, Profile]:
    """Learn the history of newcomers from VMs whose profiles are known.

    :param profiles: (n, 4); rows with NaN are passed over
    :param kinds: (project, flavor, image) of each
    """
    rows: dict[str, list[int]] = {}
    for index in np.flatnonzero(characteristics.is_known(profiles)):
        for key in kind_keys(*kinds[index]):
            rows.setdefault(key, []).append(int(index))
    history = {}
    for key, members in rows.items():
        sample = profiles[members]
        count = len(members)
        # Of one VM the spread is not known: it is taken for as uncertain as its demand is large.
        # Of few, the mean is uncertain as well, hence 1 + 1/n.
        deviation = (sample.std(axis=0, ddof=1) * np.sqrt(1 + 1 / count) if count > 1
                     else sample[0].copy())
        history[key] = Profile(sample.mean(axis=0), deviation, count, key or 'all VMs')
    return history


def on_volume(image: str) -> bool:
    """Say whether VMs of a kind with this image boot from a volume."""
    return not image


def most_common(history: Mapping[str, Profile], most: int) -> list[str]:
    """Return the keys of the kinds that most VMs are of, at most so many, the largest first."""
    kinds = [key for key in history if key.count(_SEPARATOR) == 2]
    return sorted(kinds, key=lambda key: (-history[key].count, key))[:most]


def expected(history: Mapping[str, Profile], project: str, flavor: str, image: str) -> Profile:
    """Return what earlier VMs of the same (project, flavor, image) did; then of the same
    (flavor, image), the same flavor, of all; :data:`UNKNOWN` where there is no history.
    """
    for key in kind_keys(project, flavor, image):
        if key in history:
            return history[key]
    return UNKNOWN


# Of a newcomer's keys, the first that is told of however few VMs there are.
_FLAVOR = 2


def learn_profiles(mean: FloatArray, deviation: FloatArray, kinds: Sequence[tuple[str, str, str]],
                   least: int = 1, own_wait: FloatArray | None = None,
                   storage_wait: FloatArray | None = None) -> dict[str, Profile]:
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
    history: dict[str, Profile] = {}
    keys = [kind_keys(*kinds[int(index)]) for index in known]
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
                history[name] = Profile(centre[index], spread[index], count,
                                        name or 'all VMs',
                                        own_wait=float(waited[index]),
                                        storage_wait=float(stored[index]))
    return history
