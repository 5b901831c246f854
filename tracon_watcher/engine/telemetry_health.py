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

"""Health of telemetry: silent hosts, and the clocks of hosts."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import math
import statistics
from typing import Iterable, Mapping, Sequence

import numpy as np

from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray
from tracon_watcher.contention import intervals
from tracon_watcher.inventory import cloud
from tracon_watcher.inventory import vm_states
from tracon_watcher.placement import assessment
from tracon_watcher.telemetry import meters
from tracon_watcher.telemetry import samples

#: Without these nothing is learnt of a VM.
_NEEDED = (meters.CPU_GUEST.name, meters.CPU_HOST.name, meters.READ_REQUESTS.name,
           meters.WRITE_REQUESTS.name)
_STILL = vm_states.IDLE | vm_states.HOMELESS


@dataclasses.dataclass(frozen=True)
class TelemetryGaps:
    """What telemetry lacks.

    :param everywhere: what was asked and what came, where nothing new is heard of any VM; None
        where it is of some, or none runs
    :param reports: a kind and a text of each thing that is not as it should be
    """

    everywhere: str | None = None
    reports: tuple[tuple[str, str], ...] = ()


class Listener:
    """Remembers when each host was last heard of.

    Times count from when a sample was first seen: the clocks of hosts may be wrong.

    :param patience: seconds without anything new
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._newest: dict[str, float] = {}
        self._heard: dict[str, float] = {}
        #: Since when VMs run of which nothing has been heard.
        self._waited: dict[str, float] = {}

    def take(self, found: samples.Readings, settled: BoolArray, learnt: FloatArray,
             lost: Iterable[str], inventory: cloud.Inventory, now: float) -> TelemetryGaps:
        """Return what is lacking after a reading.

        :param settled: (m,) which samples will not be completed any more
        :param learnt: (n,) end of each resource's latest interval with rates, -inf without
        :param lost: why others have none
        :param now: seconds since the epoch
        """
        servers = inventory.servers
        alive = [uuid in servers for uuid in found.resources]
        new: set[str | None] = set()
        for uuid, there, at in zip(found.resources, alive, learnt.tolist()):
            # Not "later": a clock may have been put back.
            if there and np.isfinite(at) and self._newest.get(uuid) != at:
                self._newest[uuid] = at
                new.add(servers[uuid].host)
        self._newest = {uuid: at for uuid, at in self._newest.items() if uuid in servers}
        running = _running(inventory)
        self._heard = {host: now if host in new else min(self._heard.get(host, now), now)
                       for host in running}
        lacking = _lacking(found, settled & np.array(alive, dtype=np.bool_)[found.row])
        lacking += self._unheard(inventory, now)
        silent = self.silent(self._patience, now)
        if silent and len(silent) == len(running):
            everywhere = self._everywhere(found, alive, lost, inventory)
            return TelemetryGaps(everywhere, (('telemetry', everywhere), *lacking))
        lacking += [('telemetry', (
            f'host {host}: nothing new of its VMs for more than {self._patience:g} s: it is '
            'unknown; see there whether ceilometer-polling runs, its log, and the clock'))
            for host in sorted(silent)]
        return TelemetryGaps(None, tuple(lacking))

    def silent(self, seconds: float, now: float) -> frozenset[str]:
        """Return the hosts of which nothing new had been heard for so long at the last reading."""
        return frozenset(host for host, at in self._heard.items() if now - at > seconds)

    def _unheard(self, inventory: cloud.Inventory, now: float) -> list[tuple[str, str]]:
        """Report a VM that was never heard of beside others of its host that are."""
        self._waited = {
            uuid: min(self._waited.get(uuid, now), now)
            for uuid, one in inventory.servers.items()
            if uuid not in self._newest and one.vm_state not in _STILL
            and self._heard.get(one.host or '', -np.inf) >= now - self._patience}
        late = [uuid for uuid, since in self._waited.items() if now - since > self._patience]
        return [('telemetry', (
            f'VM {min(late)} runs on {inventory.servers[min(late)].host}, and nothing of it has '
            f'come for more than {self._patience:g} s, though others there are heard of: such '
            'VMs are unknown; see whether Ceilometer there discovers them'))] if late else []

    def _everywhere(self, found: samples.Readings, alive: Sequence[bool], lost: Iterable[str],
                    inventory: cloud.Inventory) -> str:
        if not found.resources:
            came = 'nothing came'
        elif not any(alive):
            came = (f'samples came of {min(found.resources)}, which is no VM of Nova\'s; those '
                    f'have ids such as {min(inventory.servers)}')
        elif not _complete(found).any():
            came = f'no sample came with all of {", ".join(_NEEDED)}'
        elif any(lost):
            came = f'samples came, and no two that give a rate: {", ".join(sorted(lost))}'
        else:
            at = datetime.datetime.fromtimestamp(float(found.at.max()), datetime.timezone.utc)
            came = f'no sample is later than {at.isoformat(timespec="seconds")}'
        return (f'Telemetry has had nothing new of any VM for more than {self._patience:g} s, '
                f'though VMs run: {found.asked or "it was asked for all meters of VMs"}: {came}: '
                'all hosts on which VMs run become unknown; see that what is asked is what '
                'Ceilometer stores, and how often')


