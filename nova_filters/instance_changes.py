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

"""Changes on hosts since the snapshot, as Nova shows them: arrivals, departures, moves."""

from __future__ import annotations

import dataclasses
import threading
from typing import Callable

import numpy as np

from nova_filters import assumed_placements
from nova_filters import request as hosts_module
from nova_filters import request
from tracon_watcher.characteristics import BoolArray, FloatArray, IO, IntArray
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import storage_backends

#: Events that are kept at most. Each may cost a request the assessment of one more host.
MOST = 1024
#: A snapshot whose data of a host is newer than an event by this many seconds knows better.
KNOWN_AFTER = 120.0


class Departures:
    """From which host each VM has gone in the last two minutes, whatever snapshots show.

    By then Nova's lists of the hosts agree with where VMs are. After a live migration the source
    lists the VM until they do, or lists it again; the destination counts it and lists it late.
    """

    def __init__(self) -> None:
        self._left: dict[str, tuple[str, float]] = {}

    def add(self, uuid: str, host: str, at: float) -> None:
        """Note one, ``at`` seconds since the epoch; the oldest goes where there are too many."""
        self._left.pop(uuid, None)
        self._left[uuid] = host, at
        while len(self._left) > MOST:
            del self._left[next(iter(self._left))]

    def host(self, uuid: str, now: float) -> str | None:
        """Return the host that a VM has gone from, None where it has not gone lately."""
        host, at = self._left.get(uuid, (None, now))
        return host if abs(now - at) <= KNOWN_AFTER else None


class Events:
    """The latest event of each VM, by uuid: the host's name and when it was seen.

    They are bounded in number, and in age: one that is older than data of a host may be says
    nothing, since by then the host's data is either newer than the event, or stale.

    :param shown: whether a snapshot that does not know of the event shows the VM on the host
    """

    def __init__(self, shown: bool) -> None:
        self._shown = shown
        self._events: dict[str, tuple[str, float]] = {}

    def __len__(self) -> int:
        return len(self._events)

    def add(self, uuid: str, host: str, at: float) -> None:
        """Note one, ``at`` seconds since the epoch; the oldest goes where there are too many."""
        self._events.pop(uuid, None)
        self._events[uuid] = host, at
        while len(self._events) > MOST:
            del self._events[next(iter(self._events))]

    def undo(self, uuid: str, host: str) -> None:
        """Forget one, should it have been on this host."""
        if self._events.get(uuid, (None,))[0] == host:
            del self._events[uuid]

    def current(self, cluster: cluster_module.ClusterState, maximum_age: float,
                now: float) -> list[tuple[str, int]]:
        """Return (uuid, host index) of those that a snapshot does not know; forget the others.

        :param maximum_age: seconds after which data of a host is stale
        :param now: seconds since the epoch
        """
        found = []
        for uuid, (name, at) in list(self._events.items()):
            row = cluster.host_index.get(name)
            resident = cluster.resident_index.get(uuid)
            shown = resident is not None and cluster.host[resident] == row
            if (row is None or shown != self._shown
                    or at + KNOWN_AFTER < cluster.updated_at[row] <= now + KNOWN_AFTER
                    # The clock may have been set back.
                    or abs(now - at) > maximum_age + KNOWN_AFTER):
                del self._events[uuid]
            else:
                found.append((uuid, row))
        return found


# No host has so large a deficit.
_NEVER_SEEN = np.iinfo(np.intp).min


