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

"""Arrivals on hosts, or departures from them, that Nova has shown and a snapshot may not yet."""

from __future__ import annotations

from tracon_watcher.placement import cluster as cluster_module

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
