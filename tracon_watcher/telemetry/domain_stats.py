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

"""What libvirt's statistics say of a host's domains, as counters.

The same quantities as in :mod:`tracon_lab.testbed.observation`: what models were learned from and
what they are applied to is counted in one way.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Iterable, Mapping

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
