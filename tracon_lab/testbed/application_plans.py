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

"""The plans of the eight applications: TRACON's training backgrounds, pairs, co-residents.

* `applications`: each of them beside all levels of the generator (TRACON, section 4.1), and
  beside each other;
* `reduced`: the same with few of the levels, for host types that resemble another one;
* `co-residents`: each of them beside two and three others, which the sum of the others'
  characteristics has to stand for;
* `table1`: not of applications, but of TRACON's Table 1: a computation and a sequential reader
  beside the extremes of the generator.
"""

import itertools
import random
import typing

import numpy as np

from tracon_lab.models import naming
from tracon_lab.models import optimal_design
from tracon_lab.testbed import applications
from tracon_lab.testbed import host_types
from tracon_lab.testbed import plan as plans
from tracon_lab.testbed import programs

INTENSITIES = (0, 25, 50, 75, 100)      # per cent, of CPU, reads and writes each
BLOCKS = 5
REPEATED = 12
REDUCED = 30
#: Columns of TRACON's Table 1 and the shares of CPU, reads and writes that they are here.
EXTREMES = {'CPU high': (100, 0, 0), 'I/O high': (0, 100, 100),
            'CPU & I/O medium': (50, 50, 50), 'CPU & I/O high': (100, 100, 100)}
TABLE1 = ('calc', 'seqread')
CROWDS = {2: 28, 3: 14}     # co-residents: how many sets of applications, and of settings


SHARES = [shares for shares in itertools.product(INTENSITIES, repeat=3) if any(shares)]


def levels(host_type: host_types.HostType) -> list[str]:
    """The generator's 124 settings; the 125th is nothing at all, a program alone."""
    return [setting(host_type, shares) for shares in SHARES]


def setting(host_type: host_types.HostType, shares: typing.Sequence[int]) -> str:
    """The generator at shares (per cent) of the most of CPU, reads and writes."""
    most = (100, *(max(level) for level in host_type.levels[1:]))
    return programs.generator(*(round(top * share / 100) for top, share in zip(most, shares)))


def table1(host_type: host_types.HostType, seed: int) -> plans.Plan:
    """Three times each: they are repeats, which no model is fitted to."""
    windows = [plans.Window(plans.REPEAT, target, setting(host_type, shares), repetition)
               for repetition in range(3) for target in TABLE1 for shares in EXTREMES.values()]
    return plans.Plan('table1', seed, tuple(windows))


def full(host_type: host_types.HostType, seed: int) -> plans.Plan:
    return _beside_the_generator('applications', host_type, levels(host_type), BLOCKS, seed)


def reduced(host_type: host_types.HostType, seed: int) -> plans.Plan:
    """The settings that tell most about all of them."""
    names = levels(host_type)
    chosen = optimal_design.choose(np.array(SHARES) / 100, REDUCED,
                                   optimal_design.with_kinks)
    return _beside_the_generator('reduced', host_type, [names[n] for n in chosen], 2, seed)


def _beside_the_generator(name: str, host_type: host_types.HostType,
                          backgrounds: typing.Sequence[str], blocks: int,
                          seed: int) -> plans.Plan:
    rng = random.Random(seed)
    backgrounds = rng.sample(backgrounds, len(backgrounds))
    # On separate cores only the target's core is watched closely enough to be a target's.
    both = not host_type.separate_cores
    pairs = list(itertools.combinations_with_replacement(applications.NAMES, 2) if both else
                 itertools.product(applications.NAMES, repeat=2))
    rng.shuffle(pairs)
    repeated = [plans.Window(plans.REPEAT, one, rng.choice(backgrounds))
                for one in applications.NAMES]
    repeated += [plans.Window(plans.REPEAT, *pair, back=plans.REPEAT if both else None)
                 for pair in rng.sample([pair for pair in pairs if pair[0] != pair[1]],
                                        REPEATED - len(repeated))]
    repetitions = [list(range(5))[block::blocks] for block in range(blocks)]
    windows: list[plans.Window] = []
    for block in range(blocks):
        part = [plans.Window(plans.BACKGROUND, target, background,
                             back=plans.REVERSE if both else None)
                for target in applications.NAMES for background in backgrounds[block::blocks]]
        part += [plans.Window(plans.PAIR, *pair, back=plans.PAIR if both else None)
                 for pair in pairs[block::blocks]]
        part += [plans.again(window, repetition) for window in repeated
                 for repetition in repetitions[block]]
        for target in rng.sample(applications.NAMES, len(applications.NAMES)):
            of_target = [window for window in part if window.target == target]
            rng.shuffle(of_target)
            windows += of_target
    return plans.Plan(name, seed, tuple(windows), applications=True)


def co_residents(host_type: host_types.HostType, seed: int) -> plans.Plan:
    """Sets of applications, and each application beside settings of the generator."""
    rng = random.Random(seed)
    # Several settings together would only wait for each other, had each its full intensity.
    light = [name for name in levels(host_type) if _load(host_type, name) <= 0.7]
    windows: list[plans.Window] = []
    for others, count in CROWDS.items():
        targets = itertools.cycle(rng.sample(applications.NAMES, len(applications.NAMES)))
        for target in itertools.islice(targets, count):
            crowd = rng.choices(applications.NAMES, k=others)
            windows.append(plans.Window(plans.CO_RESIDENTS, target, naming.AND.join(crowd),
                                        back=plans.CO_RESIDENTS))
            settings = rng.sample(light, others)
            windows.append(plans.Window(plans.CO_RESIDENTS, target,
                                        naming.AND.join(settings)))
    unique = list({window.key: window for window in windows}.values())
    rng.shuffle(unique)
    return plans.Plan('co-residents', seed, tuple(unique), applications=True)


def _load(host_type: host_types.HostType, name: str) -> float:
    return host_type.load(*naming.setting(name))


#: By name, as the command takes them; those of synthetic programs among them.
PLANS: dict[str, typing.Callable[[host_types.HostType, int], plans.Plan]] = {
    'full': plans.full, 'small': plans.small, 'applications': full, 'reduced': reduced,
    'co-residents': co_residents, 'table1': table1}


def planned(name: str, host_type: host_types.HostType, seed: int) -> plans.Plan:
    """The plan of that name, as this host type can measure it."""
    plan = PLANS[name](host_type, seed)
    return plan.one_sided() if host_type.separate_cores else plan
