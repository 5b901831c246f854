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

"""Measures guests with background work behind them, on this machine."""

from __future__ import annotations

import collections.abc
import contextlib
import dataclasses
import functools
import os
import pathlib
import random
import secrets
import sys
import time
import typing

import numpy as np

from tracon_lab.background import comparison
from tracon_lab.background import load_balancer
from tracon_lab.background import programs
from tracon_lab.background import web_service
from tracon_lab.testbed import daemons
from tracon_lab.testbed import errors
from tracon_lab.testbed import host_types
from tracon_lab.testbed import observation
from tracon_lab.testbed import programs as guest_programs
from tracon_lab.testbed import sensor_guest
from tracon_lab.testbed import testbed
from tracon_lab.testbed import window
from tracon_watcher.background import cgroups
from tracon_watcher.background import controllers
from tracon_watcher.background import regulator
from tracon_watcher.probe import images

#: TRACON's programs of its Table 1, with pauses: tenants rarely use all of a core.
GUESTS = {
    comparison.CALC: guest_programs.Unit(cpu_seconds=0.012, think=28_000),
    comparison.SEQREAD: guest_programs.Unit(reads=4, read_bytes=65536, sequential_reads=True,
                                            think=20_000)}
#: Control groups, the most important first, and their programs.
GROUPS = {'tracon-lab-batch': ('sort',),
          'tracon-lab-stressors': ('disk', 'cpu', 'memory', 'network')}
#: What stands for no limit: bytes a second of disks and the network.
_ALL = 1e12
#: Of capacities, which static quotas leave to the background.
_HALF = 0.5
#: Seconds: of the disk's stressor alone; within which programs do a unit of work, and the daemon
#: has learnt.
_CALIBRATION, _BEGIN, _LEARNT = 3.0, 120.0, 180.0


@dataclasses.dataclass(frozen=True)
class Measurement:
    """What an operator chose.

    :param seconds: length of a window, and ``settle`` from an arm's beginning to it
    :param grow: seconds from when tracon-background lets the groups run to the window
    :param shared: whether guests run on all cores; otherwise on the last one alone, which the
        background never uses
    :param learning: samples over which tracon-background learns; None: its own defaults
    :param factor: c of its CPU quota
    :param dial: whether the Web service has two guests, between which DIAL balances requests: one
        on the cores of the background, the other on the last one
    """

    runs: int = 6
    seconds: float = 40.0
    settle: float = 4.0
    grow: float = 15.0
    shared: bool = True
    learning: int | None = None
    factor: float = controllers.PROCESSOR.factor
    dial: bool = False
    seed: int = 1
    accelerator: str = 'auto'
    cache: pathlib.Path | None = None


def measure(chosen: Measurement, report: typing.Callable[[str], None],
            keep: typing.Callable[[dict[str, str], comparison.Windows], None]) -> None:
    """Measure all runs.

    :param keep: called with facts and all windows so far, after each of them
    :raises TestbedError: when it cannot be set up here
    """
    with booted(chosen, len(GUESTS), report) as front, Run(front, chosen) as run:
        facts = {**front.facts, 'disk_MB_per_second': f'{run.disk / 1e6:.0f}'}
        comparison.measure(comparison.ARMS, chosen.runs, chosen.seed, run.window, report,
                           functools.partial(keep, facts))


@dataclasses.dataclass(frozen=True)
class Front:
    """The foreground: guests that run programs, and a Web service, which is a sensor.

    :param rate: of requests, 1/s
    :param balancer: None where the service is one guest
    :param cores: of this machine, in order
    :param facts: of a file's header
    """

    bed: testbed.Testbed
    service: sensor_guest.Sensor
    rate: float
    balancer: load_balancer.Balancer | None
    cores: list[int]
    cache: pathlib.Path
    facts: dict[str, str]


@contextlib.contextmanager
def booted(chosen: Measurement, guests: int,
           report: typing.Callable[[str], None]) -> collections.abc.Iterator[Front]:
    """Boot the foreground, with as much right to cores as other control groups have.

    :param guests: how many run programs
    :raises TestbedError: when it cannot be set up here
    """
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise errors.TestbedError('one core: guests and what is beside them need two')
    cache = (chosen.cache or images.default_cache()).absolute()
    with contextlib.ExitStack() as stack:
        bed = stack.enter_context(testbed.Testbed(
            host_types.named('same-core-raw-disk'), cache, cores[-1], chosen.accelerator,
            guests, database=False, spread=(1,) * guests if chosen.shared else None,
            first=False))
        places = [cores if chosen.shared else cores[-1:]]
        if chosen.dial:
            places = [cores[:-1], cores[-1:]]
        secret = secrets.token_bytes(32)
        workers = [stack.enter_context(sensor_guest.booted(
            cache, ','.join(map(str, one)), accelerator=bed.accelerator, secret=secret))
            for one in places]
        stack.enter_context(web_service.link(*workers))
        report(f'guests are up ({bed.accelerator})')
        balancer = None
        if chosen.dial:
            balancer = stack.enter_context(load_balancer.balanced(workers, cache / 'dial'))
            report('DIAL has learnt')
        yield Front(bed, balancer.service if balancer else workers[0],
                    load_balancer.RATE if balancer else web_service.RATE, balancer, cores, cache, {
            **{name: value for name, value in bed.facts().items()
               if name not in ('database_program', 'host_type', 'perf_events')},
            'cores': str(len(cores)), 'window_seconds': f'{chosen.seconds:g}',
            'seed': str(chosen.seed)})


