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

"""What is decided of the background: observations in, limits out, no file and no clock."""

from __future__ import annotations

import dataclasses
import math
from typing import Mapping, Sequence

import numpy as np

from tracon_watcher.background import controllers

# Seconds of CPU by which libvirt's time of a virtual CPU may be behind: a tick.
_TICK = 0.01
# Of the share of time on a core, and of instructions per cycle as a share of the mean: least σ.
_SLACK = 0.01
#: Samples in which a VM that is gone keeps what it was last known to use. A VM that is there, but
#: not reported, as while QEMU's monitor hangs, keeps it until it is reported.
HOLD = 60
NETWORK, BYTES, REQUESTS = 'network', 'disk bytes', 'disk requests'
MEMORY, PROCESSOR, CORES, PAUSE, SIGHT = 'memory', 'processor', 'cores', 'pause', 'sight'


@dataclasses.dataclass(frozen=True)
class Usage:
    """What a VM did since the last sample, a second; NaN where unknown.

    :param instructions: retired, and ``cycles`` likewise
    :param running: cores that its virtual CPUs ran on
    :param waiting: virtual CPUs that waited for a core, without what its own quota kept waiting
    :param rates: by :data:`NETWORK`, :data:`BYTES` and :data:`REQUESTS`, as far as asked for
    """

    instructions: float = math.nan
    cycles: float = math.nan
    running: float = math.nan
    waiting: float = math.nan
    rates: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def per_cycle(self) -> float:
        """Instructions per cycle."""
        return self.instructions / self.cycles if self.cycles > 0 else math.nan

    @property
    def on_core(self) -> float:
        """The share of the time that it wanted a core for in which it had one."""
        return on_core(self.running, self.waiting, 1)


def on_core(running: float, waiting: float, vms: int) -> float:
    """Return the share of the time wanted on cores that was had; an idle VM has all of it.

    The time on cores is counted in ticks and may be behind by one, hence ``vms`` ticks more.
    """
    return (running + _TICK * vms) / (running + _TICK * vms + waiting)


@dataclasses.dataclass(frozen=True)
class Observation:
    """A host at one moment.

    :param uses: of each VM that is reported, by UUID
    :param pinned: cores that each VM that is there may run on, by UUID
    :param online: cores that there are for the background, if no VM is pinned to them
    :param memory_total: bytes
    :param memory_used: bytes that all but the background use and that cannot be reclaimed
    :param groups: bytes that each background group uses likewise, the most important group first;
        those that are not there are not in it
    """

    uses: Mapping[str, Usage]
    pinned: Mapping[str, frozenset[int]]
    online: frozenset[int]
    memory_total: float
    memory_used: float
    groups: Mapping[str, int]


@dataclasses.dataclass(frozen=True)
class Settings:
    """What is regulated, and how.

    :param capacities: bytes or requests a second, of what is to be limited: :data:`NETWORK`,
        :data:`BYTES`, :data:`REQUESTS`
    :param minimum: share of each of these that the background always has
    :param memory_floor: least σ of memory, bytes
    :param kill: whether groups that do not fit into memory are killed, rather than paused
    """

    memory: controllers.Setting = controllers.MEMORY
    rates: controllers.Setting = controllers.NETWORK
    processor: controllers.Setting = controllers.PROCESSOR
    aimd: controllers.Aimd = controllers.Aimd()
    capacities: Mapping[str, float] = dataclasses.field(default_factory=dict)
    minimum: float = 0.01
    memory_floor: float = 2**24
    kill: bool = False


@dataclasses.dataclass(frozen=True)
class GroupLimits:
    """Of one group; what is None stays as it is.

    :param paused: whether none of its tasks may run
    :param cores: CPU quota
    :param cpus: cores that it may run on
    :param memory: bytes
    :param rates: bytes and requests a second, reads and writes each
    :param idle: whether it has a core only while nothing else wants it
    """

    paused: bool
    cores: float
    cpus: frozenset[int] | None = None
    memory: int | None = None
    rates: Mapping[str, float] = dataclasses.field(default_factory=dict)
    idle: bool = True


@dataclasses.dataclass(frozen=True)
class Allowance:
    """What the background may have from now on.

    :param groups: limits of each group that is there, or of ``others``
    :param others: limits of any group that is not there yet: the safest
    :param network: bytes a second of all groups, None where it is not limited
    :param killed: groups whose tasks are to be killed now
    :param notes: what has changed, for the log
    """

    groups: Mapping[str, GroupLimits]
    others: GroupLimits
    network: float | None
    killed: Sequence[str] = ()
    notes: Sequence[str] = ()


