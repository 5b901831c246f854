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

"""Takes windows of a guest that a limit of its own holds back, a neighbour, both, or neither.

What the product judges of them is left to the judge that is given, which knows what the hypervisor
counts and no more.
"""

import contextlib
import dataclasses
import os
import pathlib
import random
import statistics
import time
import typing

from tracon_lab.testbed import causes
from tracon_lab.testbed import errors
from tracon_lab.testbed import host_types
from tracon_lab.testbed import interruption
from tracon_lab.testbed import observation
from tracon_lab.testbed import programs
from tracon_lab.testbed import testbed
from tracon_lab.testbed import window
from tracon_watcher.probe import images

if typing.TYPE_CHECKING:
    import libvirt

ATTEMPTS = 4
#: Seconds from the start of programs to that of a window.
SETTLE = 1.5
#: VMs on the same storage that are seen alone before: what storage is like is known from others.
PEERS = 6
DEVICE = 'vda'
LOOP, BURSTS, READER, READS = 'loop', 'bursts', 'reader', 'bursts of reads'
#: Programs of neighbours: some take as much as they can, others pause about half of the time.
NEIGHBOURS = {
    LOOP: programs.Unit(cpu_seconds=0.005), READER: programs.Unit(reads=1),
    BURSTS: programs.Unit(cpu_seconds=0.3, period=1_000_000),
    READS: programs.Unit(reads=45, period=2_000_000)}


def settings() -> list[causes.Setting]:
    """All settings, each as often as the others.

    The looser limit holds a guest back while its neighbour pauses. The tighter one is below what
    any neighbour leaves: beside one the guest does as much as alone.
    """
    found = []
    for resource, always, bursts, loose in (
            (causes.CPU, LOOP, BURSTS, 0.7), (causes.DISK, READER, READS, 0.65)):
        name, unit = resource.lower(), NEIGHBOURS[always]
        found += [causes.Setting(resource, setting, f'{name}-free', unit, None, beside)
                  for setting, beside in ((causes.NEITHER, None), (causes.NEIGHBOUR, always),
                                          (causes.NEIGHBOUR, bursts))]
        for share, beside in ((loose, bursts), (0.3, always)):
            vm = f'{name}-{100 * share:.0f}'
            found += [causes.Setting(resource, causes.OWN, vm, unit, share, None),
                      causes.Setting(resource, causes.BOTH, vm, unit, share, beside)]
    return found


class Judge(typing.Protocol):
    """What judges windows."""

    def begin(self, vm: str, extra_specs: typing.Mapping[str, str]) -> None:
        """Poll as a window of this VM begins; its flavor has these extra specs."""

    def end(self) -> causes.Verdict:
        """Poll as it ends, and judge."""


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
             keep: typing.Callable[[list[causes.Taken]], None]) -> None:
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
        taken: list[causes.Taken] = []
        for _turn in range(turns):
            for setting in self._rng.sample(plan, len(plan)):
                taken.append(self._take(setting, self._specs(setting), setting.vm))
                last = taken[-1]
                report('%s, %s: %.1f units/s, reached %s, slowdown %.2f: %s' % (
                    setting.vm, setting.name, last.rate, last.verdict.reached,
                    last.verdict.slowdown, last.verdict.judged))
                done(count := count + 1, total)
            keep(causes.compared(taken))

    def _specs(self, setting: causes.Setting) -> dict[str, str]:
        """The extra specs of the target's flavor."""
        if setting.share is None:
            return {}
        if setting.resource == causes.CPU:
            return {'quota:cpu_quota': '%d' % (100_000 * setting.share),
                    'quota:cpu_period': '100000'}
        return {'quota:disk_read_iops_sec': '%d' % max(1, self._reads * setting.share)}

    def _take(self, setting: causes.Setting, specs: typing.Mapping[str, str],
              vm: str) -> causes.Taken:
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
            if found.foreign <= causes.FOREIGN:
                break
        assert found is not None
        return found

    def _attempt(self, setting: causes.Setting, specs: typing.Mapping[str, str],
                 vm: str) -> causes.Taken:
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
        limit = ' '.join(f'{name}={value}' for name, value in specs.items())
        return causes.Taken(setting, limit, seconds, max(0.0, foreign),
                            progress.units / progress.clock, verdict)

    def _busy(self) -> float:
        return observation.host_sample(self._ticks, usage=window.CPUACCT).busy[self._bed.core]

    def _used(self) -> float:
        return sum(observation.process_seconds(guest.pid, self._ticks)
                   for guest in self._bed.guests.values())


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
            keep: typing.Callable[[dict[str, str], list[causes.Taken]], None]) -> None:
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
            cache = (chosen.cache or images.default_cache()).absolute()
            bed = stack.enter_context(testbed.Testbed(
                host_types.named(chosen.host_type), cache, chosen.core, chosen.accelerator,
                database=False))
            report('guests are up (%s)' % bed.accelerator)
            iterations = window.calibrate(bed)
            facts = {**{name: value for name, value in bed.facts().items()
                        if name != 'database_program'},
                     'window_seconds': '%g' % chosen.seconds, 'seed': str(chosen.seed),
                     'cause_threshold': '%g times as much without it' % causes.HARM,
                     'judged_threshold': 'slowdown %g' % causes.VISIBLE,
                     'foreign_load_limit': '%g of the measured core' % causes.FOREIGN}
            Run(bed, judge, chosen.seconds, iterations, random.Random(chosen.seed)).work(
                chosen.windows, done, report, lambda taken: keep(facts, taken))
    finally:
        os.sched_setaffinity(0, cores)


def interruptible() -> None:
    """Let a terminated run take its guests down as an interrupted one does."""
    interruption.signals.install()
