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

"""What really happens when programs share a host: the measured pair rows.

Models are fitted to other rows, and the law of queueing to none. A schedule is judged by looking
each VM and its neighbour up here, so that no prediction ever marks its own work. What three and
more do to each other is composed of what each two do (:mod:`.composition`).
"""

from __future__ import annotations

import dataclasses
from typing import Iterable, Mapping

import numpy as np

from tracon_lab.models import baseline
from tracon_lab.models import dataset
from tracon_lab.models import naming
from tracon_watcher.characteristics import FloatArray
from tracon_watcher import errors
from tracon_watcher import tie_breaking

_LEAST_PROGRAMS = 3
#: Of the programs that differ most in what they suffer and do. The applications of the other
#: plans are all short of CPU on emulated guests, so that hardly anything is there to choose.
PLAN = 'full'
#: Pair rows, and the same pairs measured again for the noise.
_KINDS = ('pair', 'repeat')


@dataclasses.dataclass(frozen=True)
class Truth:
    """Interference between p programs on one type of host.

    :param programs: p names
    :param slowdown: (p, p), rows targets, columns what runs beside them: the mean of all
        measurements of the pair
    :param iops_ratio: (p, p), NaN where undefined: the target does hardly any I/O
    :param measurements: (p, p) number of measurements behind each
    :param profiles: of each program (m, 4) characteristics alone, a row a measurement
    :param unit_seconds: of each program, median time of a unit of its work alone
    :param window_seconds: of each program, median time for which it was measured alone
    :param storage_waits: of each program, which part of its time alone it waits for storage; of
        those is nothing known that are not there
    """

    host_type: str
    programs: tuple[str, ...]
    slowdown: FloatArray
    iops_ratio: FloatArray
    measurements: FloatArray
    profiles: Mapping[str, FloatArray]
    unit_seconds: Mapping[str, float] = dataclasses.field(default_factory=dict)
    window_seconds: Mapping[str, float] = dataclasses.field(default_factory=dict)
    storage_waits: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def cores(self) -> int:
        """How many cores programs share on a host."""
        return naming.cores(self.host_type)

    @property
    def typical(self) -> FloatArray:
        """(p, 4) median characteristics of each program alone."""
        return np.array([np.median(self.profiles[name], axis=0) for name in self.programs])

    def beside(self, target: str, background: str | None) -> tuple[float, float]:
        """Return the measured slowdown and IOPS ratio of ``target``; alone, both are 1.

        The IOPS ratio is NaN where it is undefined.
        """
        if background is None:
            return 1.0, 1.0
        row, column = self.programs.index(target), self.programs.index(background)
        return float(self.slowdown[row, column]), float(self.iops_ratio[row, column])

    @property
    def harm(self) -> FloatArray:
        """(p,) mean log slowdown that each program means for what runs beside it."""
        harm: FloatArray = np.log(self.slowdown).mean(axis=0)
        return harm

    @property
    def lightest_first(self) -> tuple[str, ...]:
        """The programs, those that harm their neighbours least first."""
        return tuple(self.programs[index] for index in tie_breaking.argsort(self.harm))


def host_types(datasets: Iterable[dataset.Dataset]) -> list[str]:
    """Return the host types of which there are pair rows.

    Real devices come before emulated ones, and then those with the most pair rows.
    """
    counts: dict[str, int] = {}
    emulated: set[str] = set()
    for one in datasets:
        count = int(np.count_nonzero(one.text['kind'] == 'pair'))
        if count:
            counts[one.host_type] = counts.get(one.host_type, 0) + count
            if one.header.get('emulated', 'no') != 'no':
                emulated.add(one.host_type)
    return sorted(counts, key=lambda name: (name in emulated, -counts[name], name))


