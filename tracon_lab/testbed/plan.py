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
"""What is measured, and in which order.

A plan names windows in which two to four programs run together; windows alone are not
planned, the run takes one whenever the last one of a program has become old.
A plan depends on its arguments and seed alone. It comes in blocks, each a
balanced sample of the whole, so that a run cut short is still usable.
"""

import dataclasses
import itertools
import math
import random
import typing

from scipy.stats import qmc

from tracon_lab.models import naming
from tracon_lab.testbed import host_types
from tracon_lab.testbed import programs

SOLO, BACKGROUND, GENERATOR, PAIR, REPEAT, REVERSE, CO_RESIDENTS = (
    'solo', 'background', 'generator', 'pair', 'repeat', 'reverse', 'co-residents')
BLOCKS = 5
GROUP = 8
PARTNERS = (1, 4)           # in a group of eight, each meets three others
PAIR_BLOCKS = 3             # all pairs stand in the first blocks: they are the truth


@dataclasses.dataclass(frozen=True)
class Window:
    """Programs together. All directions are recorded.

    :param kind: of the row whose target is `target`
    :param background: the program beside it; several are joined by "+"
    :param back: kind of the rows whose target is of the background; None records none
    """

    kind: str
    target: str
    background: str
    repetition: int = 0
    back: str | None = None

    @property
    def point(self) -> str:
        return '%s/%s/%s' % (self.kind, self.target, self.background)

    @property
    def key(self) -> tuple[str, int]:
        return self.point, self.repetition

    @property
    def backgrounds(self) -> tuple[str, ...]:
        return tuple(self.background.split(naming.AND))

    def directions(self) -> list['Direction']:
        """The rows that the window gives, the one of its target first."""
        names = (self.target, *self.backgrounds)
        found = [Direction(self.point, self.kind, 0, tuple(range(1, len(names))))]
        points = [self.point]
        for number in range(1, len(names)) if self.back else ():
            others = tuple(n for n in range(len(names)) if n != number)
            point = '%s/%s/%s' % (self.back, names[number],
                                  naming.AND.join(names[n] for n in others))
            assert self.back is not None
            # Equal programs give rows of equal names.
            found.append(Direction(point + '/back' * points.count(point), self.back, number,
                                   others))
            points.append(point)
        return found

    def solo_ages(self) -> dict[str, float]:
        """How old, in seconds, the last window alone of each program may be.

        The machine drifts within a minute, so those whose slowdown counts need a fresh one.
        """
        age = {None: math.inf, REVERSE: 480.0}.get(self.back, 120.0)
        ages = {name: age for name in self.backgrounds}
        ages[self.target] = 120.0 if self.kind == GENERATOR else 40.0
        return ages


@dataclasses.dataclass(frozen=True)
class Direction:
    """A row of a window: which guest is its target, which its background, by number."""

    point: str
    kind: str
    target: int
    background: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Plan:
    """Windows in order.

    :param applications: whether the programs are the eight applications
    """

    name: str
    seed: int
    windows: tuple[Window, ...]
    applications: bool = False

    @property
    def guests(self) -> int:
        """How many it needs at a time, two at least."""
        return max([2, *(1 + len(window.backgrounds) for window in self.windows)])

    def one_sided(self) -> 'Plan':
        """The same for a testbed that watches the target's core alone.

        Only the target's row of a window is kept. What both its programs are measured by, as those
        of a pair are, takes a window for each.
        """
        windows: dict[tuple[str, int], Window] = {}
        for window in self.windows:
            ways = [dataclasses.replace(window, back=None)]
            if window.back in (PAIR, GENERATOR):
                ways.append(dataclasses.replace(
                    ways[0], target=window.background, background=window.target))
            for one in ways:
                windows.setdefault(one.key, one)
        return dataclasses.replace(self, windows=tuple(windows.values()))


def again(window: Window, repetition: int) -> Window:
    """The same window, measured once more."""
    return dataclasses.replace(window, repetition=repetition)


