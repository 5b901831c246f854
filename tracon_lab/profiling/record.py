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

"""What came of windows: rows of the lab's measurement file, and why others are not in it."""

from __future__ import annotations

import datetime
import json
import math
import pathlib
import time
from typing import Callable, Mapping, Sequence

from tracon_lab.profiling import plan
from tracon_lab.profiling import site as sites
from tracon_lab.testbed import errors as lab_errors
from tracon_lab.testbed import observation
from tracon_lab.testbed import plan as plans
from tracon_lab.testbed import rows
from tracon_watcher.characteristics import NAMES
from tracon_watcher import errors
from tracon_watcher import numerals


class Journal:
    """A measurement file that goes on where it was cut short, and a journal beside it.

    A point whose programs were not measured alone yet waits for that, and is not in the file
    before.

    :param length: seconds of a window that count
    """

    def __init__(self, path: pathlib.Path, length: float,
                 clock: Callable[[], float] = time.time) -> None:
        self.path = path.with_suffix('.journal')
        #: Why the last window that was given up was.
        self.last = 'there were none'
        self.file = rows.File(path)
        self._length = length
        self._clock = clock
        self._solos: dict[str, rows.Solo] = {}
        self._solo_count: dict[str, int] = {}
        self._rejected: set[str] = set()
        self._waiting: list[tuple[plans.Window, Mapping[str, rows.Side], float]] = []
        for row in self.file.rows:
            if row['kind'] == plans.SOLO:
                name = row['target']
                self._solos[name] = _solo(row)
                self._solo_count[name] = self._solo_count.get(name, 0) + 1

    @property
    def rows(self) -> int:
        """How many rows the file has."""
        return len(self.file.rows)

    @property
    def solos(self) -> frozenset[str]:
        """The programs that were measured alone."""
        return frozenset(self._solos)

    @property
    def speed(self) -> plan.Speed | None:
        """The speed that the file's programs were set by; None for a new file."""
        try:
            return plan.Speed(*(numerals.parse(self.file.header[name]) for name in _SPEED))
        except KeyError:
            return None
        except numerals.InvalidNumber as error:
            raise errors.InvalidDocument(
                str(self.path.with_suffix('.csv')), 'header ' + ', '.join(_SPEED), str(error),
                'name a new folder') from None

    @property
    def awaited(self) -> list[plan.Slot]:
        """The programs that points wait for, each alone."""
        return list(dict.fromkeys(
            plan.alone(role, side.name) for _window, sides, _at in self._waiting
            for role, side in sides.items() if side.name not in self._solos))

    def missing(self, wanted: Sequence[plans.Window]) -> list[plans.Window]:
        """Return the points that were not measured, or not written down."""
        done = self.file.done()
        return [one for one in wanted if one.key not in done]

    def left(self, wanted: Sequence[plans.Window]) -> list[plans.Window]:
        """Return the points that are still to be measured."""
        waiting = {window.key for window, _sides, _at in self._waiting}
        return [one for one in self.missing(wanted) if one.key not in waiting]

    def begin(self, header: Mapping[str, str], speed: plan.Speed) -> plan.Speed:
        """Begin a new file, or see that this goes on with an old one.

        :returns: the speed as it is written down, by which a measurement that goes on plans the
            same settings
        :raises tracon_lab.testbed.errors.TestbedError: when that is of something else
        """
        if self.file.header and self.file.header.get('guests') != header['guests']:
            raise lab_errors.TestbedError(
                f'{self.path.with_suffix(".csv")} was measured with guests '
                f'{self.file.header.get("guests")}, not {header["guests"]}: name a new folder')
        self.file.begin({**header, **{name: '%.6g' % value for name, value in zip(
            _SPEED, (speed.iterations, speed.reads, speed.writes))}})
        return self.speed or speed

    def keep(self, slot: plan.Slot, sides: Mapping[str, rows.Side], at: float) -> None:
        """Write down a window.

        :param at: when it began, seconds since the epoch
        """
        self._note(slot.point, [])
        if slot.window is not None:
            self._waiting.append((slot.window, sides, at))
        else:
            side, = sides.values()
            count = self._solo_count.get(side.name, 0)
            self._solo_count[side.name] = count + 1
            self._solos[side.name] = rows.Solo(at, side)
            self.file.append(rows.row(slot.point, plans.SOLO, count, side, None, self._taken(at),
                                      self._solos[side.name], None))
        ready = [one for one in self._waiting
                 if {side.name for side in one[1].values()} <= self.solos]
        for one in ready:
            self._waiting.remove(one)
            self._append(*one)

    def _append(self, window: plans.Window, sides: Mapping[str, rows.Side], at: float) -> None:
        of = [sides[role] for role in sites.ROLES]
        found = []
        for direction in window.directions():
            target = of[direction.target]
            beside = rows.together([of[number] for number in direction.background])
            found.append(rows.row(direction.point, direction.kind, window.repetition, target,
                                  beside, self._taken(at), self._solos[target.name],
                                  self._solos[beside.name].side))
        self.file.append(*found)

    def _taken(self, at: float) -> rows.Taken:
        nan = math.nan
        return rows.Taken(at, self._length, nan, nan, nan, nan, nan, nan, 1)

    def reject(self, slot: plan.Slot, reasons: list[str]) -> None:
        """Note why a window is not kept."""
        self._rejected.add(slot.point)
        self.last = f'{slot.point}: {"; ".join(reasons)}'
        self._note(slot.point, reasons)

    def _note(self, point: str, reasons: list[str]) -> None:
        at = datetime.datetime.fromtimestamp(self._clock(), datetime.UTC)
        with self.path.open('a', encoding='utf-8') as out:
            out.write(json.dumps({'at': at.isoformat(timespec='seconds'), 'point': point,
                                  'kept': not reasons, 'reasons': reasons}) + '\n')

    def complete(self, missing: Sequence[str]) -> None:
        """Compare every point with its programs alone at about the same time.

        :param missing: points that the file lacks; those that were tried count as given up
        """
        if self.file.rows:
            self.file.complete([point for point in missing if point in self._rejected])


_SPEED = ('iterations_per_second', 'reads_per_second_alone', 'writes_per_second_alone')


def _solo(row: Mapping[str, str]) -> rows.Solo:
    def number(name: str) -> float:
        return float(row[name]) if row[name] else math.nan
    seen = observation.Observation(
        *(number('target_observed_' + name) for name in NAMES), number('target_vcpu_delay'),
        number('target_read_latency'), number('target_write_latency'), int(row['operations']))
    return rows.Solo(float(row['started_at']), rows.Side(
        row['target'], int(row['units']), number('time_per_unit'), seen))
