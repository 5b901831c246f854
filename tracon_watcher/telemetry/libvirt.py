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

"""Counters of a host's domains, from one bulk call to libvirt a poll."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import queue
import threading
import time
from typing import Any, Callable, Iterable, Mapping

import libvirt

from tracon_watcher import errors
from tracon_watcher.telemetry import host_counters
from tracon_watcher.telemetry import meters

#: Every field of libvirt's statistics that is read; N is the number of a virtual CPU or a disk.
FIELDS = (
    'state.state', 'state.reason', 'cpu.time', 'vcpu.current', 'vcpu.maximum', 'vcpu.N.time',
    'vcpu.N.delay', 'block.count', 'block.N.rd.reqs', 'block.N.rd.times',
    'block.N.rd.bytes', 'block.N.wr.reqs', 'block.N.wr.times', 'block.N.wr.bytes',
    'perf.instructions', 'perf.cpu_cycles', 'perf.cache_misses', 'net.count', 'net.N.tx.bytes')
#: What a VM sent, bytes: no meter, but asked for by who watches a host.
SENT = 'net.tx.bytes'

# virDomainState and virDomainPausedReason.
_PAUSED = 3
_NOT_THERE = frozenset({5, 6})                  # SHUTOFF, CRASHED
_NOT_YET_OR_ELSEWHERE = frozenset({2, 11, 12, 13})  # MIGRATION, STARTING_UP, POSTCOPY (_FAILED)

_VCPUS = {meters.CPU_GUEST.name: 'time', meters.CPU_DELAY.name: 'delay'}
_DISKS = {meters.READ_REQUESTS.name: 'rd.reqs', meters.WRITE_REQUESTS.name: 'wr.reqs',
          meters.READ_TIME.name: 'rd.times', meters.WRITE_TIME.name: 'wr.times',
          meters.READ_BYTES.name: 'rd.bytes', meters.WRITE_BYTES.name: 'wr.bytes'}
_EVENTS = {meters.INSTRUCTIONS.name: 'perf.instructions', meters.CYCLES.name: 'perf.cpu_cycles',
           meters.CACHE_MISSES.name: 'perf.cache_misses'}


def counters(stats: Mapping[str, Any]) -> dict[str, int]:
    """Return a domain's counters by the name of their meter; what is unknown is not there.

    A sum of which one part is missing is unknown too. ``vcpu.N.time`` is in ticks of 10 ms, and
    behind by up to one a virtual CPU, but does not drift.

    :param stats: the fields of :data:`FIELDS`, as far as libvirt reports them
    """
    found = {}
    vcpus = stats.get('vcpu.current', 0)
    for name, field in _VCPUS.items():
        # Numbers have holes where a virtual CPU in the middle was unplugged.
        parts = _parts(stats, 'vcpu', field, stats.get('vcpu.maximum', vcpus))
        if vcpus and len(parts) == vcpus:
            found[name] = sum(parts)
    disks = stats.get('block.count')
    for name, field in _DISKS.items():
        parts = _parts(stats, 'block', field, disks or 0)
        if disks is not None and len(parts) == disks:
            found[name] = sum(parts)
    guest = found.get(meters.CPU_GUEST.name)
    if guest is not None and 'cpu.time' in stats:
        found[meters.CPU_HOST.name] = max(0, stats['cpu.time'] - guest)
    if 'net.count' in stats:
        # An interface that is the host's own device has no counter.
        found[SENT] = sum(_parts(stats, 'net', 'tx.bytes', stats['net.count']))
    found.update((name, stats[field]) for name, field in _EVENTS.items() if field in stats)
    return found


def _parts(stats: Mapping[str, Any], group: str, field: str, count: int) -> list[int]:
    found = []
    for number in range(count):
        key = f'{group}.{number}.{field}'
        if key in stats:
            found.append(stats[key])
    return found


def runs_here(stats: Mapping[str, Any]) -> bool:
    """Return whether the domain is this host's to report.

    During a live migration both hosts have it, and the one that it is paused on by the migration
    has counters that stand still or begin at nothing. One that ends during the call is shut off,
    with numbers that mean nothing.
    """
    state = stats.get('state.state')
    if state == _PAUSED:
        return stats.get('state.reason') not in _NOT_YET_OR_ELSEWHERE
    return state not in _NOT_THERE


@dataclasses.dataclass(frozen=True)
class _Last:
    """What the next poll has to know of a domain."""

    cpu: int
    host: int
    disks: bool


class Domains:
    """The counters of a host's domains, poll after poll."""

    def __init__(self) -> None:
        self._last: dict[str, _Last] = {}

    def counted(self, answers: Iterable[tuple[str, int, Mapping[str, Any]]],
                throttled: Mapping[str, int] | None = None) -> dict[str, dict[str, int]]:
        """Return the counters of each domain by its UUID, the clock among them.

        A domain whose disks do not answer now, though they did before, is left out: something
        holds its monitor. Stored into one bucket with an earlier sample, its clock would be
        newer than the requests.

        :param answers: for each domain the UUID, the clock in ns and libvirt's statistics
        :param throttled: ns, by UUID, of the domains of which it is known
        """
        throttled = {} if throttled is None else throttled
        reported, last = {}, {}
        for uuid, clock, stats in answers:
            if not runs_here(stats):
                continue
            found = counters(stats)
            before = self._last.get(uuid)
            cpu = stats.get('cpu.time', 0)
            host = found.get(meters.CPU_HOST.name, 0)
            if before is not None and before.cpu <= cpu:
                # The difference of a total and of a sum read after it, in ticks, may go back by
                # some of them. A counter that falls would be taken for one that was reset.
                host = max(host, before.host)
            answering = meters.READ_REQUESTS.name in found
            disks = answering or (before is not None and before.disks)
            last[uuid] = _Last(cpu, host, disks)
            if disks and not answering:
                continue
            if meters.CPU_HOST.name in found:
                found[meters.CPU_HOST.name] = host
            if uuid in throttled and meters.CPU_DELAY.name in found:
                found[meters.CPU_THROTTLED.name] = throttled[uuid]
            if found:
                reported[uuid] = {meters.CLOCK.name: clock, **found}
        self._last = last
        return reported


