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
"""Guests beside each other, set up and taken down whole."""

import contextlib
import fcntl
import os
import pathlib
import shutil
import subprocess
import time
import typing
import uuid

import libvirt

from tracon_lab.models import dataset
from tracon_lab.testbed import application_image
from tracon_lab.testbed import channel
from tracon_lab.testbed import daemons
from tracon_lab.testbed import devices
from tracon_lab.testbed import domain
from tracon_lab.testbed import errors
from tracon_lab.testbed import host_types
from tracon_lab.testbed import image
from tracon_lab.testbed import interruption
from tracon_lab.testbed import observation

BOOT_TIMEOUT = {'kvm': 20.0, 'qemu': 40.0}
# the most each cgroup version allows; 1024 and 100 are one process's
MACHINE_CPU_SHARES = 262144
MACHINE_CPU_WEIGHT = 10000


class Guest:
    """One running guest."""

    def __init__(self, side: str, defined: libvirt.virDomain, port: pathlib.Path) -> None:
        self.side = side
        self.domain = defined
        self.pid = _pid_of(defined.UUIDString())
        self.channel = channel.Channel(port, side)


class Testbed:
    """A context: booted guests, later nothing.

    :param host_type: what the guests share
    :param cache: where images are kept between runs
    :param core: the measured core; the caller has to stay off it
    :param accelerator: kvm, qemu (TCG), or auto: KVM if a guest boots on it
    :param guests: how many, the target included
    :param database: whether the database program is to run
    :param applications: the disk of the applications, if they are to run
    :param spread: the virtual CPUs of each guest, which run on all cores of this machine, as those
        of VMs without pinning do; None: one each, on the measured core
    :param first: whether guests come before all other processes on their cores, and processes that
        watch them before guests; otherwise all have equal weight
    """

    __test__ = False

    def __init__(self, host_type: host_types.HostType, cache: pathlib.Path, core: int,
                 accelerator: str = 'auto', guests: int = 2, database: bool = True,
                 applications: application_image.ApplicationImage | None = None,
                 spread: typing.Sequence[int] | None = None, first: bool = True) -> None:
        self.host_type = host_type
        self.sides = domain.SIDES[:guests]
        self.events: tuple[str, ...] = ()
        self._database = database
        self._applications = applications
        self._spread = spread
        self._first = first
        self.core = core
        self.accelerator = accelerator
        self.guests: dict[str, Guest] = {}
        self._cache = cache
        self._undo: list[typing.Callable[[], object]] = []
        self._device: devices.Device | None = None

    def __enter__(self) -> 'Testbed':
        try:
            self._set_up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _set_up(self) -> None:
        if os.geteuid() != 0:
            raise errors.TestbedError('the testbed pins guests and reads their statistics: '
                                      'run it as root')
        _silence_libvirt()
        self._cache.mkdir(parents=True, exist_ok=True)
        self._lock()
        self.image = image.build(self._cache)
        self._directory = self._cache / ('run-%d' % os.getpid())
        self._directory.mkdir(mode=0o755)
        self._undo.append(lambda: shutil.rmtree(self._directory, ignore_errors=True))
        self._libvirtd = daemons.Libvirt(self._directory)
        self._undo.append(self._libvirtd.__exit__)
        self._libvirtd.__enter__()
        self._connection = libvirt.open('qemu:///system')
        self._undo.append(self._connection.close)
        contents = devices.Contents(
            self._cache, self.sides,
            image.database_disk(self._cache) if self._database else None,
            self._applications.disk if self._applications else None)
        self._device = self.host_type.device(self._directory, contents)
        self._undo.append(self._device.close)
        self._device.start()
        self._undo.append(self._destroy_all)
        if self.accelerator == 'auto':
            self.accelerator = self._probe()
        self.events = self._countable()
        for side in self.sides:
            self.boot(side)
        if self._first:
            self._undo.append(self._raise_shares())
            if self.host_type.separate_cores or self._spread:
                self._undo.append(self._watch_first())

    def __exit__(self, *unused: object) -> None:
        with interruption.signals.held():
            while self._undo:
                step = self._undo.pop()
                try:
                    step()
                except (OSError, libvirt.libvirtError):
                    continue        # what can still be undone is

    def _lock(self) -> None:
        lock = open(self._cache / 'lock', 'w')
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            raise errors.TestbedError('another measurement uses %s: wait for it, or name '
                                      'another cache directory' % self._cache) from None
        self._undo.append(lock.close)
        for stale in self._cache.glob('run-*'):
            shutil.rmtree(stale, ignore_errors=True)

    def _probe(self) -> str:
        """KVM where a guest really runs on it: a device node alone says little."""
        if not os.access('/dev/kvm', os.R_OK | os.W_OK):
            return 'qemu'
        self.accelerator = 'kvm'
        try:
            self.boot('target')
            return 'kvm'
        except (errors.GuestError, libvirt.libvirtError):
            return 'qemu'
        finally:
            self.destroy('target')

    def _countable(self) -> tuple[str, ...]:
        """The perf events that this host counts for a guest; a running one tells."""
        guest = self.boot('target')
        found = []
        for name in dataset.EVENTS:
            try:
                guest.domain.setPerfEvents({name: True}, libvirt.VIR_DOMAIN_AFFECT_LIVE)
                found.append(name)
            except libvirt.libvirtError:
                continue
        return tuple(found)

    def core_of(self, side: str) -> int:
        """The core that all threads of a guest are pinned to."""
        if side == 'target' or not self.host_type.separate_cores:
            return self.core
        return min(os.sched_getaffinity(0) - {self.core})

    def boot(self, side: str) -> Guest:
        """Start a new guest and wait until its program answers."""
        assert self._device is not None
        self.destroy(side)
        name = 'tracon-%s' % side
        port = self._directory / ('%s-%s.sock' % (side, uuid.uuid4().hex[:8]))
        console = self._directory / (side + '.console')
        cpuset, vcpus = str(self.core_of(side)), 1
        if self._spread:
            cpuset = ','.join(map(str, sorted(os.sched_getaffinity(0))))
            vcpus = self._spread[self.sides.index(side)]
        xml = domain.definition(name, self.accelerator, cpuset, self.image.kernel,
                                self.image.initramfs, self._device.disks(side), port, console,
                                self.events, vcpus)
        with interruption.signals.held():
            defined = self._connection.createXML(xml, libvirt.VIR_DOMAIN_START_AUTODESTROY)
            try:
                self.guests[side] = guest = Guest(side, defined, port)
            except errors.GuestError:
                _destroy(defined)
                raise
        try:
            guest.channel.wait_for_boot(BOOT_TIMEOUT[self.accelerator])
        except BaseException:
            with interruption.signals.held():
                self.destroy(side)
            raise
        return guest

    def destroy(self, side: str) -> None:
        guest = self.guests.pop(side, None)
        if guest is not None:
            guest.channel.close()
            _destroy(guest.domain)

    def _destroy_all(self) -> None:
        for side in self.sides:
            self.destroy(side)

    def _raise_shares(self) -> typing.Callable[[], object]:
        """All guests share one cgroup whose default weight is that of a single process."""
        pid = self.guests['target'].pid
        for path, raised in _machine_weight(pid):
            if path.exists():
                before = path.read_text()
                path.write_text(str(raised))
                return lambda: path.exists() and path.write_text(before)
        return lambda: None

    def sample(self) -> tuple[float, dict[str, observation.Sample]]:
        """All guests in one bulk call, and when (monotonic seconds)."""
        wanted = (libvirt.VIR_DOMAIN_STATS_CPU_TOTAL | libvirt.VIR_DOMAIN_STATS_VCPU
                  | libvirt.VIR_DOMAIN_STATS_BLOCK | libvirt.VIR_DOMAIN_STATS_PERF)
        begin = time.monotonic()
        threads = {side: observation.vcpu_seconds(guest.pid)
                   for side, guest in self.guests.items()}
        try:
            answers = self._connection.domainListGetStats(
                [guest.domain for guest in self.guests.values()], wanted)
        except libvirt.libvirtError as exc:
            raise errors.GuestError('domain statistics: %s' % exc) from exc
        at = (begin + time.monotonic()) / 2
        found = {answered.name(): stats for answered, stats in answers}
        try:
            return at, {side: observation.sample(found['tracon-' + side], threads[side])
                        for side in self.guests}
        except KeyError as exc:
            raise errors.GuestError('no domain statistics for %s' % exc) from exc

    def _watch_first(self) -> typing.Callable[[], None]:
        """Let the watching processes run before guests do; returns what undoes it.

        On separate cores the watchers share theirs with the background, and a bulk call waits for
        its turn again and again, half a second in all.
        """
        tasks = [int(task.name) for pid in (os.getpid(), *self._libvirtd.processes())
                 for task in pathlib.Path('/proc/%d/task' % pid).iterdir()]
        for task in tasks:
            # What they start, guests among it, is scheduled as ever.
            with contextlib.suppress(ProcessLookupError):       # a thread that has just ended
                os.sched_setscheduler(task, os.SCHED_RR | os.SCHED_RESET_ON_FORK,
                                      os.sched_param(1))

        def undo() -> None:
            for task in tasks:
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setscheduler(task, os.SCHED_OTHER, os.sched_param(0))
        return undo

    def helpers(self) -> list[int]:
        """Processes that serve the testbed; their CPU time is no foreign load."""
        assert self._device is not None
        return [*self._libvirtd.processes(), *self._device.processes()]

    def facts(self) -> dict[str, str]:
        """What a measurement's header says of the testbed."""
        version = self._connection.getVersion()
        return {
            'host_type': self.host_type.name,
            'emulated': self.host_type.emulated,
            'kernel': 'host %s, guest %s' % (image.host_kernel(), self.image.kernel_release),
            'qemu': '%d.%d.%d' % (version // 1000000, version // 1000 % 1000, version % 1000),
            'accelerator': {'kvm': 'kvm', 'qemu': 'tcg'}[self.accelerator],
            'perf_events': ', '.join(self.events) or 'none',
            **self._programs(),
        }

    def _programs(self) -> dict[str, str]:
        if self._applications is not None:
            return {'applications': ', '.join(
                '%s %s' % item for item in self._applications.versions.items())}
        return {'database_program': 'sqlite3 %s, 8 MiB page cache' % _sqlite_version()}


def _silence_libvirt() -> None:
    libvirt.registerErrorHandler(lambda *unused: None, None)


def _destroy(defined: libvirt.virDomain) -> None:
    try:
        defined.destroy()
    except libvirt.libvirtError as exc:
        if exc.get_error_code() not in (libvirt.VIR_ERR_NO_DOMAIN,
                                        libvirt.VIR_ERR_OPERATION_INVALID):
            raise


def _pid_of(domain_uuid: str) -> int:
    for entry in pathlib.Path('/proc').glob('[0-9]*/cmdline'):
        try:
            arguments = entry.read_bytes().split(b'\0')
        except OSError:
            continue
        if b'-uuid' in arguments and domain_uuid.encode() in arguments:
            return int(entry.parent.name)
    raise errors.GuestError('no QEMU process with UUID %s' % domain_uuid)


def _machine_weight(pid: int) -> list[tuple[pathlib.Path, int]]:
    """The weight files of the cgroup above all guests: version 1, version 2."""
    root = pathlib.Path('/sys/fs/cgroup')
    found = []
    for line in pathlib.Path('/proc/%d/cgroup' % pid).read_text().splitlines():
        _number, controllers, path = line.split(':', 2)
        top = pathlib.PurePath(path).parts[1:2]
        if not top or not top[0].startswith('machine'):
            continue
        if 'cpu' in controllers.split(','):
            found.append((root / 'cpu' / top[0] / 'cpu.shares', MACHINE_CPU_SHARES))
        elif not controllers:
            found.append((root / top[0] / 'cpu.weight', MACHINE_CPU_WEIGHT))
    return found


def _sqlite_version() -> str:
    answer = subprocess.run(['sqlite3', '--version'], capture_output=True, text=True, check=True)
    return answer.stdout.split()[0]
