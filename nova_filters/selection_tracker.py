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

"""Tracker of the host that each assessed request was given."""

from __future__ import annotations

import dataclasses
import threading
from typing import Callable
import weakref

from nova_filters import assumed_placements
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer_profiles

# A claim in Placement takes far less; a request that failed is forgotten sooner, with its spec.
_LONGEST_REQUEST = 60.0
# Requests that have ended and wait for the background at most: each keeps all its HostStates.
_MOST_ENDED = 64


@dataclasses.dataclass
class WatchedRequest:
    """A judged request.

    :param counts: ``num_instances`` of the HostStates when they were judged
    :param limits_at: the newcomer's limits on the host at a position
    :param chosen: HostStates and uuids of the instances that were placed
    :param expected: position of the HostState that will most likely be chosen
    """

    spec: weakref.ref
    uuid: str
    states: list
    counts: list[int]
    profile: newcomer_profiles.Profile
    limits_at: Callable[[int], limits_module.Limits]
    at: float
    chosen: list[tuple[object, str]] = dataclasses.field(default_factory=list)
    expected: int | None = None


class SelectionTracker:
    """Watches judged requests until their host is known.

    :param placements: where expected ones are noted
    :param settled: called with each placement found, and with the uuids of placements that came
        to nothing because the request failed afterwards
    """

    def __init__(self, placements: assumed_placements.AssumedPlacements,
                 settled: Callable[[list[assumed_placements.Placement], list[str]], None]) -> None:
        self._placements = placements
        self._settled = settled
        self._open: dict[int, WatchedRequest] = {}
        self._lock = threading.Lock()

    @property
    def waiting(self) -> bool:
        """Whether any request is watched."""
        return bool(self._open)

    def watch(self, spec, uuid: str, states: list, counts: list[int],
              profile: newcomer_profiles.Profile,
              limits_at: Callable[[int], limits_module.Limits], now: float) -> None:
        """Watch a request, or the next instance of one that asks for several."""
        watched = WatchedRequest(weakref.ref(spec), uuid, states, counts, profile, limits_at, now)
        with self._lock:
            old = self._open.get(id(spec))
            if old is not None and old.spec() is spec:
                watched.chosen = old.chosen
            self._open[id(spec)] = watched

    def chosen(self, spec, uuid: str) -> bool:
        """Say whether an instance of a request was given a host, as far as :meth:`settle` saw."""
        with self._lock:
            one = self._open.get(id(spec))
            return one is not None and one.spec() is spec and uuid in (
                placed for _state, placed in one.chosen)

    def expect(self, spec, position: int, now: float) -> None:
        """Note which of the watched HostStates will most likely be chosen.

        :param spec: the RequestSpec that was watched
        :param position: of the HostState among those watched
        :param now: seconds since the epoch
        """
        with self._lock:
            one = self._open.get(id(spec))
            if one is None or one.spec() is not spec or position >= len(one.states):
                return
            one.expected = position
            state = one.states[position]
            self._placements.expect(assumed_placements.Placement(
                one.uuid, state.host, state.nodename, one.profile, one.limits_at(position), now))

    def settle(self, now: float, spec=None, scanned: int = 0) -> None:
        """Look at which hosts were chosen since.

        :param spec: of a request that waits for this: of others only the hosts that were expected
            are looked at, which costs nothing; the rest is left to the background. None: no
            request waits
        :param scanned: of how many other requests with no expected host all are looked at, too
        """
        if not self._open:
            return
        found: list[assumed_placements.Placement] = []
        failed: list[str] = []
        left: list[int] = []
        with self._lock:
            for key, one in list(self._open.items()):
                ended = one.spec() is None or abs(now - one.at) > _LONGEST_REQUEST
                hasty = spec is not None and one.spec() is not spec
                if hasty and scanned > 0 and one.states and one.expected is None:
                    scanned -= 1
                    hasty = False
                found += self._found(one, now, hasty)
                # A request for several that cannot be met in full gives back what it took: Nova
                # then unsets the time at which it updated the HostState.
                failed += [uuid for state, uuid in one.chosen if state.updated is None]
                one.chosen = [(state, uuid) for state, uuid in one.chosen
                              if state.updated is not None]
                if ended:
                    self._placements.unexpected(one.uuid)
                    # Which other host it may have been given, the background looks up.
                    if hasty and one.states:
                        left.append(key)
                    else:
                        del self._open[key]
            for key in left[:-_MOST_ENDED]:
                del self._open[key]
            if found or failed:
                self._settled(found, failed)

    @staticmethod
    def _found(one: WatchedRequest, now: float, hasty: bool) -> list[assumed_placements.Placement]:
        if not one.states:
            return []
        position = SelectionTracker._raised(one, hasty)
        if position is None:
            return []
        state = one.states[position]
        one.chosen.append((state, one.uuid))
        found = assumed_placements.Placement(one.uuid, state.host, state.nodename, one.profile,
                                             one.limits_at(position), now)
        one.states, one.counts = [], []
        return [found]

    @staticmethod
    def _raised(one: WatchedRequest, hasty: bool) -> int | None:
        """Return the position of the one HostState whose count has risen.

        :param hasty: look at the one that is expected alone
        """
        expected = one.expected
        # Mostly it is the one expected, and the other thousands need not be looked at.
        if expected is not None and one.states[expected].num_instances > one.counts[expected]:
            return expected
        if hasty:
            return None
        counts = [state.num_instances for state in one.states]
        if counts == one.counts:
            return None
        return next((position for position, (before, after) in enumerate(zip(one.counts, counts))
                     if after > before), None)