class Run:
    """A context: background work in its groups, paused between windows."""

    def __init__(self, front: Front, chosen: Measurement) -> None:
        self._bed, self._balancer, self._chosen = front.bed, front.balancer, chosen
        self._clients = functools.partial(web_service.clients, front.service, rate=front.rate)
        self._cores, self._folder = frozenset(front.cores[:-1]), front.cache
        self._device, number = disk_of(self._folder)
        self._tree = cgroups.ControlGroups(list(GROUPS), number)
        self._iterations = window.calibrate(self._bed)
        self._ticks = os.sysconf('SC_CLK_TCK')
        self._programs: dict[str, programs.Program] = {}
        self._stack = contextlib.ExitStack()
        #: Bytes a second of the disk: what its stressor does alone.
        self.disk = 0.0

    def __enter__(self) -> Run:
        with contextlib.ExitStack() as stack:
            programs.prepare(self._folder)
            for name in GROUPS:
                stack.enter_context(group(self._tree, name))
            if missing := self._tree.missing():
                raise errors.TestbedError(f'{missing[0]} is not there: the kernel lacks a '
                                          'controller of control groups')
            stack.callback(self._kill)
            self._limit(comparison.CPUSET)
            # The disk's stressor is the first of all, and alone while it is calibrated.
            for name, members in reversed(GROUPS.items()):
                for member in members:
                    self._programs[member] = programs.start(
                        member, self._folder, folders(self._tree, name))
                    self._wait_for_units()
                    if member == 'disk':
                        before = self._programs[member].done
                        time.sleep(_CALIBRATION)
                        self.disk = (self._programs[member].done - before) / _CALIBRATION * 2**20
            self._limit(comparison.NOTHING)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *unused: object) -> None:
        self._stack.close()

    def _wait_for_units(self) -> None:
        deadline = time.monotonic() + _BEGIN
        while idle := [name for name, one in self._programs.items() if not one.done]:
            if time.monotonic() > deadline:
                raise errors.TestbedError(f'background work does nothing within {_BEGIN:g} s: '
                                          f'{", ".join(idle)}; see their message')
            time.sleep(0.2)

    def _kill(self) -> None:
        for name in GROUPS:
            self._tree.kill(name)
        for one in self._programs.values():
            one.process.join(10.0)

    def window(self, arm: str, run: int) -> dict[str, float]:
        """Take one; returns values by measure."""
        rng = random.Random(self._chosen.seed * 1000 + run)
        with contextlib.ExitStack() as stack:
            for guest, unit in zip(self._bed.guests.values(), GUESTS.values()):
                guest.channel.ask(unit.command(self._iterations, rng.randrange(1, 1 << 30)))
                stack.callback(guest.channel.ask, 'stop')
            stack.callback(self._limit, comparison.NOTHING)
            # tracon-background learns what guests do; so they have requests meanwhile.
            with self._clients(_LEARNT, seed=run):
                if arm == comparison.REGULATED:
                    stack.enter_context(self._regulated())
                    time.sleep(self._chosen.grow)
                else:
                    self._limit(arm)
                    time.sleep(self._chosen.settle)
            return self._taken(rng.randrange(1, 1 << 30))

    def _taken(self, seed: int) -> dict[str, float]:
        guests = list(self._bed.guests.values())
        balancer = self._balancer
        with self._clients(self._chosen.seconds, seed=seed) as results:
            at, busy = time.monotonic(), self._busy()
            served = np.array(balancer.served() if balancer else ())
            before = [guest.channel.read() for guest in guests]
            work = {name: one.done for name, one in self._programs.items()}
            latencies = results()
            if balancer:
                share = balancer.served() - served
            seconds = time.monotonic() - at
            found = {name: (one.done - work[name]) / seconds
                     for name, one in self._programs.items()}
            found[comparison.CPU_USE] = (self._busy() - busy) / seconds
            for name, guest, one in zip(GUESTS, guests, before):
                progress = guest.channel.read().since(one)
                # Without a single whole unit, one takes longer than the window.
                found[name] = progress.time_per_unit or progress.clock
        if balancer:
            found[comparison.DIAL_SHARE] = 100.0 * float(share[0] / share.sum())
        found[comparison.WEB] = float(np.percentile(latencies, 95))
        found[comparison.WEB_MEDIAN] = float(np.median(latencies))
        return found

    def _busy(self) -> float:
        return sum(observation.host_sample(self._ticks, usage=window.CPUACCT).busy.values())

    def _limit(self, arm: str) -> None:
        """Write the limits of an arm, by the product's own hands."""
        wrong = [text for name, limits in limits_of(arm, self._cores, self.disk).items()
                 for text in self._tree.apply(name, limits)]
        rate = web_service.CAPACITY * 1e6 / 8 * _HALF if arm == comparison.STATIC else _ALL / 100
        wrong += cgroups.Shaper(web_service.DEVICE).apply(rate)
        if wrong:
            raise errors.TestbedError('; '.join(wrong))

    @contextlib.contextmanager
    def _regulated(self) -> collections.abc.Iterator[None]:
        """Run tracon-background; it has let the groups run when this yields."""
        folder = self._folder / 'background'
        folder.mkdir(exist_ok=True)
        (folder / 'tracon.conf').write_text(configuration(
            self._cores, self._device, self.disk, self._chosen))
        log = folder / 'tracon-background.log'
        with daemons.running([
                sys.executable, '-m', 'tracon_watcher.cmd.background_service', '--config-file',
                str(folder / 'tracon.conf')], log) as child:
            deadline = time.monotonic() + _LEARNT
            # It pauses them when it starts, and lets them run when the last band is learnt.
            while paused(self._tree):
                if child.poll() is not None or time.monotonic() > deadline:
                    raise errors.TestbedError(
                        f'tracon-background lets nothing run; its log ends with: '
                        f'{daemons.tail(log)}')
                time.sleep(0.2)
            yield


