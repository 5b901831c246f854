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

"""Windows of a guest that a limit of its own holds back, a neighbour, both, or neither.

A guest's program counts what it does, which says what the causes are. A neighbour is one if
without it, under the same limit, the guest does :data:`HARM` times as much; its own limit is one
if without that, beside the same neighbour, it does. What was judged stands beside it.

Thresholds were set before anything was measured with them.
"""

import csv
import dataclasses
import pathlib
import statistics
import typing

from tracon_lab.testbed import programs
from tracon_watcher import csv_table

#: How many times as much a guest does without a cause, at least.
HARM = 1.1
#: Slowdown that the product says from which on it names neighbours as one; as its API does.
VISIBLE = 1.1
#: Foreign CPU on the measured core, as a share of it, at which a window is taken again.
FOREIGN = 0.1
CPU, DISK = 'CPU', 'disk'
NEITHER, OWN, NEIGHBOUR, BOTH = 'neither', 'own limit', 'neighbour', 'both'
CAUSES = (NEITHER, OWN, NEIGHBOUR, BOTH)
NO_NEIGHBOUR = 'none'
OWN_AND_UNKNOWN, UNKNOWN = 'own limit, rest unknown', 'unknown'
JUDGED = (*CAUSES, OWN_AND_UNKNOWN, UNKNOWN)
COLUMNS = ('resource', 'setting', 'vm', 'limit', 'neighbour', 'seconds', 'foreign',
           'units_per_second', 'without_neighbour', 'without_limit', 'reached', 'slowdown',
           'cause', 'judged')
MATRIX = ('resource', 'cause', 'windows', *JUDGED, 'right')
SLOWDOWNS = ('resource', 'limit', 'neighbour', 'windows', 'known', 'measured', 'judged',
             'median_error', 'largest_error')


