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

"""Phases of a probe, and how hard the generator makes a sensor work in each."""

from __future__ import annotations

import dataclasses
import math
from typing import Mapping

from tracon_watcher import errors

#: Fewer requests of a connection phase make no reading.
LEAST_REQUESTS = 10
#: Fewer readings make no baseline: they tell too little of how much they differ.
LEAST_READINGS = 5


@dataclasses.dataclass(frozen=True)
class Phase:
    """One kind of work.

    :param name: in commands, meters and documents
    :param work: of one request: the path and the parameter of each request in turn
    :param amount: what the parameter counts
    :param most: largest amount that a sensor takes
    :param from_due: whether a request counts from when it should have started to the end of its
        answer; otherwise the time counts that the sensor took for the work
    """

    name: str
    work: tuple[tuple[str, str], ...]
    amount: str
    most: int
    from_due: bool = False


CONNECTION = Phase('connection', (('/connection', 'work'),), 'iterations', 100_000_000,
                   from_due=True)
MEMORY = Phase('memory', (('/memory', 'integers'),), 'integers', 1 << 30)
STORAGE = Phase('storage', (('/read', 'blocks'), ('/write', 'blocks')), 'blocks of 4 KiB', 10_000)
PHASES: Mapping[str, Phase] = {one.name: one for one in (CONNECTION, MEMORY, STORAGE)}


@dataclasses.dataclass(frozen=True)
class Setting:
    """How one phase is run.

    :param rate: requests a second; c of the connection phase
    :param seconds: that the phase takes; t1 of the connection phase, t2 of the memory phase
    :param amount: of work in a request; n of the memory phase
    """

    rate: float
    seconds: float
    amount: int

    @property
    def requests(self) -> int:
        """Return how many requests make one reading."""
        return round(self.rate * self.seconds)

    def check(self, phase: Phase) -> None:
        """Refuse what no generator could do.

        :raises tracon_watcher.errors.InvalidOption: naming the number
        """
        for name, value in (('rate', self.rate), ('seconds', self.seconds)):
            if not (math.isfinite(value) and 0 < value <= 10_000):
                raise errors.InvalidOption(f'{phase.name} {name}', value,
                                           'more than 0, and 10000 at most')
        if not 1 <= self.amount <= phase.most:
            raise errors.InvalidOption(f'{phase.name} amount', self.amount,
                                       f'from 1 to {phase.most} {phase.amount}')
        if self.requests < (LEAST_REQUESTS if phase.from_due else 1):
            raise errors.InvalidOption(
                f'{phase.name} rate and seconds', f'{self.rate:g} × {self.seconds:g}',
                f'{LEAST_REQUESTS} requests at least, one in the other phases')


#: Until a type of host has been tuned. Rates and times of the published probe (Mukherjee, section
#: 4.3.3), which traverses its integers one time after the other; here a few times a phase.
DEFAULT: Mapping[str, Setting] = {
    'connection': Setting(24.0, 15.0, 20_000),
    'memory': Setting(1.0, 25.0, 5_000_000),
    'storage': Setting(4.0, 10.0, 4),
}