LOG = logging.getLogger(__name__)

#: The groups that are asked for. There is more (balloon, interfaces, dirty pages): not read.
GROUPS = (libvirt.VIR_DOMAIN_STATS_STATE | libvirt.VIR_DOMAIN_STATS_CPU_TOTAL
          | libvirt.VIR_DOMAIN_STATS_VCPU | libvirt.VIR_DOMAIN_STATS_BLOCK
          | libvirt.VIR_DOMAIN_STATS_PERF)
#: Only domains that run or are paused: of the others libvirt reports numbers that mean nothing.
#: A domain that something else is doing is not waited for: what only its monitor knows is missing.
FLAGS = (libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_ACTIVE
         | libvirt.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT)
#: The groups of who watches a host's VMs more often than Ceilometer: no more than is needed.
VCPUS = (libvirt.VIR_DOMAIN_STATS_STATE | libvirt.VIR_DOMAIN_STATS_VCPU
         | libvirt.VIR_DOMAIN_STATS_PERF)
DISKS, INTERFACES = libvirt.VIR_DOMAIN_STATS_BLOCK, libvirt.VIR_DOMAIN_STATS_INTERFACE
#: Seconds after which a call is given up. A rate would be wrong by as much as calls differ.
PATIENCE = 20.0
_MOST_GIVEN_UP = 3
# Polls after which the cores of all domains are asked for again.
_PINS_KEPT = 60

#: What one call brings: when it began and ended (ns), and of each domain its UUID, number, name
#: and statistics; then the cores that each may run on.
_Answer = tuple[int, int, list[tuple[str, int, str, dict[str, Any]]],
                dict[tuple[str, int], frozenset[int]]]


class StatisticsUnavailable(errors.TraconError):
    """libvirt cannot be reached, fails, or takes too long; says which, and what to look at."""


def read_only(uri: str) -> Any:
    """Return a connection that can change nothing."""
    return libvirt.openReadOnly(uri)


