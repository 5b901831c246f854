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

"""What is known of a VM before it runs: profiles of earlier VMs of its kind."""

from __future__ import annotations

import dataclasses
import math
from typing import Mapping

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
    :param own_wait: share of time that it waits for its own limits, see :mod:`.own_wait`
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


def keys(project: str, flavor: str, image: str) -> tuple[str, ...]:
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
        for key in keys(*kinds[index]):
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
    for key in keys(project, flavor, image):
        if key in history:
            return history[key]
    return UNKNOWN
