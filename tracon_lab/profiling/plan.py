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

"""What is measured in a cloud: few programs, each beside settings of the generator.

How fast hosts are is not known before, so settings are shares of what one VM does there alone.
The plan depends on this alone. Whatever its length, a shorter one is its beginning.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Collection, Sequence

import numpy as np

from tracon_lab.models import optimal_design
from tracon_lab.testbed import plan as plans
from tracon_lab.testbed import programs
from tracon_watcher.characteristics import FloatArray
from tracon_watcher import tie_breaking

#: What runs in the VM whose slowdown counts first. All of TRACON's kinds are among them: short of
#: CPU, of the disk for large or for small requests, of both, and with time to spare.
TARGETS = ('seqread', 'calc', 'randread', 'mixed', 'seqwrite', 'openread')
#: Settings of the generator.
BACKGROUNDS = 25
#: Points that are measured unless others are asked for: two for each setting.
POINTS = 50
MOST_POINTS = BACKGROUNDS * len(TARGETS)
#: Points after which a target is measured alone once more, since machines drift.
REFRESH = 24
# CPU, reads and writes, each as a share of what a VM does alone of nothing else.
_LEVELS = (0.0, 0.15, 0.4, 0.7, 1.0)
# Shares add up, as the generator does one thing after the other; somewhat more than it can do
# makes it a closed loop.
_MOST = 1.15
# Of the open-loop program: well below what the disk can do.
_OPEN = 0.3
# Each setting meets targets in this order, so that the first points of all are as different as
# can be.
_OFFSETS = (0, 3, 1, 4, 2, 5)


@dataclasses.dataclass(frozen=True)
class Speed:
    """What one VM does in a second, alone, of nothing else.

    :param iterations: of the CPU loop
    :param reads: of 4 KiB, one after the other, and ``writes``
    """

    iterations: float
    reads: float
    writes: float


@dataclasses.dataclass(frozen=True)
class Slot:
    """What runs during one window.

    :param window: the two programs of a point; None when one is alone
    :param target: what the VM of the targets runs, '' for nothing, and ``background``
    """

    window: plans.Window | None
    target: str
    background: str

    @property
    def point(self) -> str:
        """Its name in the file."""
        return 'solo/' + (self.target or self.background) if self.window is None else (
            self.window.point)


def catalogue(speed: Speed) -> dict[str, programs.Unit]:
    """Return the targets by name, open-loop ones as fast as suits the host."""
    found = programs.programs(max(1, round(_OPEN * speed.reads)),
                              max(1, round(_OPEN * speed.writes)))
    return {name: found[name] for name in TARGETS}


def settings(speed: Speed, count: int = BACKGROUNDS) -> list[str]:
    """Return settings of the generator: those that tell a model most, the most different first."""
    shares = np.array([one for one in itertools.product(_LEVELS, repeat=3)
                       if 0 < sum(one) <= _MOST])
    names = [programs.generator(round(100 * cpu), round(reads * speed.reads),
                                round(writes * speed.writes)) for cpu, reads, writes in shares]
    # On a slow disk small shares round to the same, or to nothing.
    first = [index for index, name in enumerate(names)
             if names.index(name) == index and name != programs.generator(0, 0, 0)]
    chosen = np.array(first)[optimal_design.choose(shares[first], count)]
    return [names[index] for index in chosen[_spread(shares[chosen])]]


def _spread(points: FloatArray) -> list[int]:
    """Return an order, heaviest first, in which each (n, 3) point is far from all before it.

    Of points that are equally heavy, or equally far, the first one is taken.
    """
    order = [tie_breaking.argmax(points.sum(axis=1))]
    distance = np.full(len(points), np.inf)
    while len(order) < len(points):
        distance = np.minimum(distance, np.linalg.norm(points - points[order[-1]], axis=1))
        distance[order] = -1.0
        order.append(tie_breaking.argmax(distance))
    return order


def points(speed: Speed, count: int = POINTS) -> list[plans.Window]:
    """Return the points to measure, in order; both directions of each are recorded."""
    beside = settings(speed)
    found = [plans.Window(plans.BACKGROUND, TARGETS[(number + offset) % len(TARGETS)], name,
                          back=plans.REVERSE)
             for offset in _OFFSETS for number, name in enumerate(beside)]
    return found[:count]


def alone(role: str, name: str) -> Slot:
    """Return the window in which a program runs alone, in the VM of its role."""
    return Slot(None, **{'target': '', 'background': '', role: name})


def windows(count: int) -> int:
    """Return how many windows so many points take, those of programs alone among them.

    On a disk so slow that some settings are the same there are fewer.
    """
    return len(slots(points(Speed(1e8, 1000.0, 1000.0), count), ()))


def slots(left: Sequence[plans.Window], known: Collection[str],
          awaited: Sequence[Slot] = ()) -> list[Slot]:
    """Return the windows in which these points are measured, and programs alone before them.

    :param known: programs that were measured alone already
    :param awaited: windows that come first
    """
    found = list(awaited)
    since = {name: 0 for name in (*known, *(one.target or one.background for one in awaited))}
    for window in left:
        for role, name in (('target', window.target), ('background', window.background)):
            old = role == 'target' and since.get(name, 0) >= REFRESH
            if name not in since or old:
                found.append(alone(role, name))
                since[name] = 0
        found.append(Slot(window, window.target, window.background))
        since = {name: count + 1 for name, count in since.items()}
    return found
