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
import subprocess
import time

from tracon_watcher.lab import acceptance
from tracon_watcher.lab import errors
from tracon_watcher.lab import observation
from tracon_watcher.lab import programs
from tracon_watcher.lab import rows
from tracon_watcher.lab import testbed

SETTLE = 0.4
CPUACCT = pathlib.Path('/sys/fs/cgroup/cpuacct/cpuacct.usage_percpu')


class Canary:
    """The host process that does the same work over and over on the measured core."""

    def __init__(self, program: pathlib.Path, core: int) -> None:
        self._child = subprocess.Popen(
            # real-time: foreign load is accounted for on its own, this is about the machine
            ['taskset', '-c', str(core), 'chrt', '-f', '10', str(program)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE)

    def sing(self) -> float:
        """Seconds the work took now."""
        assert self._child.stdin is not None and self._child.stdout is not None
        self._child.stdin.write(b'\n')
        self._child.stdin.flush()
        return int(self._child.stdout.readline()) * 1e-9

    def close(self) -> None:
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                pipe.close()


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

    def __init__(self, bed: testbed.Testbed, catalogue: dict[str, programs.Unit],
                 iterations_per_second: float, seconds: float,
                 limits: acceptance.Limits) -> None:
        self._bed = bed
        self._catalogue = catalogue
        self._iterations = iterations_per_second
        self._seconds = seconds
        self._limits = limits
        self._canary = Canary(bed.image.canary, bed.core)
        self._canaries = acceptance.Canaries()
        self._ticks = os.sysconf('SC_CLK_TCK')
        self._disturbed = False
        self._last_canary: tuple[float, float] | None = None

    def close(self) -> None:
        self._canary.close()

    def warm_up(self, seconds: float = 0.5) -> None:
        """What a guest does first after its boot is slow and thrown away."""
        for name in self._catalogue:
            for side in testbed.SIDES:
                self._start(side, name, 1)
            time.sleep(seconds)
            self._stop()
        for _ in range(5):
            self._canaries.add(self._canary.sing())

    def watch(self, target: str, background: str | None, attempt: int, seed: int) -> Watched:
        """One window; both guests are idle before and after it."""
        self._wait_for_quiet()
        before = self._sing(reuse=True)
        self._start('target', target, seed)
        if background:
            self._start('background', background, seed + 1)
        try:
            time.sleep(SETTLE)
            started_at = time.time()
            progress = {side: self._bed.guests[side].channel.read() for side in testbed.SIDES}
            host, own = self._host()
            t0, first = self._bed.sample()
            time.sleep(self._seconds)
            t1, last = self._bed.sample()
            host_after, own_after = self._host()
            done = {side: self._bed.guests[side].channel.read().since(progress[side])
                    for side in testbed.SIDES}
        finally:
            self._stop()
        after = self._sing(reuse=False)
        seconds = t1 - t0
        seen = {side: observation.observe(first[side], last[side], seconds)
                for side in testbed.SIDES}
        sides: dict[str, rows.Side | None] = {}
        for side, name in (('target', target), ('background', background)):
            units = done[side].units
            sides[side] = name and rows.Side(
                name, units, done[side].time_per_unit if units else math.nan, seen[side])
        guests = sum(seen[side].guest_cpu + seen[side].host_cpu for side in testbed.SIDES)
        busy = {core: (host_after.busy[core] - host.busy[core]) / seconds for core in host.busy}
        foreign = max(0.0, busy[self._bed.core] - guests)
        other = max(0.0, sum(share for core, share in busy.items() if core != self._bed.core)
                    - (own_after - own) / seconds)
        steal = sum(host_after.steal[core] - host.steal[core] for core in host.steal) / seconds
        deviations = (self._canaries.deviation(before), self._canaries.deviation(after))
        taken = rows.Taken(started_at, seconds, foreign, other, steal, before, after, attempt)
        self._disturbed = (foreign > self._limits.foreign
                           or other > self._limits.foreign_other)
        objections = acceptance.objections(self._limits, foreign, other, steal, deviations)
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
            before, own_before = self._host()
            time.sleep(0.5)
            after, own_after = self._host()
            busy = {core: (after.busy[core] - before.busy[core]) / 0.5 for core in after.busy}
            foreign = busy.pop(self._bed.core)
            other = sum(busy.values()) - (own_after - own_before) / 0.5
            if (foreign < 0.05 + self._limits.foreign and other <= self._limits.foreign_other):
                return

    def _sing(self, reuse: bool) -> float:
        """A canary; one that is less than a second old serves twice."""
        if reuse and self._last_canary and time.monotonic() - self._last_canary[0] < 0.5:
            return self._last_canary[1]
        seconds = self._canary.sing()
        self._canaries.add(seconds)
        self._last_canary = (time.monotonic(), seconds)
        return seconds

    def _host(self) -> tuple[observation.HostSample, float]:
        own = [os.getpid(), *self._bed.helpers()]
        return (observation.host_sample(self._ticks, usage=CPUACCT),
                sum(observation.process_seconds(pid, self._ticks) for pid in own))

    def _start(self, side: str, name: str, seed: int) -> None:
        unit = programs.unit(name, self._catalogue)
        self._bed.guests[side].channel.ask(unit.command(self._iterations, seed))

    def _stop(self) -> None:
        for guest in self._bed.guests.values():
            guest.channel.ask('stop')


def calibrate(bed: testbed.Testbed, rounds: int = 25) -> float:
    """Iterations of the CPU loop a second, in a guest alone: the median over some rounds."""
    iterations = 10_000_000
    answers = []
    for _ in range(rounds):
        answers.append(int(bed.guests['target'].channel.ask('calibrate %d' % iterations)))
    seconds = sorted(answers)[len(answers) // 2] * 1e-9
    if not seconds > 0:
        raise errors.TestbedError('the CPU loop took no time')
    return iterations / seconds
