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
if without that, beside the same neighbour, it does. What is judged is left to whoever is given:
the product, from what the hypervisor counts.

Thresholds were set before anything was measured with them.
"""

import contextlib
import csv
import dataclasses
import os
import pathlib
import random
import statistics
import time
import typing

from tracon_watcher.lab import errors
from tracon_watcher.lab import host_types
from tracon_watcher.lab import image
from tracon_watcher.lab import interruption
from tracon_watcher.lab import observation
from tracon_watcher.lab import programs
from tracon_watcher.lab import testbed
from tracon_watcher.lab import window

if typing.TYPE_CHECKING:
    import libvirt

#: How many times as much a guest does without a cause, at least.
HARM = 1.1
#: Slowdown that the product says from which on it names neighbours as one; as its API does.
VISIBLE = 1.1
#: Foreign CPU on the measured core, as a share of it, at which a window is taken again.
FOREIGN = 0.1
ATTEMPTS = 4
#: Seconds from the start of programs to that of a window.
SETTLE = 1.5
#: VMs on the same storage that are seen alone before: what storage is like is known from others.
PEERS = 6
DEVICE = 'vda'
CPU, DISK = 'CPU', 'disk'
NEITHER, OWN, NEIGHBOUR, BOTH = 'neither', 'own limit', 'neighbour', 'both'
CAUSES = (NEITHER, OWN, NEIGHBOUR, BOTH)
OWN_AND_UNKNOWN, UNKNOWN = 'own limit, rest unknown', 'unknown'
JUDGED = (*CAUSES, OWN_AND_UNKNOWN, UNKNOWN)
COLUMNS = ('resource', 'setting', 'vm', 'limit', 'neighbour', 'seconds', 'foreign',
           'units_per_second', 'without_neighbour', 'without_limit', 'reached', 'slowdown',
           'cause', 'judged')
MATRIX = ('resource', 'cause', 'windows', *JUDGED, 'right')


@dataclasses.dataclass(frozen=True)
class Setting:
    """What runs in a window.

    :param vm: by which name its target is known
    :param share: of what the target does alone, that its own limit allows; None without one
    :param beside: the program of the neighbour, one of :data:`NEIGHBOURS`; None: there is none
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


LOOP, BURSTS, READER, READS = 'loop', 'bursts', 'reader', 'bursts of reads'
#: Programs of neighbours: some take as much as they can, others pause about half of the time.
NEIGHBOURS = {
    LOOP: programs.Unit(cpu_seconds=0.005), READER: programs.Unit(reads=1),
    BURSTS: programs.Unit(cpu_seconds=0.3, period=1_000_000),
    READS: programs.Unit(reads=45, period=2_000_000)}


def settings() -> list[Setting]:
    """All settings, each as often as the others.

    The looser limit holds a guest back while its neighbour pauses. The tighter one is below what
    any neighbour leaves: beside one the guest does as much as alone.
    """
    found = []
    for resource, always, bursts, loose in ((CPU, LOOP, BURSTS, 0.7), (DISK, READER, READS, 0.65)):
        name, unit = resource.lower(), NEIGHBOURS[always]
        found += [Setting(resource, setting, f'{name}-free', unit, None, beside)
                  for setting, beside in ((NEITHER, None), (NEIGHBOUR, always),
                                          (NEIGHBOUR, bursts))]
        for share, beside in ((loose, bursts), (0.3, always)):
            vm = f'{name}-{100 * share:.0f}'
            found += [Setting(resource, OWN, vm, unit, share, None),
                      Setting(resource, BOTH, vm, unit, share, beside)]
    return found


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


class Judge(typing.Protocol):
    """What judges windows."""

    def begin(self, vm: str, extra_specs: typing.Mapping[str, str]) -> None:
        """Poll as a window of this VM begins; its flavor has these extra specs."""

    def end(self) -> Verdict:
        """Poll as it ends, and judge."""


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
                self.setting.beside or 'none', round(self.seconds, 3),
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


