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

"""What is seen of a guest from outside: libvirt's domain statistics and /proc."""

import dataclasses
import math
import pathlib
import typing

from tracon_lab.models import dataset
from tracon_watcher.characteristics import NAMES


@dataclasses.dataclass(frozen=True)
class Sample:
    """Counters of one guest at one moment; times in seconds."""

    read_requests: int
    write_requests: int
    read_time: float
    write_time: float
    cpu: float
    vcpu: float
    vcpu_delay: float
    events: typing.Mapping[str, int] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Observation:
    """A guest over a window. Rates a second, CPU in cores, latency in seconds.

    Latency is NaN where there was no request.

    :param events: a second, those of :data:`tracon_lab.models.dataset.EVENTS` that this host
        counts
    """

    read_requests_per_second: float
    write_requests_per_second: float
    guest_cpu: float
    host_cpu: float
    vcpu_delay: float
    read_latency: float
    write_latency: float
    operations: int
    events: typing.Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def characteristics(self) -> tuple[float, float, float, float]:
        return (self.read_requests_per_second, self.write_requests_per_second,
                self.guest_cpu, self.host_cpu)


def sample(stats: typing.Mapping[str, typing.Any], vcpu_seconds: float | None = None) -> Sample:
    """One domain of a bulk call.

    :param vcpu_seconds: run time of the vCPU threads from /proc/PID/task; libvirt's
        `vcpu.N.time` counts the same in ticks of 10 ms, too coarse for a window
    """
    def summed(key: str) -> int:
        return sum(stats.get('block.%d.%s' % (n, key), 0)
                   for n in range(stats.get('block.count', 0)))

    vcpus = range(stats['vcpu.current'])
    if vcpu_seconds is None:
        vcpu_seconds = sum(stats['vcpu.%d.time' % n] for n in vcpus) * 1e-9
    return Sample(
        summed('rd.reqs'), summed('wr.reqs'), summed('rd.times') * 1e-9,
        summed('wr.times') * 1e-9, stats['cpu.time'] * 1e-9, vcpu_seconds,
        sum(stats['vcpu.%d.delay' % n] for n in vcpus) * 1e-9,
        {name: stats['perf.' + name] for name in dataset.EVENTS if 'perf.' + name in stats})


def observe(before: Sample, after: Sample, seconds: float) -> Observation:
    reads = after.read_requests - before.read_requests
    writes = after.write_requests - before.write_requests
    vcpu = after.vcpu - before.vcpu
    return Observation(
        reads / seconds, writes / seconds, vcpu / seconds,
        max(0.0, after.cpu - before.cpu - vcpu) / seconds,
        (after.vcpu_delay - before.vcpu_delay) / seconds,
        (after.read_time - before.read_time) / reads if reads else math.nan,
        (after.write_time - before.write_time) / writes if writes else math.nan,
        reads + writes,
        {name: (after.events[name] - count) / seconds
         for name, count in before.events.items()})


def together(parts: typing.Sequence[Observation]) -> Observation:
    """Several guests as one background: rates add up, latencies are those of their requests."""
    if len(parts) == 1:
        return parts[0]

    def summed(name: str) -> float:
        return sum(getattr(part, name) for part in parts)

    def latency(of: str, rate: str) -> float:
        weighted = [(getattr(part, rate), getattr(part, of)) for part in parts
                    if getattr(part, rate) > 0]
        total = sum(weight for weight, _value in weighted)
        return (sum(weight * value for weight, value in weighted) / total if total
                else math.nan)

    return Observation(
        *(summed(name) for name in (*NAMES, 'vcpu_delay')),
        latency('read_latency', NAMES[0]), latency('write_latency', NAMES[1]),
        int(summed('operations')),
        {name: sum(part.events[name] for part in parts) for name in parts[0].events})


def vcpu_seconds(pid: int, proc: pathlib.Path = pathlib.Path('/proc')) -> float:
    """Run time of a QEMU process's vCPU threads (named "CPU n/TCG" or "CPU n/KVM")."""
    total = 0
    for task in (proc / str(pid) / 'task').iterdir():
        if (task / 'comm').read_text().startswith('CPU '):
            total += int((task / 'schedstat').read_text().split()[0])
    return total * 1e-9


@dataclasses.dataclass(frozen=True)
class HostSample:
    """Busy and stolen seconds of each core so far."""

    busy: dict[int, float]
    steal: dict[int, float]


def host_sample(ticks_per_second: int, proc: pathlib.Path = pathlib.Path('/proc'),
                usage: pathlib.Path | None = None) -> HostSample:
    """Per core, from /proc/stat: busy is all but idle, waiting for I/O and steal.

    :param usage: the root's cpuacct.usage_percpu (cgroup version 1), which counts the same
        exactly; ticks are sampled and can miss a guest that wakes with them
    """
    busy, steal = {}, {}
    for line in (proc / 'stat').read_text().splitlines():
        name, *fields = line.split()
        if name.startswith('cpu') and name != 'cpu':
            user, nice, system, _idle, _iowait, irq, softirq, stolen = map(int, fields[:8])
            core = int(name[3:])
            busy[core] = (user + nice + system + irq + softirq) / ticks_per_second
            steal[core] = stolen / ticks_per_second
    if usage is not None and usage.exists():
        exact = [int(field) * 1e-9 for field in usage.read_text().split()]
        busy = {core: exact[core] for core in busy}
    return HostSample(busy, steal)


def process_seconds(pid: int, ticks_per_second: int,
                    proc: pathlib.Path = pathlib.Path('/proc')) -> float:
    """CPU time of a process, its ended threads included."""
    fields = (proc / str(pid) / 'stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / ticks_per_second
