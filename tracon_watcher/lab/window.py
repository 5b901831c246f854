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

from tracon_watcher.lab import acceptance
from tracon_watcher.lab import canary
from tracon_watcher.lab import domain
from tracon_watcher.lab import errors
from tracon_watcher.lab import observation
from tracon_watcher.lab import programs
from tracon_watcher.lab import rows

if typing.TYPE_CHECKING:
    from tracon_watcher.lab import testbed

SETTLE = 0.35
BRACKET = 0.15          # seconds of canary before and after a window
CPUACCT = pathlib.Path('/sys/fs/cgroup/cpuacct/cpuacct.usage_percpu')


@dataclasses.dataclass(frozen=True)
class Watched:
    """A window as it came out, kept or not."""

    sides: dict[str, rows.Side | None]
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
        for name in self._catalogue:
            for side in domain.SIDES:
                self._start(side, name, 1)
            time.sleep(seconds)
            self._stop()
        for _ in range(8):
            time.sleep(0.3)
            self._usual.add(canary.speed(self._canary.latest(0.3)))

    def watch(self, target: str, background: str | None, attempt: int, seed: int) -> Watched:
        """One window; both guests are idle before and after it."""
        self._wait_for_quiet()
        self._wait_for_steadiness()
        begin = time.monotonic()
        self._start('target', target, seed)
        if background:
            self._start('background', background, seed + 1)
        time.sleep(SETTLE)
        started_at = time.time()
        asked = time.monotonic()
        progress = {side: self._bed.guests[side].channel.read() for side in domain.SIDES}
        host, own, canaries = self._host()
        t0, first = self._bed.sample()
        time.sleep(self._seconds / 3)
        if self._deviation(t0, time.monotonic()) < 3 * self._limits.canary:
            time.sleep(max(0.0, self._seconds - (time.monotonic() - t0)))
        t1, last = self._bed.sample()
        host_after, own_after, canaries_after = self._host()
        done = {side: self._bed.guests[side].channel.read().since(progress[side])
                for side in domain.SIDES}
        whole = time.monotonic() - asked
        self._stop()
        end = time.monotonic()
        time.sleep(BRACKET)
        seconds = t1 - t0
        seen = {side: observation.observe(first[side], last[side], seconds)
                for side in domain.SIDES}
        sides: dict[str, rows.Side | None] = {}
        for side, name in (('target', target), ('background', background)):
            units = done[side].units
            sides[side] = name and rows.Side(
                name, units, done[side].time_per_unit if units else math.nan, seen[side])
        guests = sum(seen[side].guest_cpu + seen[side].host_cpu for side in domain.SIDES)
        busy = {core: (host_after.busy[core] - host.busy[core]) / seconds for core in host.busy}
        foreign = max(0.0, busy[self._bed.core] - guests
                      - (canaries_after - canaries) / seconds)
        other = max(0.0, sum(share for core, share in busy.items() if core != self._bed.core)
                    - (own_after - own) / seconds)
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
        if whole > 1.25 * self._seconds + 0.2:
            objections.append('the window took %.1f s: something was stopped' % whole)
        if seconds < 0.9 * self._seconds and not objections:
            objections.append('the window was cut short')
        for side in sides.values():
            if side is not None and side.units < 3:
                objections.append('%s did only %d units' % (side.name, side.units))
        return Watched(sides, taken, objections)

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