def _running(inventory: cloud.Inventory) -> set[str]:
    """Return the hosts that should be heard of: judged ones that are up and on which VMs run."""
    hypervisors = inventory.hypervisors
    hosts = {one.host for one in inventory.servers.values() if one.vm_state not in _STILL}
    up = {host for host in hosts if host in hypervisors and hypervisors[host].up
          and hypervisors[host].reachable}
    return {host for host in up if hypervisors[host].cores is not None} or up


def _complete(found: samples.Readings) -> BoolArray:
    """Return which samples something is learnt from, (m,)."""
    columns = [found.meters.index(name) for name in _NEEDED]
    return np.asarray(np.isfinite(found.values[:, columns]).all(axis=1) & np.isfinite(found.at))


def _lacking(found: samples.Readings, settled: BoolArray) -> list[tuple[str, str]]:
    """Report meters of all VMs of which one that has samples has none."""
    sampled = np.zeros(len(found.resources), dtype=np.bool_)
    sampled[found.row[settled]] = True
    lacking = []
    for column, name in enumerate(found.meters):
        if not meters.BY_NAME[name].everywhere:
            continue
        without = sampled.copy()
        without[found.row[np.isfinite(found.values[:, column])]] = False
        if without.any():
            vm = min(found.resources[index] for index in np.flatnonzero(without))
            lacking.append(('meters', (
                f'VM {vm} has samples, and none of {name}: what follows from it is unknown of '
                'such VMs; see whether their hosts count it, and the pipeline of Ceilometer')))
    return lacking


# Readings in which one is looked for that is behind: it has to be seen to go on.
_SEARCHES = 4
_REMEDY = 'let all hosts take their time from the same NTP servers'


@dataclasses.dataclass(frozen=True)
class _Reading:
    resources: tuple[str, ...]
    row: IntArray
    at: FloatArray
    since: float
    until: float
    now: float


