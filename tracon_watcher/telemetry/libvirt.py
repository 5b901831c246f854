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

"""One bulk call to libvirt a poll, whatever the number of domains."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from typing import Any, Callable

import libvirt

from tracon_watcher import errors
from tracon_watcher.telemetry import domain_stats
from tracon_watcher.telemetry import host_counters

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
        self._domains = domain_stats.Domains()
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
