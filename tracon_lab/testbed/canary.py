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
"""The canary on the measured core: what the core is worth, before, while and after."""

import contextlib
import os
import pathlib
import statistics
import subprocess
import time

from tracon_lab.testbed import daemons


class Canary:
    """The host processes that keep the measured core awake and time the same work on it.

    :param program: the compiled ``host/canary.c``
    """

    def __init__(self, program: pathlib.Path, core: int) -> None:
        # real-time: foreign load is accounted for on its own, this is about the machine
        self._pulse = _start(core, ['chrt', '-f', '10', str(program), 'pulse'], subprocess.PIPE)
        self._spin = _start(core, [str(program), 'spin'], subprocess.DEVNULL)
        assert self._pulse.stdout is not None
        os.set_blocking(self._pulse.stdout.fileno(), False)
        self._rest = b''
        self._pulses: list[tuple[float, float]] = []

    def between(self, begin: float, end: float) -> list[float]:
        """Seconds that the work took, each time within two moments (monotonic seconds)."""
        self._collect()
        return [seconds for at, seconds in self._pulses if begin <= at <= end]

    def latest(self, seconds: float) -> list[float]:
        now = time.monotonic()
        return self.between(now - seconds, now)

    def _collect(self) -> None:
        assert self._pulse.stdout is not None
        while True:
            try:
                got = os.read(self._pulse.stdout.fileno(), 65536)
            except BlockingIOError:
                break
            if not got:
                break
            *lines, self._rest = (self._rest + got).split(b'\n')
            for line in lines:
                at, took = line.split()
                self._pulses.append((int(at) * 1e-9, int(took) * 1e-9))
        del self._pulses[:-2000]

    def cpu_seconds(self, proc: pathlib.Path = pathlib.Path('/proc')) -> float:
        """CPU time of both processes so far: it is on the measured core, yet not foreign."""
        return sum(int((proc / str(child.pid) / 'schedstat').read_text().split()[0])
                   for child in (self._pulse, self._spin)) * 1e-9

    def close(self) -> None:
        for child in (self._pulse, self._spin):
            child.kill()
            # To die, a process has to run: of the lowest priority beside a busy guest it waits.
            with contextlib.suppress(ProcessLookupError):
                os.sched_setscheduler(child.pid, os.SCHED_OTHER, os.sched_param(0))
                os.sched_setaffinity(child.pid, os.sched_getaffinity(0))
            child.wait()
        if self._pulse.stdout is not None:
            self._pulse.stdout.close()


def _start(core: int, command: list[str], output: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(['taskset', '-c', str(core), *command], stdin=subprocess.DEVNULL,
                            stdout=output, preexec_fn=daemons.die_with_parent)


def speed(pulses: list[float]) -> float:
    """What pulses say together: their mean, none counted with more than twice the median.

    A pulse hit by an interrupt says nothing about the core.
    """
    if not pulses:
        return 0.0
    most = 2 * statistics.median(pulses)
    return statistics.fmean(min(pulse, most) for pulse in pulses)