def read(lines: typing.Iterable[str], source: str) -> list[dict[str, str]]:
    """Read windows that :func:`write` has written.

    :raises TestbedError: when a column is missing or a cause unknown
    """
    rows = csv.DictReader(line for line in lines if not line.startswith('#'))
    missing = set(COLUMNS) - set(rows.fieldnames or ())
    if missing:
        raise errors.TestbedError('%s: column %s is missing; write the file with '
                                  '`tracon lab own limits --output`' % (source, min(missing)))
    found = list(rows)
    for row in found:
        if row['cause'] not in CAUSES or row['judged'] not in JUDGED:
            raise errors.TestbedError('%s: cause %r, judged %r: not of this release'
                                      % (source, row['cause'], row['judged']))
    return found


def matrix(rows: typing.Sequence[typing.Mapping[str, str]]) -> list[tuple[typing.Any, ...]]:
    """The confusion matrix: a row for each resource and true cause, a column for each verdict.

    The last column is the share that was judged right; who says that it does not know all is not.
    Windows that foreign load disturbed each time they were taken are left out.
    """
    rows = [row for row in rows if float(row['foreign']) <= FOREIGN]
    found = []
    for resource in (CPU, DISK):
        for cause in CAUSES:
            own = [row['judged'] for row in rows
                   if row['resource'] == resource and row['cause'] == cause]
            if own:
                found.append((resource, cause, len(own), *(own.count(name) for name in JUDGED),
                              own.count(cause) / len(own)))
    return found