class Clocks:
    """What is known of the clocks of hosts.

    :param late: seconds by which samples may be stored late, which are read again each time
    :param window: seconds that are read where a host is looked for
    :param resolution: seconds by which the time of a sample may be off beside its host's clock
    """

    def __init__(self, late: float, window: float, resolution: float) -> None:
        self._late, self._window = late, window
        self._disorder = resolution + assessment.AHEAD
        self._tolerance = max(late, assessment.AHEAD)
        self._last: _Reading | None = None
        #: By host, seconds by which its clock is ahead, negative where it is behind.
        self.skews: dict[str, float] = {}
        #: What is not as it should be after the last reading.
        self.troubles: list[str] = []
        self._suspected: dict[str, float] = {}
        #: How far behind, as a number not above 0, the newest samples of the promptest host are.
        self._usual = 0.0
        #: By host, since when its samples claim to be of the future.
        self._early: dict[str, float] = {}
        #: By VM, when its host's monotonic clock was 0, by that host's wall clock as it is now.
        self._offsets: dict[str, float] = {}
        self._searched: frozenset[str] = frozenset()
        self._searched_at, self._searches = -math.inf, 0

    def depth(self, silent: frozenset[str], now: float) -> float:
        """Return how many seconds before the last reading the next one is to begin.

        Of hosts that fell silent, samples are looked for further back, once in a window at most.
        """
        last = self._last
        if last is not None and 0 <= now - last.now <= self._late:
            if silent - self._searched and not 0 <= now - self._searched_at < self._window:
                self._searched_at, self._searches = now, _SEARCHES
                self._searched = silent
            self._searched &= silent
        if self._searches:
            self._searches -= 1
            return self._window
        usual = self._usual if -self._usual > self._late / 2 else 0.0
        return self._late - usual - min(0.0, *self.skews.values(), 0.0)

    def take(self, found: samples.Readings, ticks: FloatArray, hosts: Mapping[str, str],
             since: float, until: float, now: float) -> tuple[FloatArray, BoolArray]:
        """Return the times of samples by this host's clock, (m,), and which are in order, (m,).

        :param ticks: (m,) of the clocks that counters are measured by
        :param hosts: of VMs
        :param since: and ``until``, what was read
        """
        self.troubles = []
        arrived = self._arrived(found)
        self._measure(found, arrived, hosts, now)
        skews = np.array([self.skews.get(hosts.get(uuid, ''), 0.0) for uuid in found.resources])
        at = found.at - skews[found.row]
        in_order = self._in_order(found, ticks, arrived, hosts)
        early = {hosts.get(found.resources[row]) for row in np.unique(
            found.row[in_order & (at > now + assessment.AHEAD)])} - {None}
        self._early = {host: min(self._early.get(host, now), now) for host in early if host}
        # By then it would be known by how much a clock is ahead.
        lasting = [host for host, since in self._early.items() if now - since > self._late]
        if lasting:
            self.troubles.append('samples of a time that is yet to come, such as those of host '
                                 f'{min(lasting)}, are left out: {_REMEDY}')
        self._last = _Reading(found.resources, found.row, found.at, since, until, now)
        return at, in_order

    def _arrived(self, found: samples.Readings) -> BoolArray:
        """Return which samples were not there yet when their times were read last, (m,)."""
        last = self._last
        if last is None:
            return np.zeros(len(found.at), dtype=np.bool_)
        place = {uuid: row for row, uuid in enumerate(found.resources)}
        rows = np.array([place.get(uuid, -1) for uuid in last.resources], dtype=np.intp)[last.row]
        return np.asarray((found.at >= last.since) & (found.at < last.until)
                          & ~np.isin(found.row + 1j * found.at, rows + 1j * last.at))

    def _measure(self, found: samples.Readings, arrived: BoolArray, hosts: Mapping[str, str],
                 now: float) -> None:
        newest = np.full(len(found.resources), -np.inf)
        np.maximum.at(newest, found.row[arrived], found.at[arrived])
        ahead = collections.defaultdict(list)
        for row in np.flatnonzero(np.isfinite(newest)):
            host = hosts.get(found.resources[row])
            if host is not None:
                ahead[host].append(float(newest[row]) - now)
        measured = {host: statistics.median(values) for host, values in ahead.items()}
        # All are stored late where telemetry is slow.
        prompt = [one for one in measured.values() if one <= assessment.AHEAD]
        self._usual = min(0.0, max(prompt)) if prompt else self._usual
        there = frozenset(hosts.values())
        self.skews = {host: skew for host, skew in self.skews.items() if host in there}
        for host, one in measured.items():
            self._judge(host, one - self._usual)
        self._tell(len(there))

    def _judge(self, host: str, skew: float) -> None:
        """Take what was measured of a host, if it was so twice: a VM may have just come there."""
        change = skew - self.skews.get(host, 0.0)
        if -self._tolerance <= change <= assessment.AHEAD:
            self._suspected.pop(host, None)
        elif abs(self._suspected.get(host, math.inf) - skew) <= self._tolerance:
            del self._suspected[host]
            self.skews.pop(host, None)
            if not -self._tolerance <= skew <= assessment.AHEAD:
                self.skews[host] = round(skew)
        else:
            self._suspected[host] = skew

    def _tell(self, count: int) -> None:
        if -self._usual > self._tolerance:
            self.troubles.append('the newest samples of all hosts are late: telemetry is slow, '
                                 f'or the clock of this host is ahead: {_REMEDY}')
        off = self.skews.values()
        if len(off) > max(count / 2, 2) and max(off) - min(off) <= self._tolerance:
            self.troubles.append('the clocks of most hosts differ from that of this one by as '
                                 f'much, so that it may be wrong: {_REMEDY}')
            return
        self.troubles += [
            f'host {host}: its clock is {abs(skew):.0f} s {"ahead" if skew > 0 else "behind"}; '
            f'the times of its samples are corrected by that: {_REMEDY}'
            for host, skew in self.skews.items()]

    def _in_order(self, found: samples.Readings, ticks: FloatArray, arrived: BoolArray,
                  hosts: Mapping[str, str]) -> BoolArray:
        """Return which samples are in order, (m,).

        Those that were stored before a clock was put back are not, where they claim to be of times
        that come again.
        """
        offset = found.at - ticks / intervals.CLOCK
        newest = np.array([self._offsets.get(uuid, np.nan) for uuid in found.resources])
        known = np.flatnonzero(arrived & np.isfinite(offset))
        # Of several of one VM the last is written last.
        known = known[np.argsort(found.at[known], kind='stable')]
        newest[found.row[known]] = offset[known]
        self._offsets = {uuid: float(one) for uuid, one in zip(found.resources, newest)
                         if uuid in hosts and np.isfinite(one)}
        same = np.abs(offset - newest[found.row]) <= self._disorder
        begin = np.full(len(found.resources), np.inf)
        np.minimum.at(begin, found.row[same], found.at[same])
        return np.asarray(same | np.isnan(offset) | (found.at < begin[found.row]))