def limits_of(arm: str, cores: frozenset[int], disk: float) -> dict[str, regulator.GroupLimits]:
    """Return the limits of each group in an arm but the regulated one.

    :param cores: of the background
    :param disk: bytes a second
    """
    memory = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
    if arm != comparison.STATIC:
        return {name: regulator.GroupLimits(
            arm == comparison.NOTHING, float(len(cores)), cores, memory,
            {regulator.BYTES: _ALL, regulator.REQUESTS: _ALL / 1e6}, idle=False)
            for name in GROUPS}
    share = _HALF / len(GROUPS)
    # A half each for reads and writes, since they are limited apart.
    return {name: regulator.GroupLimits(
        False, share * len(cores), cores, int(share * memory),
        {regulator.BYTES: share * disk / 2}, idle=False) for name in GROUPS}


def configuration(cores: frozenset[int], device: str, disk: float, chosen: Measurement) -> str:
    """Return the text of tracon-background's configuration file.

    :param device: the disk's, which does so many bytes a second
    """
    lines = [f'groups = {", ".join(GROUPS)}', f'cpus = {cgroups.spelled(cores)}',
             f'disk_device = {device}', f'disk_capacity = {max(disk / 1e6, 0.1):.4g}',
             f'network_device = {web_service.DEVICE}',
             f'network_capacity = {web_service.CAPACITY:g}',
             f'processor_factor = {chosen.factor:g}', 'listen_port = 0']
    if chosen.learning is not None:
        lines += [f'{name}_window = {chosen.learning}' for name in ('memory', 'rate', 'processor')]
    return '[background]\n' + '\n'.join(lines) + '\n'


def disk_of(path: pathlib.Path) -> tuple[str, str]:
    """Return the disk that a file is on, as a whole: its device and its number.

    :raises TestbedError: where the file system is on none
    """
    number = os.stat(path).st_dev
    link = pathlib.Path(f'/sys/dev/block/{os.major(number)}:{os.minor(number)}')
    if not link.exists():
        raise errors.TestbedError(f'{path} is on no disk, so none can be limited: name a folder '
                                  'on one by --cache')
    folder = link.resolve()
    if (folder / 'partition').exists():
        folder = folder.parent
    return f'/dev/{folder.name}', (folder / 'dev').read_text().strip()


def folders(tree: cgroups.ControlGroups, name: str) -> list[pathlib.Path]:
    """Return the folders of a group, one for each hierarchy."""
    return sorted({tree.folder(name, one) for one in (
        'blkio', 'cpu', 'cpuset', 'freezer', 'memory')})


def paused(tree: cgroups.ControlGroups) -> bool:
    """Return whether any group is paused."""
    file, runs = (('cgroup.freeze', '0') if tree.version == 2 else ('freezer.state', 'THAWED'))
    return any((tree.folder(name, 'freezer') / file).read_text().strip() != runs
               for name in tree.names)


@contextlib.contextmanager
def group(tree: cgroups.ControlGroups, name: str) -> collections.abc.Iterator[None]:
    """Make a control group, later remove it.

    :raises TestbedError: where the kernel refuses
    """
    made = folders(tree, name)
    try:
        try:
            if tree.version == 2:
                (made[0].parent / 'cgroup.subtree_control').write_text('+cpu +cpuset +io +memory')
            for folder in made:
                folder.mkdir(exist_ok=True)
            if tree.version == 1:
                for file in ('cpuset.mems', 'cpuset.cpus'):
                    own = tree.folder(name, 'cpuset') / file
                    own.write_text((own.parent.parent / file).read_text())
        except OSError as error:
            raise errors.TestbedError(f'control group {name}: {error}') from None
        yield
    finally:
        deadline = time.monotonic() + 10.0
        for folder in made:
            while folder.exists() and time.monotonic() < deadline:
                with contextlib.suppress(OSError):
                    folder.rmdir()
                time.sleep(0.05)
