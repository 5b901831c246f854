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

"""Settings of PRICED, chosen on one host type and shown on another.

Two numbers of PRICED were chosen by simulation. Gains on the host type and the tasks that chose
them are too good; what counts is what settings gain elsewhere. So they are chosen on each host
type over several mixes, and shown on every host type with other tasks.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Callable, Iterable, Mapping, Sequence

import numpy as np

from tracon_lab.scheduling import priced
from tracon_lab.simulator import experiment
from tracon_lab.simulator import results
from tracon_watcher import tie_breaking

THRESHOLDS = (-math.inf, 0.0, 0.2, 0.4, 0.6, 0.8)
SURPLUSES = (0.0, 1.0, 2.0, 4.0, 8.0)
DEFAULT = 'default'
Runner = Callable[[Sequence[experiment.Case]], Sequence[experiment.Result]]


@dataclasses.dataclass(frozen=True)
class Setting:
    """One choice of PRICED's two numbers.

    :param chosen_on: name of a host type, or :data:`DEFAULT`
    """

    chosen_on: str
    threshold: float = priced.THRESHOLD
    surplus: float = priced.SURPLUS

    @property
    def scheduler(self) -> str:
        """Name of the scheduler with this setting."""
        return f'PRICED_8:threshold={self.threshold:g}:surplus={self.surplus:g}'


@dataclasses.dataclass(frozen=True)
class Shown:
    """What a setting, or a scheduler without one, does on a host type.

    :param setting: None for a scheduler that has none
    """

    setting: Setting | None
    host_type: str
    row: results.Row


def settings(thresholds: Iterable[float] = THRESHOLDS,
             surpluses: Iterable[float] = SURPLUSES) -> list[Setting]:
    """Return the grid from which a setting is chosen."""
    # Without a queue that is full nothing depends on the surplus, so that all are tried.
    return [Setting('', threshold, surplus) for threshold in thresholds for surplus in surpluses]


def choose(name: str, rows: Sequence[results.Row], tried: Sequence[Setting]) -> Setting:
    """Return the setting with the highest mean log throughput over the mixes.

    :param name: of the host type of all rows
    :param rows: of each setting's scheduler, one a mix
    """
    score = [float(np.mean([math.log(row.throughput) for row in rows
                            if row.scheduler == one.scheduler])) for one in tried]
    return dataclasses.replace(tried[tie_breaking.argmax(score)], chosen_on=name)


def tune(setups: Mapping[str, experiment.Setup], tried: Sequence[Setting], case: experiment.Case,
         mixes: Sequence[str], choice_runs: int, runs: int, run: Runner) -> list[Shown]:
    """Choose a setting on each host type and show each on all of them.

    :param setups: by name of the host type
    :param tried: settings to choose from
    :param case: machines, arrivals, hours and the first seed
    :param choice_runs: seeds from which settings are chosen
    :param runs: seeds after these, that are shown
    :param run: runs cases
    """
    names = [one.scheduler for one in tried]
    chosen = []
    for name, setup in setups.items():
        found = results.rows(run(_cases(case, setup, (results.BASELINE, *names), mixes,
                                        range(case.seed, case.seed + choice_runs))))
        chosen.append(choose(name, found, tried))
    chosen.append(Setting(DEFAULT))
    others = ('FIFO-single', 'PRICED_8:threshold=-inf')
    shown: list[Shown] = []
    for name, setup in setups.items():
        schedulers = dict.fromkeys((results.BASELINE, *others,
                                    *(one.scheduler for one in chosen)))
        found = results.rows(run(_cases(case, setup, tuple(schedulers), mixes, range(
            case.seed + choice_runs, case.seed + choice_runs + runs))))
        of_scheduler = {(row.scheduler, row.mix): row for row in found}
        shown += [Shown(None, name, of_scheduler[other, mix]) for other in others
                  for mix in mixes]
        shown += [Shown(one, name, of_scheduler[one.scheduler, mix]) for one in chosen
                  for mix in mixes]
    return shown


def _cases(case: experiment.Case, setup: experiment.Setup, schedulers: Sequence[str],
           mixes: Sequence[str], seeds: Iterable[int]) -> list[experiment.Case]:
    return [dataclasses.replace(case, setup=setup, scheduler=scheduler, mix=mix, seed=seed)
            for mix in mixes for scheduler in schedulers for seed in seeds]