def of(datasets: Iterable[dataset.Dataset], host_type: str, plan: str = '') -> Truth:
    """Gather the pair rows of one host type.

    Programs of different plans never met each other. Those of ``plan`` are taken; by default
    those of the plan :data:`PLAN` where there are any, else of the plan with the most pair rows.

    Programs are left out until every pair of the others was measured in both directions.

    :raises tracon_watcher.errors.NotEnoughData: when fewer than three programs are left
    """
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    profiles: dict[str, list[FloatArray]] = {}
    own = [one for one in datasets if one.host_type == host_type]
    chosen = _of_one_plan(own, plan)
    if plan and not chosen:
        plans = sorted({one.header.get('plan', '') for one in own
                        if (one.text['kind'] == 'pair').any()})
        raise errors.InvalidOption('plan', plan, f'pairs on {host_type} were measured by '
                                   + (', '.join(filter(None, plans)) or 'none'))
    for one in chosen:
        points = baseline.steady(one)
        paired = set(points.target[points.kind == 'pair'].tolist())
        for row in range(len(points)):
            target, background = str(points.target[row]), str(points.background[row])
            if points.kind[row] in _KINDS and {target, background} <= paired:
                found.setdefault((target, background), []).append(
                    (float(points.slowdown[row]), float(points.iops_ratio[row])))
            elif points.kind[row] == 'solo' and target in paired:
                profiles.setdefault(target, []).append(points.target_alone[row])
    known = {pair: values for pair, values in found.items()
             if np.isfinite([slowdown for slowdown, _ in values]).any()}
    names = _complete(sorted(name for name in profiles if any(name in pair for pair in known)),
                      known)
    if len(names) < _LEAST_PROGRAMS:
        raise errors.NotEnoughData(f'the truth of every pair of {_LEAST_PROGRAMS} programs on '
                                   f'host type {host_type}', len(known), _LEAST_PROGRAMS ** 2)
    size = len(names)
    slowdown, ratio, count = (np.full((size, size), np.nan), np.full((size, size), np.nan),
                              np.zeros((size, size)))
    for row, target in enumerate(names):
        for column, background in enumerate(names):
            values = np.array(known[target, background])
            slowdown[row, column] = np.nanmean(values[:, 0])
            count[row, column] = len(values)
            if np.isfinite(values[:, 1]).any():
                ratio[row, column] = np.nanmean(values[:, 1])
    return Truth(host_type, tuple(names), slowdown, ratio, count,
                 {name: np.array(profiles[name]) for name in names},
                 _alone(chosen, names, 'time_per_unit'), _alone(chosen, names, 'window_seconds'),
                 dataset.storage_waits(own))


def _alone(datasets: list[dataset.Dataset], names: Iterable[str],
           column: str) -> dict[str, float]:
    """Return the median of a column over windows of each program alone."""
    found = {}
    for name in names:
        values = np.concatenate([
            one.numbers[column][(one.text['kind'] == 'solo') & (one.text['target'] == name)]
            for one in datasets if column in one.numbers] or [np.empty(0)])
        values = values[np.isfinite(values)]
        if len(values):
            found[name] = float(np.median(values))
    return found


def _of_one_plan(datasets: list[dataset.Dataset], plan: str) -> list[dataset.Dataset]:
    pairs: dict[str, int] = {}
    for one in datasets:
        name = one.header.get('plan', '')
        pairs[name] = pairs.get(name, 0) + int(np.count_nonzero(one.text['kind'] == 'pair'))
    if not pairs:
        return []
    wanted = plan or (PLAN if pairs.get(PLAN) else max(pairs, key=lambda name: pairs[name]))
    return [one for one in datasets if one.header.get('plan', '') == wanted]


def _complete(names: list[str], known: Mapping[tuple[str, str], object]) -> list[str]:
    """Leave out the program with the most unknown pairs until none is unknown."""
    while names:
        missing = [sum((a, b) not in known for b in names) + sum((b, a) not in known
                                                                 for b in names) for a in names]
        if not any(missing):
            break
        names = [name for index, name in enumerate(names) if index != int(np.argmax(missing))]
    return names