@dataclasses.dataclass(frozen=True)
class Setting:
    """What runs in a window.

    :param vm: by which name its target is known
    :param share: of what the target does alone, that its own limit allows; None without one
    :param beside: the program of the neighbour, one of
        :data:`~tracon_lab.testbed.own_limits.NEIGHBOURS`; None: there is none
    """

    resource: str
    name: str
    vm: str
    target: programs.Unit
    share: float | None
    beside: str | None

    @property
    def limited(self) -> bool:
        return self.share is not None


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What the product says of a window.

    :param reached: whether a limit of the VM's own was reached; None where it does not know
    :param slowdown: by neighbours; NaN where it does not know
    """

    reached: bool | None
    slowdown: float

    @property
    def judged(self) -> str:
        """One of :data:`JUDGED`."""
        if self.slowdown != self.slowdown or self.reached is None:
            return OWN_AND_UNKNOWN if self.reached else UNKNOWN
        hurt = self.slowdown >= VISIBLE
        return (BOTH if hurt else OWN) if self.reached else (NEIGHBOUR if hurt else NEITHER)


@dataclasses.dataclass(frozen=True)
class Taken:
    """A window.

    :param foreign: CPU of others on the measured core, a share of it
    :param rate: units of the target's program a second
    :param alone: what it does without a neighbour, under the same limit
    :param free: what it does without a limit, beside the same neighbour
    :param usual: what it does in the windows of this setting, in the median, as the other two:
        the machine itself is faster or slower from one minute to the next
    """

    setting: Setting
    limit: str
    seconds: float
    foreign: float
    rate: float
    verdict: Verdict
    alone: float = float('nan')
    free: float = float('nan')
    usual: float = float('nan')

    @property
    def cause(self) -> str:
        """The true one of :data:`CAUSES`."""
        hurt = self.setting.beside is not None and self.alone >= HARM * self.usual
        if self.setting.limited and self.free >= HARM * self.usual:
            return BOTH if hurt else OWN
        return NEIGHBOUR if hurt else NEITHER

    def row(self) -> list[typing.Any]:
        verdict = self.verdict
        return [self.setting.resource, self.setting.name, self.setting.vm, self.limit,
                self.setting.beside or NO_NEIGHBOUR, round(self.seconds, 3),
                round(self.foreign, 4), round(self.rate, 3), round(self.alone, 3),
                round(self.free, 3), '' if verdict.reached is None else int(verdict.reached),
                '' if verdict.slowdown != verdict.slowdown else round(verdict.slowdown, 4),
                self.cause, verdict.judged]


def write(path: pathlib.Path, facts: typing.Mapping[str, str],
          taken: typing.Sequence[Taken]) -> None:
    """Write windows as CSV, below the facts as comments."""
    with open(path, 'w', newline='', encoding='utf-8') as out:
        for name, value in facts.items():
            out.write(f'# {name}: {value}\n')
        rows = csv.writer(out, lineterminator='\n')
        rows.writerow(COLUMNS)
        rows.writerows(one.row() for one in taken)


def read(path: pathlib.Path) -> list[dict[str, typing.Any]]:
    """Read windows that :func:`write` has written.

    :raises tracon_watcher.errors.InvalidDocument: naming file, line, column and value
    """
    found = csv_table.read(path, 'write it with `tracon lab own limits --output`', COLUMNS)
    rows = []
    for row in found.rows:
        for name, known in (('cause', CAUSES), ('judged', JUDGED)):
            if row.text(name) not in known:
                row.refuse(name, f'not of this release; expected one of {", ".join(known)}')
        rows.append({**row.fields, 'slowdown': row.optional('slowdown'), **{
            name: row.number(name)
            for name in ('foreign', 'units_per_second', 'without_neighbour')}})
    return rows


def matrix(rows: typing.Sequence[typing.Mapping[str, typing.Any]]) -> list[tuple[typing.Any, ...]]:
    """The confusion matrix: a row for each resource and true cause, a column for each verdict.

    The last column is the share that was judged right; who says that it does not know all is not.
    Windows that foreign load disturbed each time they were taken are left out.
    """
    rows = [row for row in rows if row['foreign'] <= FOREIGN]
    found = []
    for resource in (CPU, DISK):
        for cause in CAUSES:
            own = [row['judged'] for row in rows
                   if row['resource'] == resource and row['cause'] == cause]
            if own:
                found.append((resource, cause, len(own), *(own.count(name) for name in JUDGED),
                              own.count(cause) / len(own)))
    return found


def slowdowns(rows: typing.Sequence[typing.Mapping[str, typing.Any]]
              ) -> list[tuple[typing.Any, ...]]:
    """What neighbours did to the target, and what was judged: a row for each setting with one.

    The slowdown of a window is units a second without the neighbour, under the same limit, over
    those in it; the error of what was judged is |judged − measured| / measured. Both slowdowns are
    medians, errors those of the windows whose slowdown is known. Windows that foreign load
    disturbed are left out, and so are those in which the target did nothing.
    """
    settings: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for row in rows:
        if row['neighbour'] != NO_NEIGHBOUR and row['foreign'] <= FOREIGN and (
                row['units_per_second'] > 0):
            settings.setdefault((row['resource'], row['limit'], row['neighbour']), []).append((
                row['without_neighbour'] / row['units_per_second'], row['slowdown']))
    found = []
    for setting, pairs in sorted(settings.items()):
        known = [(measured, judged) for measured, judged in pairs if judged == judged]
        wrong = [abs(judged - measured) / measured for measured, judged in known]
        found.append((*setting, len(pairs), len(known),
                      statistics.median(measured for measured, _judged in pairs),
                      *((statistics.median(judged for _measured, judged in known),
                         statistics.median(wrong), max(wrong)) if known else (None,) * 3)))
    return found


def compared(taken: typing.Sequence[Taken]) -> list[Taken]:
    """Give each window the median rates of its target: as it is, alone, and without a limit.

    Windows that foreign load disturbed do not count for these, where there are others.
    """
    rates: dict[tuple[str, str | None], list[Taken]] = {}
    for one in taken:
        rates.setdefault((one.setting.vm, one.setting.beside), []).append(one)

    def median(vm: str, beside: str | None) -> float:
        own = rates.get((vm, beside), [])
        clean = [one for one in own if one.foreign <= FOREIGN] or own
        return statistics.median(one.rate for one in clean) if own else float('nan')

    return [dataclasses.replace(
        one, usual=median(one.setting.vm, one.setting.beside),
        alone=median(one.setting.vm, None),
        free=median(f'{one.setting.resource.lower()}-free', one.setting.beside))
        for one in taken]
