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

"""What may run together on one host: every multiset of task classes, numbered.

To a scheduler two hosts with the same residents are the same host. Ten thousand hosts of two slots
with tasks of eight classes are in one of 45 *configurations*, and all that is predicted of them is
predicted 45 times, whatever the number of hosts and tasks.
"""

from __future__ import annotations

import itertools
import math
from typing import Sequence

import numpy as np

from tracon_watcher.characteristics import IntArray
from tracon_watcher import errors

#: More are not enumerated: their prediction would take minutes and gigabytes.
MOST = 100_000
NONE = -1


class Configurations:
    """The configurations of hosts of several types.

    Those of one host type follow each other, the empty one first, then by number of residents.

    :param classes: c names of task classes
    :param slots: how many tasks a host of each type may run at once

    Attributes: ``host_type`` and ``size`` (n,) of each configuration, ``residents`` (n, c) how
    many of each class, ``empty`` index of each host type's empty one; ``added[i][j]`` what
    configuration i becomes by one more task of class j, and ``removed[i][j]`` by one less,
    :data:`NONE` where that cannot be.
    """

    def __init__(self, classes: Sequence[str], slots: Sequence[int]) -> None:
        self.classes = tuple(classes)
        self.slots = tuple(slots)
        self._check()
        members = [(kind, one) for kind, most in enumerate(slots) for size in range(most + 1)
                   for one in itertools.combinations_with_replacement(range(len(classes)), size)]
        index = {member: place for place, member in enumerate(members)}
        self.members: tuple[tuple[int, ...], ...] = tuple(one for _kind, one in members)
        self.host_type: IntArray = np.array([kind for kind, _one in members], dtype=np.intp)
        self.size = [len(one) for one in self.members]
        self.full = [len(one) == slots[kind] for kind, one in members]
        self.empty = [index[kind, ()] for kind in range(len(slots))]
        self.residents: IntArray = np.zeros((len(members), len(classes)), dtype=np.intp)
        for place, one in enumerate(self.members):
            np.add.at(self.residents[place], list(one), 1)
        self.added = [[index.get((kind, tuple(sorted((*one, task)))), NONE)
                       for task in range(len(classes))] for kind, one in members]
        self.removed = [[NONE] * len(classes) for _one in members]
        for place, row in enumerate(self.added):
            for task, grown in enumerate(row):
                if grown != NONE:
                    self.removed[grown][task] = place

    def __len__(self) -> int:
        return len(self.members)

    def name(self, index: int) -> str:
        """Return who runs in a configuration, as people read it."""
        return ' + '.join(self.classes[task] for task in self.members[index]) or 'none'

    def _check(self) -> None:
        if not self.classes:
            raise errors.InvalidOption('classes', [], 'name at least one class of tasks')
        if len(set(self.classes)) < len(self.classes):
            double = next(name for name in self.classes if self.classes.count(name) > 1)
            raise errors.InvalidOption('classes', double, 'stands there twice')
        for most in self.slots:
            if most < 1:
                raise errors.InvalidOption('slots', most, 'a host runs one task at least')
        count = sum(math.comb(most + len(self.classes), most) for most in self.slots)
        if count > MOST:
            raise errors.InvalidOption(
                'slots', max(self.slots), f'{count} configurations of {len(self.classes)} classes '
                f'are more than {MOST}: fewer slots a host, or fewer classes')