def full(host_type: host_types.HostType, seed: int, generators: int = 40) -> Plan:
    """The plan of a host type's data set.

    :param generators: space-filling generator settings, a multiple of 8
    """
    rng = random.Random(seed)
    names = list(programs.programs(1, 1))
    backgrounds = grid(host_type)
    rng.shuffle(backgrounds)
    pairs = list(itertools.combinations_with_replacement(names, 2))
    rng.shuffle(pairs)
    settings = space_filling(host_type, generators, seed)
    rng.shuffle(settings)
    groups = [settings[n:n + GROUP] for n in range(0, len(settings), GROUP)]
    repeated = _repeated(names, backgrounds[::BLOCKS], pairs, rng)

    windows: list[Window] = []
    for block in range(BLOCKS):
        part = [Window(BACKGROUND, name, background, back=REVERSE)
                for name in names for background in backgrounds[block::BLOCKS]]
        part += [Window(PAIR, *pair, back=PAIR) for pair in pairs[block::PAIR_BLOCKS]
                 if block < PAIR_BLOCKS]
        part += [again(window, block) for window in repeated]
        # points of one target stand together, so that they share windows alone
        for name in rng.sample(names, len(names)):
            of_target = [window for window in part if window.target == name]
            rng.shuffle(of_target)
            windows += of_target
        for group in groups[block::BLOCKS]:
            windows += _meetings(group, rng)
    return Plan('full', seed, tuple(windows))


def small(host_type: host_types.HostType, seed: int) -> Plan:
    """A few points of every kind, to try a testbed out in about two minutes."""
    rng = random.Random(seed)
    names = ['calc', 'seqread', 'mixed']
    backgrounds = rng.sample(grid(host_type), 3)
    windows = [Window(BACKGROUND, name, background, back=REVERSE)
               for name in names for background in backgrounds]
    windows += [Window(PAIR, a, b, back=PAIR)
                for a, b in itertools.combinations_with_replacement(names, 2)]
    windows += [Window(REPEAT, names[0], backgrounds[0], repetition=n) for n in range(3)]
    rng.shuffle(windows)
    return Plan('small', seed, tuple(windows))


def grid(host_type: host_types.HostType) -> list[str]:
    """The generator's CPU × read × write levels, without those far beyond what a host can do."""
    found = []
    for cpu, reads, writes in itertools.product(*host_type.levels):
        load = host_type.load(cpu, reads, writes)
        if 0 < load <= host_type.most_load:
            found.append(programs.generator(cpu, reads, writes))
    return found


def space_filling(host_type: host_types.HostType, count: int, seed: int) -> list[str]:
    """Scrambled Sobol points in the generator's space, as far as the host can nearly do them."""
    sobol = qmc.Sobol(3, seed=seed)
    cpu, reads, writes = (max(levels) for levels in host_type.levels)
    found: list[str] = []
    while len(found) < count:
        for x, y, z in sobol.random(64):
            # below: squares, because little I/O matters more than much
            setting = (round(x * cpu), round(y * y * reads), round(z * z * writes))
            if 0.1 < host_type.load(*setting) <= 1.3 and len(found) < count:
                found.append(programs.generator(*setting))
    return found


def _meetings(group: typing.Sequence[str], rng: random.Random) -> list[Window]:
    met = [Window(GENERATOR, group[n], group[(n + step) % len(group)], back=GENERATOR)
           for step in PARTNERS for n in range(len(group))
           if 2 * step < len(group) or n < len(group) // 2]
    rng.shuffle(met)
    return met


def _repeated(names: typing.Sequence[str], backgrounds: typing.Sequence[str],
              pairs: typing.Sequence[tuple[str, str]], rng: random.Random) -> list[Window]:
    """Twelve points: every program once beside the generator, four programs beside programs.

    It is enough to see that the testbed works, and too little to fit a model to.
    """
    found = [Window(REPEAT, name, rng.choice(backgrounds)) for name in names]
    found += [Window(REPEAT, *pair, back=REPEAT)
              for pair in rng.sample([pair for pair in pairs if pair[0] != pair[1]], 4)]
    return found