class Source:
    """The counters of the domains on one host.

    :param connect: opens a connection, for reading
    :param patience: seconds that a call may take
    :param monotonic: the host's clock, in ns
    :param throttled: reads what domains' own CPU quotas do to them
    :param groups: of statistics that are asked for
    :param pins: whether to ask for the cores that domains may run on, a call each now and then
    """

    def __init__(self, connect: Callable[[], Any], patience: float = PATIENCE,
                 monotonic: Callable[[], int] = time.monotonic_ns,
                 throttled: host_counters.ThrottledTimes | None = None, groups: int = GROUPS,
                 pins: bool = False) -> None:
        self._connect = connect
        self._patience = patience
        self._monotonic = monotonic
        self._throttled = host_counters.ThrottledTimes() if throttled is None else throttled
        self._groups = groups
        self._asks_pins = pins
        #: By UUID, the cores that the domains of the last poll may run on.
        self.pinned: dict[str, frozenset[int]] = {}
        self._pins: dict[tuple[str, int], frozenset[int]] = {}
        self._pins_left = 0
        self._connection: Any = None
        self._domains = Domains()
        self._given_up: list[threading.Thread] = []
        self._lock = threading.Lock()
        # libvirt prints each error to stderr besides raising it.
        libvirt.registerErrorHandler(lambda *unused: None, None)

    def poll(self) -> dict[str, dict[str, int]]:
        """Return the counters of each active domain by its UUID.

        The daemon takes the domains one after the other, in the order in which it names them, so
        each has its clock from the time that the call took.

        :raises StatisticsUnavailable: when libvirt cannot be reached, fails, or takes too long
        """
        with self._lock:
            begin, end, answers, self._pins = self._within_patience()
            self.pinned = {uuid: cores for (uuid, _number), cores in self._pins.items()}
            self._pins_left = (self._pins_left or _PINS_KEPT) - 1
            step = (end - begin) / max(1, len(answers))
            return self._domains.counted(
                ((uuid, begin + round((place + 0.5) * step), stats)
                 for place, (uuid, _number, _name, stats) in enumerate(answers)),
                self._throttled.read(answer[:3] for answer in answers))

    def _within_patience(self) -> _Answer:
        """Ask in a thread of its own.

        The daemon asks the monitor of each QEMU and waits for it without end. One that hangs is
        left with its thread and its connection; a new call finds the domain occupied, and does
        not wait for it.
        """
        self._given_up = [thread for thread in self._given_up if thread.is_alive()]
        if len(self._given_up) >= _MOST_GIVEN_UP:
            raise StatisticsUnavailable(
                f'libvirt: {len(self._given_up)} calls have not come back; see which domain '
                f'does not answer "virsh domstats", and restart libvirt if none does')
        outcome: queue.SimpleQueue[Any] = queue.SimpleQueue()

        def work() -> None:
            try:
                outcome.put(self._ask())
            except Exception as error:      # raised by the one who waits for it
                outcome.put(error)

        thread = threading.Thread(target=work, name='tracon-libvirt', daemon=True)
        thread.start()
        try:
            found = outcome.get(timeout=self._patience)
        except queue.Empty:
            self._connection = None
            self._given_up.append(thread)
            raise StatisticsUnavailable(
                f'libvirt: no statistics within {self._patience:g} s: a domain\'s monitor hangs, '
                f'or the host is overloaded') from None
        if isinstance(found, libvirt.libvirtError):
            self._connection = None
            raise StatisticsUnavailable(
                f'libvirt: {found}: is libvirtd (virtqemud) running, and may this user '
                f'read from it?') from found
        if isinstance(found, Exception):
            raise found
        self._connection, answer = found
        return answer

    def _ask(self) -> tuple[Any, _Answer]:
        """Return the connection and what it answers; one from before may have died since."""
        connection = self._connection
        if connection is not None:
            try:
                if connection.isAlive():
                    return connection, self._bulk_call(connection)
            except libvirt.libvirtError as error:
                LOG.debug('libvirt: %s; trying again with a new connection', error)
        connection = self._connect()
        return connection, self._bulk_call(connection)

    def _bulk_call(self, connection: Any) -> _Answer:
        begin = self._monotonic()
        records = connection.getAllDomainStats(self._groups, FLAGS)
        end = self._monotonic()
        answers = [(domain.UUIDString(), domain.ID(), domain.name(), stats)
                   for domain, stats in records]
        pins: dict[tuple[str, int], frozenset[int]] = {}
        known = self._pins if self._pins_left else {}
        for answer, (domain, _stats) in zip(answers if self._asks_pins else (), records):
            with contextlib.suppress(libvirt.libvirtError):     # it may have ended since
                pins[answer[:2]] = known[answer[:2]] if answer[:2] in known else frozenset(
                    core for cores in domain.vcpuPinInfo() for core, may in enumerate(cores)
                    if may)
        return begin, end, answers, pins