@dataclasses.dataclass(frozen=True)
class Episode:
    """Time in which a resource is tight.

    :param left: samples until it no longer is
    :param vm: UUID of the VM for whose sake; None where no single one is known
    :param before: limit of all groups before it, in cores, bytes, or bytes or requests a second;
        NaN where the groups are paused instead
    :param least: the smallest limit during it, likewise
    """

    left: int
    vm: str | None = None
    before: float = math.nan
    least: float = math.nan


class Regulator:
    """Decides once a second.

    It begins, and begins again whenever the host was not seen, with the safest limits, and
    loosens them as its bands are learnt.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        #: How often each resource was tightened since the start.
        self.tightened: dict[str, int] = {}
        self._notes: list[str] = []
        self._blind = False
        self._forget()

    def _forget(self) -> None:
        self._reserves = {name: controllers.Reserve.of()
                          for name in (MEMORY, *self._settings.capacities)}
        self.quota = controllers.Quota(self._settings.aimd.minimum)
        self._signal = ''
        self._last: dict[str, tuple[Mapping[str, float], int]] = {}
        self._means: dict[tuple[str, str], float] = {}
        self._budgets: dict[str, float] = {}
        #: The resources that are tight now.
        self.episodes: dict[str, Episode] = {}

    @property
    def safest(self) -> Allowance:
        """Everything paused, and the least of all else; memory and cores stay as they are."""
        settings = self._settings
        rates = {name: settings.minimum * capacity / 2
                 for name, capacity in settings.capacities.items() if name != NETWORK}
        network = settings.capacities.get(NETWORK)
        return Allowance({}, GroupLimits(True, settings.aimd.minimum, rates=rates),
                         None if network is None else settings.minimum * network)

    def decide(self, seen: Observation | None) -> Allowance:
        """Return what holds from now on.

        :param seen: None where the host could not be seen, or not in time
        """
        self._notes = []
        if seen is None:
            if not self._blind:
                self._notes.append('all background groups are paused: the VMs cannot be seen')
                self.tightened[SIGHT] = self.tightened.get(SIGHT, 0) + 1
            self._blind = True
            self._forget()
            return dataclasses.replace(self.safest, notes=self._notes)
        if self._blind:
            self._notes.append('the VMs can be seen again; their bands are learnt again')
            self._blind = False
        settings, safest = self._settings, self.safest
        budgets = self._reserve(seen)
        cpus = controllers.free_cores(seen.online, seen.pinned.values())
        limits, stopped = controllers.memory_shares(seen.groups, budgets[MEMORY], settings.kill)
        learning = bool(np.isnan(self._reserves[MEMORY].mean[0]))
        paused = learning or not cpus or not math.isfinite(seen.memory_used)
        self._adapt(seen, len(cpus), paused or not limits)
        self._episodes(stopped if not learning else (), cpus, seen)
        running = 0 if paused else len(limits)
        if not running:
            killed = stopped if settings.kill and not learning else ()
            return dataclasses.replace(safest, killed=killed, notes=self._notes, network=(
                None if safest.network is None else budgets[NETWORK]))
        # A half each for reads and writes, since they are limited apart.
        rates = {name: budgets[name] / running / 2 for name in safest.others.rates}
        return Allowance(
            {name: GroupLimits(False, self.quota.cores / running, cpus, limits[name], rates)
             for name in limits}, safest.others,
            None if safest.network is None else budgets[NETWORK],
            stopped if settings.kill else (), self._notes)

    def _reserve(self, seen: Observation) -> dict[str, float]:
        """Return what is left of each resource that is reserved, as it stands in capacities."""
        settings = self._settings
        # A VM that is not reported for a moment is not taken for one that uses nothing.
        held = {uuid: (rates, HOLD if uuid in seen.pinned else left - 1)
                for uuid, (rates, left) in self._last.items() if left > 1 or uuid in seen.pinned}
        self._last = {**held, **{
            uuid: ({name: _first(use.rates, held[uuid][0] if uuid in held else {}, name)
                    for name in settings.capacities}, HOLD) for uuid, use in seen.uses.items()}}
        budgets = {}
        for name in self._reserves:
            if name == MEMORY:
                value, capacity = seen.memory_used, seen.memory_total
                setting = dataclasses.replace(settings.memory, floor=settings.memory_floor)
                by_vm: dict[str, float] = {}
            else:
                by_vm = {uuid: rates[name] for uuid, (rates, _left) in self._last.items()}
                value = float(np.nansum(list(by_vm.values())))
                capacity = settings.capacities[name]
                setting = dataclasses.replace(settings.rates, floor=settings.minimum * capacity)
            state = controllers.reserve(self._reserves[name], np.array([value]), setting)
            self._reserves[name] = state
            least = 0.0 if name == MEMORY else settings.minimum * capacity
            budgets[name] = max(float(state.left(capacity, setting)[0]), least)
            whom = self._whom(name, by_vm, 1.0, setting.window)
            if state.violated[0]:
                self._tighten(name, (
                    f'{f"VM {whom}" if whom else "what this host uses"} rose above what was '
                    f'reserved; {budgets[name]:.4g} of {capacity:.4g} are left'), Episode(
                        setting.window, whom, self._budgets.get(name, math.nan), budgets[name]))
        self._budgets = budgets
        return budgets

    def _adapt(self, seen: Observation, most: int, held: bool) -> None:
        """Adapt the quota of the CPU by the best signal that this host has."""
        settings, uses = self._settings, seen.uses
        counted = {uuid: use for uuid, use in uses.items() if math.isfinite(use.per_cycle)}
        timed = {uuid: use for uuid, use in uses.items()
                 if math.isfinite(use.running) and math.isfinite(use.waiting)}
        by_vm: dict[str, float] = {}
        if not uses and not self._last and not seen.pinned:
            signal, value = 'none', math.nan
        elif not counted and not timed:
            signal, value = '' if self._signal == 'none' else self._signal, math.nan
        elif counted and set(timed) <= set(counted):
            signal, by_vm = 'instructions per cycle', {
                uuid: use.per_cycle for uuid, use in counted.items()}
            value = (sum(use.instructions for use in counted.values())
                     / sum(use.cycles for use in counted.values()))
        else:
            signal, by_vm = 'share of the time wanted on cores', {
                uuid: use.on_core for uuid, use in timed.items()}
            value = on_core(sum(use.running for use in timed.values()),
                            sum(use.waiting for use in timed.values()),
                            len(timed))
        if signal != self._signal:
            self.quota, self._signal = controllers.Quota(settings.aimd.minimum), signal
        if signal == 'none':
            # No VM is there to be harmed.
            grown = settings.aimd.minimum if held else self.quota.cores + settings.aimd.increase
            self.quota = self.quota._replace(cores=min(grown, float(most)), event='inside')
            return
        floor = _SLACK * (1.0 if math.isnan(self.quota.mean) else abs(self.quota.mean))
        setting = dataclasses.replace(settings.processor, floor=floor)
        before = self.quota
        self.quota = controllers.adapt(before, value, float(most), setting, settings.aimd, held)
        whom = self._whom(signal, by_vm, -1.0, setting.window)
        if self.quota.event in ('below', 'phase change', 'unknown') and (
                self.quota.cores < before.cores):
            self._tighten(PROCESSOR, (
                f'of {f"VM {whom}" if whom else "no VM"} the {signal} is not what it was (all: '
                f'{value:.3g}, band {before.mean:.3g} ± {before.deviation:.2g}); quota '
                f'{before.cores:.2f} → {self.quota.cores:.2f} cores'), Episode(
                    setting.window, whom, before.cores, self.quota.cores))

    def _episodes(self, stopped: Sequence[str], cpus: frozenset[int], seen: Observation) -> None:
        """Note what is tight, and since when no longer: a line each, not one a second."""
        if stopped:
            self._tighten(PAUSE, (
                f'{", ".join(stopped)} {"killed" if self._settings.kill else "paused"}: what the '
                f'groups use does not fit beside what this host uses'), Episode(
                    self._settings.memory.window))
        if not cpus and seen.online:
            self._tighten(CORES, 'all groups paused: a VM is pinned to each core', Episode(1))
        for name in [name for name, one in self.episodes.items() if one.left <= 0]:
            del self.episodes[name]
            self._notes.append(f'{name}: no longer tight')
        self.episodes = {name: dataclasses.replace(one, left=one.left - 1)
                         for name, one in self.episodes.items()}

    def _tighten(self, name: str, why: str, now: Episode) -> None:
        self.tightened[name] = self.tightened.get(name, 0) + 1
        if name not in self.episodes:
            self._notes.append(f'{name}: {why}')
        begun = self.episodes.setdefault(name, now)
        self.episodes[name] = dataclasses.replace(
            begun, left=now.left, least=min(begun.least, now.least))

    def _whom(self, name: str, values: Mapping[str, float], sign: float,
              window: int) -> str | None:
        """Return the VM whose value is furthest from its own mean, in the direction that counts.

        The means follow with a weight of 1 / w a sample.
        """
        away = {uuid: sign * (value - self._means.get((name, uuid), value))
                for uuid, value in values.items() if math.isfinite(value)}
        for uuid in away:
            mean = self._means.get((name, uuid), values[uuid])
            self._means[name, uuid] = mean + (values[uuid] - mean) / window
        gone = [key for key in self._means if key[0] == name and key[1] not in values]
        for key in gone:
            del self._means[key]
        return max(sorted(away), key=lambda uuid: away[uuid], default=None)


def _first(now: Mapping[str, float], before: Mapping[str, float], name: str) -> float:
    """Return a rate as it is known now, or else as it was."""
    value = now.get(name, math.nan)
    return value if math.isfinite(value) else before.get(name, math.nan)
