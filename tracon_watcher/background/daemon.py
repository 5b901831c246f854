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

"""The daemon: looks at a host's VMs once a second, decides, and writes limits."""

from __future__ import annotations

import logging
import math
import os
import pathlib
import socket
import time
from typing import Any, Callable, Iterable, Iterator, Mapping

from prometheus_client import core
from prometheus_client import registry

from tracon_watcher.background import cgroups
from tracon_watcher.background import regulator
from tracon_watcher.telemetry import domain_stats
from tracon_watcher.telemetry import host_counters
from tracon_watcher.telemetry import libvirt
from tracon_watcher.telemetry import meters

LOG = logging.getLogger(__name__)
#: Seconds between two looks; windows of bands are counted in looks.
INTERVAL = 1.0
#: Intervals after which a look came too late to be a successor of the last.
_LATE = 5.0
_COUNTERS = {regulator.NETWORK: (domain_stats.SENT,),
             regulator.BYTES: (meters.READ_BYTES.name, meters.WRITE_BYTES.name),
             regulator.REQUESTS: (meters.READ_REQUESTS.name, meters.WRITE_REQUESTS.name)}


def throttled_times(root: pathlib.Path = pathlib.Path('/')) -> host_counters.ThrottledTimes:
    """Return what reads how VMs are throttled by their own quotas, if they are."""
    return host_counters.ThrottledTimes(root, 10)


def source(uri: str, rates: Iterable[str], throttled: host_counters.ThrottledTimes,
           connect: Callable[[str], Any] = libvirt.read_only) -> libvirt.Source:
    """Return what polls the VMs, with the statistics that these rates need and no others."""
    groups = libvirt.VCPUS
    for name in rates:
        groups |= libvirt.INTERFACES if name == regulator.NETWORK else libvirt.DISKS
    return libvirt.Source(lambda: connect(uri), 3 * INTERVAL, throttled=throttled, groups=groups,
                          pins=True)


class Observer:
    """Reads a host.

    :param polled: the VMs
    :param rates: of these, what of their use is asked for
    :param root: of the file system that has /proc and /sys
    :param cpus: cores that the background may use at most; None: all that are online
    """

    def __init__(self, polled: libvirt.Source, tree: cgroups.ControlGroups, rates: Iterable[str],
                 root: pathlib.Path = pathlib.Path('/'),
                 cpus: frozenset[int] | None = None) -> None:
        self._source, self._tree, self._root, self._cpus = polled, tree, root, cpus
        self._rates = tuple(rates)
        self._before: Mapping[str, Mapping[str, int]] = {}

    def observe(self) -> regulator.Observation:
        """Return what there is now.

        :raises StatisticsUnavailable: where libvirt does not answer
        :raises OSError: where a file of the kernel's cannot be read
        """
        found = self._source.poll()
        uses = {uuid: self._use(counters, self._before.get(uuid, {}))
                for uuid, counters in found.items()}
        self._before = found
        groups = self._tree.uses()
        try:
            online = cgroups.parsed(
                (self._root / 'sys/devices/system/cpu/online').read_text(encoding='ascii'))
        except ValueError as error:
            raise OSError(str(error)) from None
        total, used = cgroups.memory(self._root, groups)
        return regulator.Observation(
            uses, self._source.pinned, online if self._cpus is None else online & self._cpus,
            total, used, groups)

    def _use(self, now: Mapping[str, int], before: Mapping[str, int]) -> regulator.Usage:
        clock = meters.CLOCK.name
        seconds = (now[clock] - before[clock]) * 1e-9 if clock in before else 0.0

        def rate(*names: str) -> float:
            """Counters that fell are those of a VM that was started again."""
            total = 0
            for name in names:
                if seconds <= 0 or name not in now or now[name] < before.get(name, math.inf):
                    return math.nan
                total += now[name] - before[name]
            return total / seconds

        own = rate(meters.CPU_THROTTLED.name) * 1e-9
        waiting = rate(meters.CPU_DELAY.name) * 1e-9
        return regulator.Usage(
            rate(meters.INSTRUCTIONS.name), rate(meters.CYCLES.name),
            rate(meters.CPU_GUEST.name) * 1e-9,
            waiting if math.isnan(own) else max(waiting - own, 0.0),
            {name: rate(*_COUNTERS[name]) for name in self._rates})


