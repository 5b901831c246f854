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

"""A view, and what is worked out of it once and kept as long as it lives."""

from __future__ import annotations

import contextlib
import datetime
import threading
from typing import Any, Callable, Mapping
import weakref

import numpy as np

from tracon_watcher.api import faults
from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray
from tracon_watcher.engine import view as views
from tracon_watcher.placement import assessment
from tracon_watcher.placement import attribution
from tracon_watcher.placement import current_interference

# Slowdown from which on a VM at a limit of its own is hurt by neighbours as well.
_VISIBLE = 1.1
#: Returns what the engine knows now, None while it knows nothing.
ViewOf = Callable[[], 'views.View | None']
#: Who does something to a VM, and to whom it does something.
Neighbours = tuple[attribution.Attribution, attribution.Influence]
#: VMs whose neighbours are kept; on a pool of a whole cloud one may have tens of thousands.
_NEIGHBOURS = 16


class _Kept:
    """Arrays worked out of one view; it must not hold the view, or neither would ever go."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._turn = threading.Lock()
        self.values: dict[str, Any] = {}
        self._neighbours: dict[int, Neighbours] = {}

    def once(self, name: str, work: Callable[[], Any]) -> Any:
        """Return what ``work`` gives, worked out when it is asked for first."""
        with self.lock:
            if name not in self.values:
                self.values[name] = work()
            return self.values[name]

    def slowly_once(self, name: str, work: Callable[[], Any]) -> Any:
        """Return the same of work that takes seconds: other requests do not wait for it."""
        with self._turn:
            with self.lock:
                if name in self.values:
                    return self.values[name]
            found = work()
            return self.once(name, lambda: found)

    def neighbours(self, row: int, turn: Callable[[], contextlib.AbstractContextManager[None]],
                   work: Callable[[], Neighbours]) -> Neighbours:
        """Return what ``work`` gives for a VM, unless it was asked for a short while ago.

        It takes long on a large pool, so it is done without the lock, and in turns.
        """
        found = self._of(row)
        if found is None:
            with turn():
                # Somebody else may have asked the same meanwhile.
                found = self._of(row) or work()
                with self.lock:
                    self._neighbours[row] = found
                    while len(self._neighbours) > _NEIGHBOURS:
                        del self._neighbours[next(iter(self._neighbours))]
        return found

    def _of(self, row: int) -> Neighbours | None:
        with self.lock:
            found = self._neighbours.pop(row, None)
            if found is not None:
                # The one that was asked for last goes last.
                self._neighbours[row] = found
            return found


class States:
    """Gives each request the present view, with what earlier requests worked out of it.

    :param view_of: returns the present view
    :param clock: seconds since the epoch
    """

    def __init__(self, view_of: ViewOf, clock: Callable[[], float]) -> None:
        self._view_of = view_of
        self._clock = clock
        self._lock = threading.Lock()
        self._kept: dict[int, tuple[weakref.ref[views.View], _Kept]] = {}

    def now(self) -> State:
        """Return the present state.

        :raises tracon_watcher.api.faults.Unavailable: while there is none
        """
        state = self.present()
        if state is None:
            raise faults.Unavailable('The engine has not collected anything yet.')
        return state

    def present(self) -> State | None:
        """Return the present state, None while there is none."""
        view = self._view_of()
        if view is None:
            return None
        key = id(view)
        with self._lock:
            found = self._kept.get(key)
            if found is None or found[0]() is not view:
                # Another object may get the number of one that is gone.
                found = (weakref.ref(view, lambda gone: self._forget(key, gone)), _Kept())
                self._kept[key] = found
        return State(view, found[1], self._clock())

    def prepare(self) -> State | None:
        """Work out of the present view what requests need, so that the first need not wait.

        :return: the present state, None while there is none
        """
        state = self.present()
        if state is not None:
            state.culprits()
            state.vm_order('uuid')
            state.present()
        return state

    def _forget(self, key: int, gone: weakref.ref[views.View]) -> None:
        # The collector may run this while this very thread holds the lock: no lock here, and the
        # one step that changes the dictionary is atomic.
        found = self._kept.get(key)
        if found is not None and found[0] is gone:
            self._kept.pop(key, None)


class State:
    """The view at the time of one request.

    :param now: seconds since the epoch
    """

    def __init__(self, view: views.View, kept: _Kept, now: float) -> None:
        self.view = view
        self.now = now
        self.assessor = view.assessor
        #: Judges by what VMs demand at this moment: the question who disturbs whom is about now.
        self.moment = view.moment
        self.cluster = view.assessor.cluster
        self._kept = kept
        #: Returns what a function gives, worked out once for all requests about this view.
        self.once = kept.once
        self.slowly_once = kept.slowly_once

    @property
    def identity(self) -> tuple[int, int]:
        """Epoch and version of the snapshot."""
        return self.view.epoch, self.cluster.version

    def describe(self) -> dict[str, Any]:
        """Return what an answer says of the state it is from."""
        return {'epoch': self.view.epoch, 'version': self.cluster.version,
                'updated_at': iso(self.view.updated_at),
                'observed_error': number(self.view.observed_error)}

    def present(self) -> current_interference.CurrentInterference:
        """Return what every resident suffers; hosts that have become stale are unknown."""
        stale = self.assessor.stale(self.now)
        key = stale.tobytes()

        def look() -> tuple[bytes, current_interference.CurrentInterference]:
            return key, current_interference.current_interference(self.moment, self.now)

        found = self.once('present', look)
        # It changes when the engine gets nothing new, a few times at most.
        return found[1] if found[0] == key else look()[1]

    def in_breach(self) -> list[str]:
        """Return the uuids of VMs that breach a limit, as predicted."""
        rows = np.flatnonzero(self.present().breached.any(axis=0))
        return [self.cluster.uuids[row] for row in rows.tolist()]

    def statuses(self) -> IntArray:
        """Return what is known of each host, (h,) :class:`.assessment.Status`."""
        return self.present().status

    def agreement(self) -> IntArray:
        """Return whether observed and predicted slowdowns agree, (n,)."""
        return current_interference.agreement(self.present(), self.view.observed,
                                              self.view.observed_error)

    def culprits(self) -> attribution.Culprits:
        """Return who slows each VM down most, and what each costs others."""
        found: attribution.Culprits = self.once(
            'culprits', lambda: attribution.find_culprits(self.moment))
        return found

    def neighbours(self, row: int, turn: Callable[[], contextlib.AbstractContextManager[None]]
                   ) -> Neighbours:
        """Return who does something to a VM now, and to whom it does something.

        :param turn: what to wait for where it has to be worked out
        """
        return self._kept.neighbours(row, turn, lambda: (
            attribution.attribute(self.moment, row), attribution.victims(self.moment, row)))

    def seen(self) -> BoolArray:
        """Return the hosts, (h,), of which enough is known to say what their VMs do."""
        return np.asarray(self.statuses() == assessment.Status.KNOWN)

    def harm(self) -> FloatArray:
        """Return the harm that each VM does to others, (n,) log responses; NaN where unknown."""
        return np.where(self.seen()[self.cluster.host], self.culprits().harm, np.nan)

    def slowdown(self) -> FloatArray:
        """Return the slowdown now, (n,): as observed, or else as predicted; NaN where unknown."""
        predicted = np.exp(self.present().log_response[0])
        return np.where(np.isnan(self.view.observed), predicted, self.view.observed)

    def held_back(self) -> BoolArray:
        """Return the VMs, (n,), that limits of their own hold back, and no neighbour visibly does.

        What is predicted holds for VMs that may run as they like: no VM is named a culprit.
        """
        def work() -> BoolArray:
            held = np.array([uuid in self.view.held_back for uuid in self.cluster.uuids],
                            dtype=np.bool_)
            return np.asarray(held & ~(self.view.observed > _VISIBLE))

        found: BoolArray = self.once('held back', work)
        return found

    def vm(self, row: int) -> views.VM:
        """Return what a resident is called and whose it is."""
        uuid = self.cluster.uuids[row]
        found = self.view.vms.get(uuid)
        return found if found is not None else views.VM(
            uuid, '', '', self.cluster.hosts[self.cluster.host[row]])

    def projects(self) -> tuple[Mapping[str, int], IntArray]:
        """Return the number of each project, and that of each VM's, (n,); −1 where unknown."""
        def work() -> tuple[Mapping[str, int], IntArray]:
            numbers: dict[str, int] = {}
            of_vm = [numbers.setdefault(found.project, len(numbers))
                     if (found := self.view.vms.get(uuid)) is not None and found.project else -1
                     for uuid in self.cluster.uuids]
            return numbers, np.array(of_vm, dtype=np.intp)

        found: tuple[Mapping[str, int], IntArray] = self.once('projects', work)
        return found

    def vm_order(self, name: str) -> IntArray:
        """Return the rank of each VM, (n,), by one of its texts: uuid, name, project or host."""
        def work() -> IntArray:
            if name == 'uuid':
                texts = np.array(self.cluster.uuids, dtype=str)
            elif name == 'host':
                hosts = rank(np.array(self.cluster.hosts, dtype=str))
                return np.asarray(hosts[self.cluster.host])
            else:
                texts = np.array([getattr(self.vm(row), name)
                                  for row in range(len(self.cluster.uuids))], dtype=str)
            return rank(texts)

        found: IntArray = self.once(f'order {name}', work)
        return found

    def host_order(self) -> IntArray:
        """Return the rank of each host, (h,), by its name."""
        found: IntArray = self.once(
            'hosts', lambda: rank(np.array(self.cluster.hosts, dtype=str)))
        return found


def rank(texts: np.ndarray) -> IntArray:
    """Return the rank of each text; equal ones have the same."""
    if not len(texts):
        return np.zeros(0, dtype=np.intp)
    return np.unique(texts, return_inverse=True)[1].astype(np.intp)


def reference(state: State | None, vm: str) -> dict[str, Any]:
    """Return a VM's uuid and name; the name is None where it is unknown."""
    found = None if state is None else state.view.vms.get(vm)
    return {'uuid': vm, 'name': None if found is None else found.name}


def number(value: float, decimals: int = 4) -> float | None:
    """Return a number for JSON, None for what is unknown or no limit at all."""
    return round(float(value), decimals) if np.isfinite(value) else None


def iso(seconds: float | None) -> str | None:
    """Return a time as ISO 8601, to the second, UTC; None where there is none."""
    if seconds is None or not np.isfinite(seconds) or seconds <= 0:
        return None
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime(
        '%Y-%m-%dT%H:%M:%SZ')
