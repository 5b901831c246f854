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
"""One measured window: both programs brought to steady state, then watched."""

import dataclasses
import math
import os
import pathlib
import time
import typing

from tracon_lab.testbed import acceptance
from tracon_lab.testbed import canary
from tracon_lab.testbed import channel
from tracon_lab.testbed import errors
from tracon_lab.testbed import observation
from tracon_lab.testbed import programs
from tracon_lab.testbed import rows

if typing.TYPE_CHECKING:
    from tracon_lab.testbed import testbed

SETTLE = 0.35
LONGEST = 8             # times its length is how far a window is drawn out for enough units
BRACKET = 0.15          # seconds of canary before and after a window
CPUACCT = pathlib.Path('/sys/fs/cgroup/cpuacct/cpuacct.usage_percpu')


@dataclasses.dataclass(frozen=True)
class Watched:
    """A window as it came out, kept or not.

    :param sides: the target, then what ran beside it
    """

    sides: list[rows.Side]
    taken: rows.Taken
    objections: list[str]


class Observer:
    """Takes windows on a testbed.

    :param iterations_per_second: of the guests' CPU loop, on this host
    :param seconds: length of a window
    """

    def __init__(self, bed: 'testbed.Testbed', catalogue: dict[str, programs.Unit],
                 iterations_per_second: float, seconds: float,
                 limits: acceptance.Limits) -> None:
        self._bed = bed
        self._catalogue = catalogue
        self._iterations = iterations_per_second
        self._seconds = seconds
        self._limits = limits
        self._canary = canary.Canary(bed.image.canary, bed.core)
        self._usual = acceptance.Canaries()
        self._ticks = os.sysconf('SC_CLK_TCK')
        self._disturbed = False

    def close(self) -> None:
        self._canary.close()

    def warm_up(self, seconds: float = 0.5) -> None:
        """What a guest does first after its boot is slow and thrown away."""
        for name, unit in self._catalogue.items():
            for seed, guest in enumerate(self._bed.guests):
                self._start(guest, name, seed)
            # an application's program and libraries are read from disk at its first run
            for guest in self._bed.guests if unit.application else ():
                self._wait_for_units(guest, unit.least)
            time.sleep(seconds)
            self._stop()
        for _ in range(8):
            time.sleep(0.3)
            self._usual.add(canary.speed(self._canary.latest(0.3)))

    def _wait_for_units(self, guest: str, count: int, patience: float = 120.0) -> None:
        deadline = time.monotonic() + patience
        while self._read(guest).units < count:
            if time.monotonic() > deadline:
                raise errors.GuestError('guest %s took more than %.0f s for its first %d units'
                                        % (guest, patience, count))
            time.sleep(0.2)

    def watch(self, target: str, backgrounds: typing.Sequence[str], attempt: int,
              seed: int) -> Watched:
        """One window; all guests are idle before and after it."""
        self._wait_for_quiet()
        self._wait_for_steadiness()
        names = (target, *backgrounds)
        least = [programs.unit(name, self._catalogue).least for name in names]
        guests = tuple(self._bed.guests)[:len(names)]
        begin = time.monotonic()
        for number, (guest, name) in enumerate(zip(guests, names)):
            self._start(guest, name, seed + number)
        time.sleep(SETTLE)
        started_at = time.time()
        asked = time.monotonic()
        progress = [self._read(guest) for guest in guests]
        host, own, canaries = self._host()
        t0, first = self._bed.sample()
        self._pass_time(t0, guests, progress, least)
        t1, last = self._bed.sample()
        host_after, own_after, canaries_after = self._host()
        done = [self._read(guest).since(before) for guest, before in zip(guests, progress)]
        whole = time.monotonic() - asked
        self._stop()
        end = time.monotonic()
        time.sleep(BRACKET)
        seconds = t1 - t0
        seen = {guest: observation.observe(first[guest], last[guest], seconds)
                for guest in self._bed.guests}
        sides = [rows.Side(name, one.units, one.time_per_unit if one.units else math.nan,
                           seen[guest]) for guest, name, one in zip(guests, names, done)]
        busy = {core: (host_after.busy[core] - host.busy[core]) / seconds for core in host.busy}
        for guest, one in seen.items():
            busy[self._bed.core_of(guest)] -= one.guest_cpu + one.host_cpu
        foreign = max(0.0, busy.pop(self._bed.core) - (canaries_after - canaries) / seconds)
        other = max(0.0, sum(busy.values()) - (own_after - own) / seconds)
        steal = sum(host_after.steal[core] - host.steal[core] for core in host.steal) / seconds
        before, during, after = (canary.speed(self._canary.between(*span)) for span in (
            (begin - BRACKET, begin), (t0, t1), (end, end + BRACKET)))
        self._usual.add(during)
        taken = rows.Taken(started_at, seconds, foreign, other, steal, before, during, after,
                           attempt)
        self._disturbed = (foreign > self._limits.foreign
                           or other > self._limits.foreign_other)
        objections = acceptance.objections(
            self._limits, foreign, other, steal, self._usual.deviation(during),
            (self._usual.deviation(before), self._usual.deviation(after)))
        if whole > seconds + 0.25 * self._seconds + 0.2:
            objections.append('the window took %.1f s: something was stopped' % whole)
        if seconds < 0.9 * self._seconds and not objections:
            objections.append('the window was cut short')
        for side, count in zip(sides, least):
            if side.units < count:
                objections.append('%s did only %d units' % (side.name, side.units))
        return Watched(sides, taken, objections)

    def _pass_time(self, t0: float, guests: typing.Sequence[str],
                   progress: typing.Sequence[channel.Progress],
                   least: typing.Sequence[int]) -> None:
        """Wait for the end of the window: until its time is over and enough units are done."""
        time.sleep(self._seconds / 3)
        if self._deviation(t0, time.monotonic()) >= 3 * self._limits.canary:
            return
        while True:
            time.sleep(max(0.0, self._seconds - (time.monotonic() - t0)))
            passed = time.monotonic() - t0
            enough = all(self._read(guest).since(before).units >= count
                         for guest, before, count in zip(guests, progress, least))
            if enough or passed >= LONGEST * self._seconds:
                return
            time.sleep(self._seconds / 4)

    def _read(self, guest: str) -> channel.Progress:
        return self._bed.guests[guest].channel.read()

    def _wait_for_quiet(self, patience: float = 60.0) -> None:
        """While the last windows show foreign load, don't spend attempts on it."""
        if not self._disturbed:
            return
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            before, own_before, canaries_before = self._host()
            time.sleep(0.5)
            after, own_after, canaries_after = self._host()
            busy = {core: (after.busy[core] - before.busy[core]) / 0.5 for core in after.busy}
            foreign = busy.pop(self._bed.core) - (canaries_after - canaries_before) / 0.5
            other = sum(busy.values()) - (own_after - own_before) / 0.5
            if (foreign < 0.05 + self._limits.foreign and other <= self._limits.foreign_other):
                return

    def _deviation(self, begin: float, end: float) -> float:
        return self._usual.deviation(canary.speed(self._canary.between(begin, end)))

    def _wait_for_steadiness(self, patience: float = 4.0) -> None:
        """While the canary is off, a window would be taken in vain."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            now = time.monotonic()
            if abs(self._deviation(now - BRACKET, now)) <= 1.5 * self._limits.canary:
                return
            time.sleep(0.05)

    def _host(self) -> tuple[observation.HostSample, float, float]:
        own = [os.getpid(), *self._bed.helpers()]
        return (observation.host_sample(self._ticks, usage=CPUACCT),
                sum(observation.process_seconds(pid, self._ticks) for pid in own),
                self._canary.cpu_seconds())

    def _start(self, side: str, name: str, seed: int) -> None:
        unit = programs.unit(name, self._catalogue)
        self._bed.guests[side].channel.ask(unit.command(self._iterations, seed))

    def _stop(self) -> None:
        for guest in self._bed.guests.values():
            guest.channel.ask('stop')


def calibrate(bed: 'testbed.Testbed', rounds: int = 25) -> float:
    """Iterations of the CPU loop a second, in a guest alone: the median over some rounds."""
    iterations = 10_000_000
    answers = []
    for _ in range(rounds):
        answers.append(int(bed.guests['target'].channel.ask('calibrate %d' % iterations)))
    seconds = sorted(answers)[len(answers) // 2] * 1e-9
    if not seconds > 0:
        raise errors.TestbedError('the CPU loop took no time')
    return iterations / seconds
