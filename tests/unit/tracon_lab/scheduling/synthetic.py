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

"""SYNTHETIC performance of invented classes, so that results can be checked by hand."""

import numpy as np

from tracon_lab.scheduling import configurations
from tracon_lab.scheduling import performance

CLASSES = ('calm', 'loud', 'touchy')


def performance_of(pairs, slots=(2,), solo_seconds=None, solo_iops=None, classes=None):
    """Return the performance where excesses of slowdown over 1 add up; IOPS ratios are 1 over it.

    :param pairs: (c, c) slowdown of rows beside columns
    """
    pairs = np.asarray(pairs, dtype=float)
    count = len(pairs)
    space = configurations.Configurations(classes or CLASSES[:count], slots)
    slowdown = np.full((len(space), count), np.nan)
    for index, members in enumerate(space.members):
        for task in set(members):
            others = list(members)
            others.remove(task)
            slowdown[index, task] = 1 + sum(pairs[task, other] - 1 for other in others)
    kinds = len(slots)
    seconds = np.full((kinds, count), 100.0) if solo_seconds is None else np.tile(
        np.asarray(solo_seconds, dtype=float), (kinds, 1))
    iops = np.full((kinds, count), 500.0) if solo_iops is None else np.tile(
        np.asarray(solo_iops, dtype=float), (kinds, 1))
    return performance.Performance(space, seconds, iops, slowdown, 1 / slowdown)


def harmful(slots=(2,), **more):
    """Return three classes, of which ``loud`` harms ``touchy`` most."""
    return performance_of([[1.0, 1.2, 1.05], [1.1, 2.0, 1.3], [1.2, 6.0, 1.6]], slots, **more)


def harmless(slots=(2,), **more):
    """Return three classes that do nothing to each other."""
    return performance_of(np.ones((3, 3)), slots, **more)


def random_pairs(seed, count):
    """Return a performance of random classes on hosts of two slots."""
    rng = np.random.default_rng(seed)
    return performance_of(1 + rng.exponential(1.0, (count, count)),
                          solo_seconds=rng.uniform(50, 200, count),
                          solo_iops=rng.uniform(10, 1000, count),
                          classes=tuple(f'class{index}' for index in range(count)))
