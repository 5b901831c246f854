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

"""A measurement of one host: guests booted with their schedules, watched, and written down."""

from __future__ import annotations

import datetime
import math
import time
from typing import Callable, Mapping, Sequence

from tracon_lab.profiling import calibration
from tracon_lab.profiling import console
from tracon_lab.profiling import errors
from tracon_lab.profiling import hosts
from tracon_lab.profiling import plan
from tracon_lab.profiling import record
from tracon_lab.profiling import sampling
from tracon_lab.profiling import schedule
from tracon_lab.profiling import site as sites
from tracon_lab.testbed import interruption
from tracon_lab.testbed import programs
from tracon_lab.testbed import rows
from tracon_watcher.telemetry import samples

#: Rounds in which windows are taken that did not come out; each boots its VMs again.
ROUNDS = 3
#: Windows given up one after the other, from which on it is no accident.
IN_A_ROW = 8


class Run:
    """Measures what a file does not have yet.

    :param report: is called with lines of progress
    :param clock: seconds since the epoch
    """

    def __init__(self, site: calibration.Site, sampler: sampling.Sampling, journal: record.Journal,
                 timing: schedule.Timing, report: Callable[[str], None],
                 clock: Callable[[], float] = time.time,
                 sleep: Callable[[float], None] = time.sleep) -> None:
        self._site = site
        self._sampler = sampler
        self._journal = journal
        self._timing = timing
        self._report = report
        self._clock, self._sleep = clock, sleep
        # Seconds from the creation of a VM until its first window may begin.
        self._booting = 60.0
        self._pause = max(1.0, timing.polling / 2)

    def calibrate(self) -> plan.Speed:
        """Return how fast a VM is; see that all works that is needed, see :mod:`.calibration`."""
        speed, self._booting = calibration.calibrate(
            self._site, self._sampler, self._timing.polling, self._clock, self._wait)
        return speed

    def work(self, speed: plan.Speed, points: int, limit_seconds: float | None = None) -> bool:
        """Measure the points that are missing. Says whether none is.

        :raises ProfilingError: when it cannot go on; what was measured is in the file
        """
        deadline = math.inf if limit_seconds is None else self._clock() + limit_seconds
        catalogue = plan.catalogue(speed)
        wanted = plan.points(speed, points)
        for turn in range(ROUNDS):
            left, awaited = self._journal.left(wanted), self._journal.awaited
            if not left and not awaited:
                break
            start, slots = self._planned(
                plan.slots(left, self._journal.solos, awaited), deadline)
            if not any(slot.window or slot in awaited for slot in slots):
                self._report('out of time with %d points left' % len(left))
                break
            self._announce(turn, start, slots, len(left))
            began = self._clock()
            self._boot(start, slots, catalogue, speed)
            # Where nothing at all comes out, there is no need to try it again.
            self._watch(began, start, slots, IN_A_ROW if turn else min(IN_A_ROW, len(slots)))
            self._site.clear()
        missing = self._journal.missing(wanted)
        self._journal.complete([one.point for one in missing])
        return not missing

    def _planned(self, slots: Sequence[plan.Slot],
                 deadline: float) -> tuple[float, list[plan.Slot]]:
        # Two VMs boot and write their disks at the same time.
        start = self._timing.start(self._clock() + 2 * self._booting + 10.0)
        most = (deadline - start) / self._timing.length
        return start, list(slots[:max(0, int(most))] if math.isfinite(most) else slots)

    def _announce(self, turn: int, start: float, slots: Sequence[plan.Slot], left: int) -> None:
        end = start + len(slots) * self._timing.length
        self._report('%s%d windows of %g s for %d of %d points: until %s, %s from now' % (
            'again: ' if turn else '', len(slots), self._timing.length,
            sum(slot.window is not None for slot in slots), left,
            datetime.datetime.fromtimestamp(end).strftime('%d %b %H:%M'),
            duration(end - self._clock())))

    def _boot(self, start: float, slots: Sequence[plan.Slot],
              catalogue: Mapping[str, programs.Unit], speed: plan.Speed) -> None:
        self._site.boot({role: schedule.text(start, self._timing, [
            name and programs.unit(name, dict(catalogue)).command(speed.iterations, number + 1)
            for number, name in enumerate(getattr(slot, role) for slot in slots)])
            for role in sites.ROLES})
        self._report('VMs are there; the first window begins in %s'
                     % duration(start - self._clock()))

    def _watch(self, began: float, start: float, slots: Sequence[plan.Slot],
               most: int) -> None:
        """Follow the windows until each is kept or given up.

        :raises ProfilingError: when ``most`` are given up one after the other
        """
        told = {role: console.Told() for role in sites.ROLES}
        left = dict(enumerate(slots))
        kept = in_a_row = 0
        while left:
            self._wait(self._pause)
            due = [number for number in left
                   if self._clock() > start + (number + 1.5) * self._timing.length
                   or self._clock() > start + (number + 1) * self._timing.length
                   + self._timing.polling]
            if not due:
                continue
            others = self._site.others()
            if others:
                raise hosts.not_empty(self._site.host, others)
            for role in sites.ROLES:
                self._listen(role, told[role], began, start)
            samples, why = self._read(start, min(due), max(due))
            for number in due:
                late = self._clock() > (start + (number + 1) * self._timing.length
                                        + calibration.late(self._timing.polling))
                taken, reasons = self._judge(start, number, left[number], told, samples, late)
                if taken is None and not late and not any(
                        number in one.failed for one in told.values()):
                    continue
                slot = left.pop(number)
                if taken is None:
                    self._journal.reject(slot, reasons + why)
                    in_a_row += 1
                else:
                    self._journal.keep(slot, taken, start + number * self._timing.length)
                    kept, in_a_row = kept + 1, 0
                self._progress(start, len(slots), len(slots) - len(left), kept)
                if in_a_row >= most:
                    raise errors.ProfilingError(
                        f'{in_a_row} windows one after the other on {self._site.host} came to '
                        f'nothing, the last one, {self._journal.last}: {self._journal.path} has '
                        f'the reasons of all; the same command goes on')

    def _listen(self, role: str, told: console.Told, began: float, start: float) -> None:
        was_ready = told.ready is not None
        text = self._site.console(role)
        told.add(text)
        if told.ready is not None:
            if not was_ready:
                calibration.see_clock(self._site.host, told, began, self._clock())
        elif self._clock() > max(start + 2 * self._timing.length, began + calibration.BOOTING):
            raise calibration.silent(self._site.host, text, told, self._clock() - began)

    def _read(self, start: float, first: int,
              last: int) -> tuple[sampling.Samples | None, list[str]]:
        length, polling = self._timing.length, self._timing.polling
        try:
            return self._sampler.read(start + first * length - polling,
                                      start + (last + 1) * length + polling), []
        except samples.TelemetryUnavailable as error:
            return None, [str(error)]

    def _judge(self, start: float, number: int, slot: plan.Slot, told: Mapping[str, console.Told],
               samples: sampling.Samples | None, late: bool,
               ) -> tuple[dict[str, rows.Side] | None, list[str]]:
        """Return the sides of a window, by role; None and why not where it is not complete."""
        begin = start + number * self._timing.length
        end = begin + self._timing.length
        # Later there may be more samples; after that fewer will have to do.
        enough = 1 if late else max(1, self._timing.polls - 2)
        sides, reasons = {}, []
        for role in sites.ROLES:
            name = getattr(slot, role)
            if not name:
                continue
            report = told[role].windows.get(number)
            if report is None:
                reasons.append(told[role].failed.get(
                    number, f'the {role} VM has said nothing of it on its console'))
                continue
            seen = samples and samples.seen(self._site.id(role), begin + self._timing.settle, end)
            if not seen or seen.intervals < enough:
                reasons.append(f'no two samples of the {role} VM lie within it')
                continue
            objections = seen.objections(report)
            if report.units < 1:
                objections.append(f'the {role} VM did no whole unit of {name}')
            reasons += objections
            if not objections:
                sides[role] = rows.Side(name, report.units, report.service / report.units,
                                        seen.observation)
        return (None if reasons else sides), reasons

    def _progress(self, start: float, total: int, done: int, kept: int) -> None:
        left = start + total * self._timing.length + self._timing.polling - self._clock()
        self._report('%d/%d windows, %d given up, %d rows in the file, %s left' % (
            done, total, done - kept, self._journal.rows, duration(max(0.0, left))))

    def _wait(self, seconds: float) -> None:
        interruption.signals.check()
        self._sleep(seconds)
        interruption.signals.check()


def duration(seconds: float) -> str:
    """Return a time for people."""
    minutes = round(seconds / 60)
    if minutes < 2:
        return '%d s' % round(seconds)
    return '%d min' % minutes if minutes < 100 else '%d h %02d min' % divmod(minutes, 60)
