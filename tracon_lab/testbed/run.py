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
"""A measurement run: a plan worked off, with solo windows between, until done or out of time."""

import datetime
import json
import pathlib
import time
import typing

from tracon_lab.testbed import errors
from tracon_lab.testbed import interruption
from tracon_lab.testbed import plan as plans
from tracon_lab.testbed import rows
from tracon_lab.testbed import window


class Watcher(typing.Protocol):
    """What takes windows: `window.Observer`, or a recorded one."""

    def watch(self, target: str, backgrounds: typing.Sequence[str], attempt: int,
              seed: int) -> window.Watched: ...


class Run:
    """Works off a plan into a file; what the file already holds is not measured again.

    :param recover: brings the guests back after one has hung
    :param report: is called with a line of progress after every window
    :param clock: seconds since the epoch
    """

    def __init__(self, plan: plans.Plan, file: rows.File, journal: pathlib.Path,
                 watcher: Watcher, attempts: int, recover: typing.Callable[[], None],
                 report: typing.Callable[[str], None],
                 clock: typing.Callable[[], float] = time.time) -> None:
        self._plan = plan
        self._file = file
        self._journal = journal
        self._watcher = watcher
        self._attempts = attempts
        self._recover = recover
        self._report = report
        self._clock = clock
        self._solos: dict[str, rows.Solo] = {}
        self._solo_count: dict[str, int] = {}
        self.rejected = 0
        self.windows = 0
        self.failed: list[plans.Window] = []
        for row in file.rows:
            if row['kind'] == plans.SOLO:
                count = self._solo_count.get(row['target'], 0)
                self._solo_count[row['target']] = max(count, int(row['repetition']) + 1)

    def work(self, limit_seconds: float | None = None) -> bool:
        """Measure what is missing. Says whether nothing is.

        Points that were given up are tried once more at the end.
        """
        begin = self._clock()
        done = self._file.done()
        left = [item for item in self._plan.windows if item.key not in done]
        finished = self._work_off(left, begin, limit_seconds)
        if finished and self.failed:
            again, self.failed = self.failed, []
            finished = self._work_off(again, begin, limit_seconds, again)
        self._file.complete([item.point for item in self.failed])
        return finished and not self.failed

    def _work_off(self, left: typing.Sequence[plans.Window], begin: float,
                  limit_seconds: float | None,
                  retried: typing.Sequence[plans.Window] = ()) -> bool:
        for number, item in enumerate(left):
            if limit_seconds is not None and self._clock() - begin > limit_seconds:
                self._report('out of time with %d points left' % (len(left) - number))
                self.failed += retried[number:]
                return False
            if not self._measure(item):
                self.failed.append(item)
            self._progress(number + 1, len(left), begin, limit_seconds)
        return True

    def _progress(self, done: int, planned: int, begin: float,
                  limit_seconds: float | None) -> None:
        passed = self._clock() - begin
        to_go = passed / done * (planned - done)
        if limit_seconds is not None:
            to_go = min(to_go, limit_seconds - passed)
        self._report('%d/%d points, %d windows, %d rejected, %d given up, %d min left' % (
            done, planned, self.windows, self.rejected, len(self.failed), round(to_go / 60)))

    def _measure(self, item: plans.Window) -> bool:
        for name, age in item.solo_ages().items():
            known = self._solos.get(name)
            old = known is None or self._clock() - known.started_at > age
            if old and not self._measure_solo(name):
                return False
        watched = self._take(item.point, item.target, item.backgrounds)
        if watched is None:
            return False
        found = []
        for row in item.directions():
            target = watched.sides[row.target]
            beside = [watched.sides[number] for number in row.background]
            found.append(rows.row(
                row.point, row.kind, item.repetition, target, rows.together(beside),
                watched.taken, self._solos[target.name],
                rows.together([self._solos[side.name].side for side in beside])))
        self._file.append(*found)
        return True

    def _measure_solo(self, name: str) -> bool:
        watched = self._take('solo/' + name, name, ())
        if watched is None:
            return False
        side = watched.sides[0]
        self._solos[name] = rows.Solo(watched.taken.started_at, side,
                                      watched.taken.canary_during)
        count = self._solo_count.get(name, 0)
        self._solo_count[name] = count + 1
        self._file.append(rows.row('solo/' + name, plans.SOLO, count, side, None, watched.taken,
                                   self._solos[name], None))
        return True

    def _take(self, point: str, target: str,
              backgrounds: tuple[str, ...]) -> window.Watched | None:
        """A window that was kept; None when none was, after all attempts."""
        for attempt in range(1, self._attempts + 1):
            self.windows += 1
            interruption.signals.check()
            try:
                watched = self._watcher.watch(target, backgrounds, attempt,
                                              self._plan.seed * 1000 + 4 * self.windows)
            except errors.GuestError as exc:
                self._note(point, attempt, [str(exc)])
                self.rejected += 1
                try:
                    self._recover()
                except errors.GuestError as again:
                    # It counts as one more attempt; the next window finds out whether it hangs.
                    self._note(point, attempt, ['not restarted: %s' % again])
                continue
            if not watched.objections:
                return watched
            self.rejected += 1
            self._note(point, attempt, watched.objections)
        self._note(point, self._attempts, ['given up'])
        return None

    def _note(self, point: str, attempt: int, reasons: list[str]) -> None:
        at = datetime.datetime.fromtimestamp(self._clock(), datetime.UTC)
        entry = {'at': at.isoformat(timespec='seconds'), 'point': point, 'attempt': attempt,
                 'reasons': reasons}
        with open(self._journal, 'a') as out:
            out.write(json.dumps(entry) + '\n')