class Daemon:
    """Looks, decides, writes.

    :param shaper: limits what the background sends; None: nothing does
    :param domains: tells which background groups have a VM in them; these are left alone
    :param dry_run: whether nothing is written
    """

    def __init__(self, observer: Observer, decider: regulator.Regulator,
                 tree: cgroups.ControlGroups,
                 shaper: cgroups.Shaper | None, domains: host_counters.ThrottledTimes,
                 dry_run: bool = False, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.regulator, self.tree = decider, tree
        self._observer, self._shaper, self._domains = observer, shaper, domains
        self._dry_run, self._monotonic = dry_run, monotonic
        self._at: float | None = None
        self.wrong: set[str] = set()
        self.seeing, self.vms, self.decision = False, 0, decider.safest

    def step(self) -> None:
        """Look once, and write what follows from it."""
        seen, why = None, ''
        try:
            seen = self._observer.observe()
        except (libvirt.StatisticsUnavailable, OSError) as error:
            why = f': {error}'
        now = self._monotonic()
        if self._at is not None and now - self._at > _LATE * INTERVAL and seen is not None:
            seen, why = None, f': the last look was {now - self._at:.1f} s ago'
        self._at = now
        self.seeing, self.vms = seen is not None, len(seen.uses) if seen else 0
        self._carry_out(self.regulator.decide(seen), why)

    def tighten(self) -> None:
        """Write the safest limits, as at the end."""
        self._carry_out(self.regulator.safest, '')

    def _carry_out(self, decision: regulator.Allowance, why: str) -> None:
        self.decision = decision
        for note in decision.notes:
            LOG.info('%s%s%s', 'dry run: ' if self._dry_run else '', note, why)
        if self._dry_run:
            return
        within = self._domains.within(self.tree.names)
        wrong = {f'groups: a VM runs in {name}, which is left alone: name groups without any'
                 for name in within}
        for name in self.tree.names:
            if name in within:
                continue
            wrong.update(self.tree.apply(name, decision.groups.get(name, decision.others)))
            if name in decision.killed:
                wrong.update(self.tree.kill(name))
        if self._shaper is not None and decision.network is not None:
            wrong.update(self._shaper.apply(decision.network))
        for text in sorted(wrong - self.wrong):
            LOG.error('%s', text)
        for text in sorted(self.wrong - wrong):
            LOG.info('No longer so: %s', text)
        self.wrong = wrong


class Metrics(registry.Collector):
    """Reads the daemon when it is scraped."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    def describe(self) -> list[Any]:
        """Return nothing: what there is, is only known when it is asked for."""
        return []

    def collect(self) -> Iterator[Any]:
        """Yield the metrics."""
        daemon, decision = self._daemon, self._daemon.decision
        for name, text, value in (
                ('seeing', 'Whether the VMs can be seen.', daemon.seeing),
                ('vms', 'VMs that are seen.', daemon.vms),
                ('wrong', 'Limits that cannot be written; the log says which.',
                 len(daemon.wrong)),
                ('network_limit_bytes', 'Bytes a second that the groups may send.',
                 decision.network)):
            if value is not None:
                yield core.GaugeMetricFamily(f'tracon_background_{name}', text, float(value))
        paused, cores, memory = (core.GaugeMetricFamily(
            f'tracon_background_{name}', text, labels=['group']) for name, text in (
                ('paused', 'Whether a group is paused.'),
                ('cpu_quota_cores', 'CPU quota of a group.'),
                ('memory_limit_bytes', 'Memory limit of a group.')))
        for name in daemon.tree.names:
            limits = decision.groups.get(name, decision.others)
            paused.add_metric([name], float(limits.paused))
            cores.add_metric([name], limits.cores)
            if limits.memory is not None:
                memory.add_metric([name], limits.memory)
        yield from (paused, cores, memory)
        times = core.CounterMetricFamily(
            'tracon_background_tightened', 'How often a resource was tightened.',
            labels=['resource'])
        for name, count in dict(daemon.regulator.tightened).items():
            times.add_metric([name], count)
        yield times


def tell_systemd(text: str, environment: Mapping[str, str] = os.environ) -> None:
    """Tell systemd "READY=1" or "WATCHDOG=1", where it has started this program."""
    address = environment.get('NOTIFY_SOCKET')
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
            connection.sendto(text.encode(), address.replace('@', '\0', 1))