class Run:
    """Takes windows on a testbed.

    :param seconds: length of a window
    """

    def __init__(self, bed: testbed.Testbed, judge: Judge, seconds: float, iterations: float,
                 rng: random.Random) -> None:
        self._bed = bed
        self._judge = judge
        self._seconds = seconds
        self._iterations = iterations
        self._rng = rng
        self._ticks = os.sysconf('SC_CLK_TCK')
        self._reads = 0.0

    def work(self, windows: int, done: typing.Callable[[int, int], None],
             report: typing.Callable[[str], None],
             keep: typing.Callable[[list[Taken]], None]) -> None:
        """Take at least so many windows, the settings in a random order again and again.

        :param done: called with the number of windows that are done, and that of all
        :param keep: called with all windows so far each time that all settings had their turn
        """
        plan = settings()
        free = next(one for one in plan if one.vm == 'disk-free')
        self._take(free, {}, 'warm-up')
        peers = [f'peer-{number}' for number in range(PEERS)]
        turns = -(-windows // len(plan))
        total = len(peers) + len({one.vm for one in plan}) + turns * len(plan)
        count, rates = 0, []
        for peer in peers:
            rates.append(self._take(dataclasses.replace(free, vm=peer), {}, peer).rate)
            done(count := count + 1, total)
        self._reads = statistics.median(rates)
        # Each VM was there before, alone.
        alone = {one.vm: dataclasses.replace(one, beside=None) for one in plan}
        for one in alone.values():
            self._take(one, self._specs(one), one.vm)
            done(count := count + 1, total)
        taken: list[Taken] = []
        for _turn in range(turns):
            for setting in self._rng.sample(plan, len(plan)):
                taken.append(self._take(setting, self._specs(setting), setting.vm))
                last = taken[-1]
                report('%s, %s: %.1f units/s, reached %s, slowdown %.2f: %s' % (
                    setting.vm, setting.name, last.rate, last.verdict.reached,
                    last.verdict.slowdown, last.verdict.judged))
                done(count := count + 1, total)
            keep(compared(taken))

    def _specs(self, setting: Setting) -> dict[str, str]:
        """The extra specs of the target's flavor."""
        if setting.share is None:
            return {}
        if setting.resource == CPU:
            return {'quota:cpu_quota': '%d' % (100_000 * setting.share),
                    'quota:cpu_period': '100000'}
        return {'quota:disk_read_iops_sec': '%d' % max(1, self._reads * setting.share)}

    def _take(self, setting: Setting, specs: typing.Mapping[str, str], vm: str) -> Taken:
        found = None
        for attempt in range(ATTEMPTS):
            try:
                found = self._attempt(setting, specs, vm)
            except errors.GuestError:
                if attempt == ATTEMPTS - 1:
                    raise
                for side in self._bed.sides[:2]:
                    self._bed.boot(side)
                continue
            if found.foreign <= FOREIGN:
                break
        assert found is not None
        return found

    def _attempt(self, setting: Setting, specs: typing.Mapping[str, str], vm: str) -> Taken:
        target, background = (self._bed.guests[side] for side in self._bed.sides[:2])
        apply(target.domain, specs)
        if setting.beside is not None:
            background.channel.ask(NEIGHBOURS[setting.beside].command(
                self._iterations, self._rng.randrange(1, 1 << 30)))
        target.channel.ask(setting.target.command(self._iterations, self._rng.randrange(
            1, 1 << 30)))
        time.sleep(SETTLE)
        before, busy, used, at = (target.channel.read(), self._busy(), self._used(),
                                  time.monotonic())
        self._judge.begin(vm, specs)
        time.sleep(self._seconds)
        verdict = self._judge.end()
        progress = target.channel.read().since(before)
        seconds = time.monotonic() - at
        foreign = (self._busy() - busy - (self._used() - used)) / seconds
        for guest in (target, background):
            guest.channel.ask('stop')
        return Taken(setting, ' '.join(f'{name}={value}' for name, value in specs.items()),
                     seconds, max(0.0, foreign), progress.units / progress.clock, verdict)

    def _busy(self) -> float:
        return observation.host_sample(self._ticks, usage=window.CPUACCT).busy[self._bed.core]

    def _used(self) -> float:
        return sum(observation.process_seconds(guest.pid, self._ticks)
                   for guest in self._bed.guests.values())


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


def apply(domain: 'libvirt.virDomain', specs: typing.Mapping[str, str]) -> None:
    """Limit a running guest as Nova's libvirt driver limits one whose flavor has these specs."""
    quota = int(specs.get('quota:cpu_quota', -1))
    domain.setSchedulerParametersFlags(
        {'vcpu_quota': quota, 'vcpu_period': int(specs.get('quota:cpu_period', 100_000))})
    domain.setBlockIoTune(DEVICE, {
        name: int(specs.get('quota:disk_' + name, 0)) for name in (
            'read_iops_sec', 'write_iops_sec', 'total_iops_sec', 'read_bytes_sec',
            'write_bytes_sec', 'total_bytes_sec')})


@dataclasses.dataclass(frozen=True)
class Measurement:
    """What an operator chose.

    :param windows: at least so many
    :param seconds: length of a window
    """

    host_type: str
    windows: int
    seconds: float
    core: int
    seed: int = 1
    accelerator: str = 'auto'
    cache: pathlib.Path | None = None


def measure(chosen: Measurement, judge: Judge, done: typing.Callable[[int, int], None],
            report: typing.Callable[[str], None],
            keep: typing.Callable[[dict[str, str], list[Taken]], None]) -> None:
    """Measure on this machine.

    :param keep: called now and then with facts and all windows so far
    :raises TestbedError: when the testbed cannot be set up here
    """
    cores = os.sched_getaffinity(0)
    if not cores - {chosen.core}:
        raise errors.TestbedError('the testbed measures on one core and watches from another: '
                                  'this machine has only one')
    os.sched_setaffinity(0, cores - {chosen.core})
    try:
        with contextlib.ExitStack() as stack:
            cache = (chosen.cache or image.default_cache()).absolute()
            bed = stack.enter_context(testbed.Testbed(
                host_types.named(chosen.host_type), cache, chosen.core, chosen.accelerator,
                database=False))
            report('guests are up (%s)' % bed.accelerator)
            iterations = window.calibrate(bed)
            facts = {**{name: value for name, value in bed.facts().items()
                        if name != 'database_program'},
                     'window_seconds': '%g' % chosen.seconds, 'seed': str(chosen.seed),
                     'cause_threshold': '%g times as much without it' % HARM,
                     'judged_threshold': 'slowdown %g' % VISIBLE,
                     'foreign_load_limit': '%g of the measured core' % FOREIGN}
            Run(bed, judge, chosen.seconds, iterations, random.Random(chosen.seed)).work(
                chosen.windows, done, report, lambda taken: keep(facts, taken))
    finally:
        os.sched_setaffinity(0, cores)


def interruptible() -> None:
    """Let a terminated run take its guests down as an interrupted one does."""
    interruption.signals.install()
