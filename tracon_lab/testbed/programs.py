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

"""The programs guests run, and the generator's settings, by name.

A program is a unit of work repeated. Closed-loop programs begin the next unit
at once; open-loop ones wait for the next arrival. The generator is a paced
unit whose CPU share, reads and writes per second are chosen freely; offered
more than the host can do, it becomes a closed loop.
"""

import dataclasses

from tracon_lab.models import naming
from tracon_lab.testbed import applications
from tracon_lab.testbed import errors

GENERATOR_PERIOD = 20_000


@dataclasses.dataclass(frozen=True)
class Unit:
    """One unit of work, as the guest's program takes it.

    :param cpu_seconds: of the CPU loop, on an idle host
    :param reads: and writes, a unit; may be fractions
    :param period: microseconds between arrivals; 0 is a closed loop
    :param think: microseconds for which a closed loop does nothing after a unit, about
    :param loops: how many do that at once, which then only compute
    :param walk: bytes of memory, a word of each cache line of which is written
    :param application: its name, when one run of it is a unit
    """

    cpu_seconds: float = 0.0
    reads: float = 0.0
    writes: float = 0.0
    read_bytes: int = 4096
    write_bytes: int = 4096
    sequential_reads: bool = False
    sequential_writes: bool = False
    period: int = 0
    think: int = 0
    loops: int = 1
    queries: int = 0
    walk: int = 0
    application: str = ''

    @property
    def least(self) -> int:
        """Whole ones that a window has to have seen. Runs of an application take long."""
        return 2 if self.application else 3

    def command(self, iterations_per_second: float, seed: int) -> str:
        """The line that starts it."""
        if self.application:
            return 'run application=%s shards=%d seed=%d' % (
                self.application, applications.SHARDS, seed)
        return ('run cpu=%d reads=%.6f writes=%.6f rsize=%d wsize=%d rseq=%d wseq=%d '
                'period=%d think=%d loops=%d queries=%d walk=%d seed=%d' % (
                    self.cpu_seconds * iterations_per_second, self.reads, self.writes,
                    self.read_bytes, self.write_bytes, self.sequential_reads,
                    self.sequential_writes, self.period, self.think, self.loops, self.queries,
                    self.walk, seed))


def generator(cpu_percent: int, reads_per_second: int, writes_per_second: int) -> str:
    """The name of a generator setting: CPU share, reads and writes offered."""
    return 'gen-c%03d-r%d-w%d' % (cpu_percent, reads_per_second, writes_per_second)


def programs(open_reads: int, open_writes: int) -> dict[str, Unit]:
    """The targets, by name; the open-loop ones at the given rates a second.

    `database` is the sqlite3 shell on a table larger than the guest's memory.
    """
    large = 65536
    period = 20_000
    return {
        'calc': Unit(cpu_seconds=0.005),
        'seqread': Unit(reads=4, read_bytes=large, sequential_reads=True),
        'randread': Unit(reads=4),
        'seqwrite': Unit(writes=4, write_bytes=large, sequential_writes=True),
        'mixed': Unit(cpu_seconds=0.002, reads=2, writes=1),
        'openread': Unit(reads=open_reads * period * 1e-6, period=period),
        'openwrite': Unit(writes=open_writes * period * 1e-6, period=period),
        'database': Unit(queries=1),
    }


def real_applications() -> dict[str, Unit]:
    """The applications as targets, by name."""
    return {name: Unit(application=name) for name in applications.NAMES}


def unit(name: str, catalogue: dict[str, Unit]) -> Unit:
    """What runs under `name`: a program of the catalogue or a generator setting."""
    if naming.is_generator(name):
        cpu, reads, writes = naming.setting(name)
        seconds = GENERATOR_PERIOD * 1e-6
        return Unit(cpu_seconds=cpu / 100 * seconds, reads=reads * seconds,
                    writes=writes * seconds, period=GENERATOR_PERIOD)
    if name not in catalogue:
        raise errors.TestbedError('unknown program %r: it is one of %s, or a generator setting '
                                  'such as gen-c050-r200-w100' % (
                                      name, ', '.join(sorted(catalogue))))
    return catalogue[name]