class Surplus:
    """The surplus of each of h hosts beyond its usual one.

    The usual surplus is what a host had when it was first seen, or less since; never below 0: a
    host that counted two less than it listed has no surplus of two when it lists those no more.

    :param patience: seconds after which a surplus that lasts is usual, too
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._usual: IntArray = np.empty(0, dtype=np.intp)
        #: Since when a host has been above its usual surplus, or below; NaN: it is not.
        self._since: FloatArray = np.empty(0)
        self._above: BoolArray = np.empty(0, dtype=bool)
        self._all_usual = True

    def rebase(self, places: IntArray) -> None:
        """Carry over to other hosts.

        :param places: (h,) where each of the new hosts was among the old ones, -1 for nowhere
        """
        usual, since, above = self._usual, self._since, self._above
        kept = places >= 0
        self._usual = np.full(len(places), _NEVER_SEEN, dtype=np.intp)
        self._since = np.full(len(places), np.nan)
        self._above = np.zeros(len(places), dtype=bool)
        for new, old in ((self._usual, usual), (self._since, since), (self._above, above)):
            new[kept] = old[places[kept]]

    def unsettled(self, rows: IntArray, now: float) -> BoolArray:
        """Say for which hosts Nova's list should change soon, (n,).

        :param rows: (n,) indices of hosts
        :param now: seconds since the epoch
        """
        if self._all_usual:
            return np.zeros(len(rows), dtype=bool)
        # The clock may have been set back.
        return np.asarray(np.abs(now - self._since[rows]) <= self._patience)

    def grew(self, row: int, now: float) -> None:
        """Begin again to wait for a host with a surplus that has come to list more."""
        if self._above[row]:
            self._since[row] = now

    def update(self, rows: IntArray, surplus: IntArray, now: float) -> IntArray:
        """Note what was found, and return how much of it is VMs that are being built, (n,).

        :param rows: (n,) indices of hosts
        :param surplus: (n,) instances that each counts, less those that it lists
        :param now: seconds since the epoch
        """
        before = self._usual[rows]
        # So it is on nearly every request, which should cost next to nothing.
        if self._all_usual and (surplus == before).all():
            return np.zeros(len(rows), dtype=np.intp)
        positive = np.maximum(surplus, 0)
        usual = np.where(before == _NEVER_SEEN, positive, np.minimum(before, positive))
        above = surplus > usual
        # The earlier of the two, should the clock be set back; fmin passes over NaN.
        since = np.where(above == self._above[rows], np.fmin(self._since[rows], now), now)
        since[surplus == usual] = np.nan
        lasting = above & (now - since > self._patience)
        if lasting.any():
            usual[lasting], since[lasting], above[lasting] = positive[lasting], np.nan, False
        self._usual[rows], self._since[rows], self._above[rows] = usual, since, above
        self._all_usual = bool(np.isnan(self._since).all())
        return np.asarray(positive - usual)


_WINDOW = 128
_UNSEEN = -1


@dataclasses.dataclass(frozen=True)
class Arrival:
    """A VM on a host that the snapshot does not show there yet.

    :param intended: whether Nova has given it the host, but does not list it there yet; a build
        may fail there and be done elsewhere, and one that moves still runs where it was
    """

    uuid: str
    profile: newcomer_profiles.Profile
    limits: limits_module.Limits = limits_module.NONE
    intended: bool = False


#: VMs that came to a host, by uuid.
Arrivals = dict[str, Arrival]


@dataclasses.dataclass
class HostChange:
    """How one host differs from the snapshot."""

    gone: set[str] = dataclasses.field(default_factory=set)
    arrived: Arrivals = dataclasses.field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.gone or self.arrived)


class InstanceChanges:
    """Remembers what each host's list of instances was, and what has changed since.

    Its cost follows the number of hosts that change, not of all; but for its first look.

    :param patience: seconds in which a VM that a host counts is built, and listed
    :param superseded: called with the VMs whose placement is forgotten since they have come to
        another host
    """

    def __init__(self, patience: float,
                 superseded: Callable[[list[str]], None] = lambda uuids: None) -> None:
        self._superseded = superseded
        self._assessor: assessment.Assessor | None = None
        self._sets: list[frozenset[str] | None] = []
        self._counts = np.empty(0, dtype=np.intp)
        self._lengths = np.empty(0, dtype=np.intp)
        self._surplus = Surplus(patience)
        self._arrived = Events(shown=False)
        self._gone = Events(shown=True)
        self._departures = Departures()
        self._window = 0
        self._lock = threading.Lock()

    def changes(self, assessor: assessment.Assessor, hosts: hosts_module.HostStates,
                rows: IntArray,
                pending: assumed_placements.AssumedPlacements, newcomer_uuid: str, now: float,
                stale: BoolArray) -> dict[int, HostChange]:
        """Return the changes of those of the hosts that have any, by the snapshot's index.

        :param rows: (n,) as :meth:`~nova_filters.request.HostStates.rows` gives
        :param stale: (h,) hosts of the snapshot that are unknown whatever has changed on them,
            so that their changes are left out
        :param newcomer_uuid: is left out everywhere
        :param now: seconds since the epoch
        """
        if not (rows >= 0).any():
            return {}
        states, counts = hosts.states, np.array(hosts.counts, dtype=np.intp)
        with self._lock:
            self._rebase(assessor)
            came, departed = self._compare(states, rows, counts, now)
            unlisted = self._unlisted(rows, counts, now)
            moved = {row: self._moved(row, now) for row in rows[list(unlisted)].tolist()}
            age = assessor.settings.maximum_age
            arrived, gone = (events.current(assessor.cluster, age, now)
                             for events in (self._arrived, self._gone))
        pending.left(departed)
        superseded = pending.came(came, now)
        if superseded:
            self._superseded(superseded)
        on_the_way = pending.all(now)
        if not (arrived or gone or on_the_way or unlisted):
            return {}
        position = _positions(rows, len(assessor.cluster.hosts))
        position[stale] = -1
        changes: dict[int, HostChange] = {}
        for uuid, row in gone:
            if position[row] >= 0 and uuid != newcomer_uuid:
                changes.setdefault(row, HostChange()).gone.add(uuid)
        for uuid, row in arrived:
            if position[row] >= 0 and uuid != newcomer_uuid:
                changes.setdefault(row, HostChange()).arrived[uuid] = self._arrival(
                    assessor, uuid, states[position[row]], pending)
        explained = self._add_pending(assessor, states, position, changes, on_the_way,
                                      newcomer_uuid)
        for place, number in unlisted.items():
            row = int(rows[place])
            if position[row] >= 0:
                self._add_unknown(assessor, row, states[place], number - len(
                    moved[row] | explained.get(row, set())), changes)
        return {row: change for row, change in changes.items() if change}

    @staticmethod
    def expected(cluster: cluster_module.ClusterState,
                 pending: assumed_placements.AssumedPlacements,
                 newcomer_uuid: str, now: float, stale: BoolArray) -> dict[int, Arrivals]:
        """Return the VMs that will most likely take a host, by the snapshot's host index.

        :param stale: (h,) hosts that are left out
        """
        found: dict[int, Arrivals] = {}
        for one in pending.expected(now):
            row = cluster.host_index.get(one.node, cluster.host_index.get(one.host))
            if (row is not None and not stale[row] and one.uuid != newcomer_uuid
                    and one.uuid not in cluster.resident_index):
                found.setdefault(row, {})[one.uuid] = Arrival(
                    one.uuid, one.profile, one.limits)
        return found

    def _rebase(self, assessor: assessment.Assessor) -> None:
        """Carry what is remembered over to the order of another snapshot's hosts."""
        if self._assessor is assessor:
            return
        old = {} if self._assessor is None else self._assessor.cluster.host_index
        places = [old.get(name, -1) for name in assessor.cluster.hosts]
        self._sets = [self._sets[place] if place >= 0 else None for place in places]
        kept = np.array(places, dtype=np.intp)
        for name in ('_counts', '_lengths'):
            array = np.full(len(places), _UNSEEN, dtype=np.intp)
            array[kept >= 0] = getattr(self, name)[kept[kept >= 0]]
            setattr(self, name, array)
        self._surplus.rebase(kept)
        self._assessor = assessor

    def _compare(self, states: list, rows: IntArray, counts: IntArray,
                 now: float) -> tuple[list[tuple[str, str]], list[tuple[str, str, str]]]:
        """Note what came and went.

        :returns: (uuid, host) of what came and no snapshot has shown there, and (uuid, host, node)
            of what went
        """
        assert self._assessor is not None
        cluster = self._assessor.cluster
        count = len(rows)
        known = np.flatnonzero(rows >= 0)
        chosen = rows[known]
        before = self._counts[chosen]
        # A list is looked at when the host counts otherwise than before, and as long as the two
        # should agree soon: what is counted first is listed later.
        wanted = np.zeros(count, dtype=bool)
        wanted[known] = (before != counts[known]) | self._surplus.unsettled(chosen, now)
        self._counts[chosen] = counts[known]
        for place in np.flatnonzero(wanted):
            wanted[place] = len(states[place].instances) != self._lengths[rows[place]]
        wanted[known[self._in_window(chosen)]] = True
        came, departed = [], []
        for place in np.flatnonzero(wanted):
            row, state = int(rows[place]), states[place]
            present, before = frozenset(state.instances), self._sets[row]
            if before and not present and state.num_instances:
                # Nova could not load the list; that says nothing of who is there.
                continue
            self._sets[row], self._lengths[row] = present, len(present)
            if before is None or present == before:
                continue
            name = cluster.hosts[row]
            if present - before:
                self._surplus.grew(row, now)
            for uuid in present - before:
                resident = cluster.resident_index.get(uuid)
                shown = None if resident is None else int(cluster.host[resident])
                back = self._departures.host(uuid, now) == name
                if back and shown not in (None, row):
                    # It has moved; only then does the host that it has left tell of it once more.
                    continue
                self._arrived.add(uuid, name, now)
                self._gone.undo(uuid, name)
                # One that is shown may have come long ago, and be on its way to another host.
                if not back and shown != row:
                    came.append((uuid, state.host))
            for uuid in before - present:
                self._gone.add(uuid, name, now)
                self._departures.add(uuid, name, now)
                self._arrived.undo(uuid, name)
                departed.append((uuid, state.host, state.nodename))
        return came, departed

    def _in_window(self, chosen: IntArray) -> BoolArray:
        """Say which of the hosts are looked at whatever they count, (n,); and wander on."""
        if len(chosen) <= _WINDOW:
            return np.ones(len(chosen), dtype=bool)
        assert self._assessor is not None
        start = self._window * _WINDOW
        # An odd number of windows, so that each comes to both of two kinds that take turns.
        self._window = (self._window + 1) % (
            (len(self._assessor.cluster.hosts) // max(_WINDOW, 1) + 1) | 1)
        return np.asarray((chosen >= start) & (chosen < start + _WINDOW))

    def _unlisted(self, rows: IntArray, counts: IntArray, now: float) -> dict[int, int]:
        """Return by position how many VMs a host counts while they are being built."""
        known = np.flatnonzero(rows >= 0)
        chosen = rows[known]
        more = self._surplus.update(chosen, counts[known] - self._lengths[chosen], now)
        return {int(known[place]): int(more[place]) for place in np.flatnonzero(more)}

    def _moved(self, row: int, now: float) -> set[str]:
        """Return the VMs that have moved to a host by the snapshot, and are not listed there yet.

        Another host lists them still, and counts fewer than it lists; or it did list them.
        """
        assert self._assessor is not None
        cluster, listed = self._assessor.cluster, self._sets[row] or frozenset()
        late = {uuid for uuid in cluster.uuids[cluster.first[row]:cluster.first[row + 1]]
                if uuid not in listed}
        if not late:
            return late
        found = {uuid for uuid in late
                 if self._departures.host(uuid, now) not in (None, cluster.hosts[row])}
        for other in np.flatnonzero(self._counts < self._lengths):
            found |= late.intersection(self._sets[other] or ())
        return found

    @staticmethod
    def _arrival(assessor: assessment.Assessor, uuid: str, state,
                 pending: assumed_placements.AssumedPlacements) -> Arrival:
        """Return what is expected of a VM that the snapshot does not show on its host."""
        cluster = assessor.cluster
        row = cluster.resident_index.get(uuid)
        if row is not None:
            return Arrival(uuid, cluster.resident_profile(row), cluster.resident_limits(row))
        known = pending.known(uuid)
        if known is not None:
            return Arrival(uuid, *known)
        instance = state.instances.get(uuid)
        kind = request.kind_of_instance(instance) if instance is not None else None
        profile = newcomer_profiles.expected(cluster.history, *(kind or ('', '', '')))
        if kind is not None:
            profile = dataclasses.replace(profile, vcpus=request.vcpus(instance.flavor),
                                          cpu_weight=request.cpu_weight(instance.flavor))
        return Arrival(
            uuid, storage_backends.felt(
                cluster, profile, kind is not None and newcomer_profiles.on_volume(kind[-1])),
            limits_module.Limits(
                background=kind is not None and request.background(instance.flavor)))

    @staticmethod
    def _add_pending(assessor: assessment.Assessor, states: list, position: IntArray,
                     changes: dict[int, HostChange],
                     on_the_way: list[assumed_placements.Placement],
                     newcomer_uuid: str) -> dict[int, set[str]]:
        """Add placements that are not visible.

        :returns: by host index, those of them that the host does not list
        """
        cluster = assessor.cluster
        explained: dict[int, set[str]] = {}
        for one in on_the_way:
            row = cluster.host_index.get(one.node, cluster.host_index.get(one.host))
            if row is None or position[row] < 0:
                continue
            listed = one.uuid in states[position[row]].instances
            if not listed:
                explained.setdefault(row, set()).add(one.uuid)
            if one.uuid == newcomer_uuid:
                continue
            shown = cluster.resident_index.get(one.uuid)
            change = changes.setdefault(row, HostChange())
            if shown is not None and cluster.host[shown] == row:
                # It runs there, though Nova has not been told yet.
                change.gone.discard(one.uuid)
            elif one.uuid not in change.arrived:
                profile = one.profile
                if not listed and storage_backends.pool_of(cluster, shown) >= 0:
                    profile = _without_io(profile)      # which the pool has already
                change.arrived[one.uuid] = Arrival(one.uuid, profile, one.limits, not listed)
        return explained

    @staticmethod
    def _add_unknown(assessor: assessment.Assessor, row: int, state, number: int,
                     changes: dict[int, HostChange]) -> None:
        """Add VMs that a compute host counts already and of which nothing else is known.

        Somebody whom this worker does not hear of, such as a scheduler on another machine, has
        placed them. They are expected to be like all others.
        """
        profile = newcomer_profiles.expected(assessor.cluster.history, '', '', '')
        if profile.known:
            for index in range(number):
                uuid = f'{state.nodename}/unknown-{index}'
                changes.setdefault(row, HostChange()).arrived[uuid] = Arrival(uuid, profile)


def _without_io(profile: newcomer_profiles.Profile) -> newcomer_profiles.Profile:
    mean, deviation = profile.mean.copy(), profile.deviation.copy()
    mean[IO] = deviation[IO] = 0.0
    return dataclasses.replace(profile, mean=mean, deviation=deviation)


def _positions(rows: IntArray, hosts: int) -> IntArray:
    """Return where each of a snapshot's hosts is among those of the request, (h,); -1: nowhere."""
    positions = np.full(hosts, -1, dtype=np.intp)
    known = np.flatnonzero(rows >= 0)
    positions[rows[known]] = known
    return positions
