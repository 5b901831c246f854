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

"""Tracker of recommended migrations, their outcomes, and the results of audits."""

from __future__ import annotations

import logging
import math
import time
from typing import Any, Callable, Mapping

from tracon_watcher import document
from tracon_watcher.engine import episode_tracker
from tracon_watcher.engine.storage import errors
from tracon_watcher.engine.storage import lease
from tracon_watcher.engine.storage import moves
from tracon_watcher.engine.storage import repository as storages
from tracon_watcher.engine import view as views
from tracon_watcher.placement import plan

LOG = logging.getLogger(__name__)
SCHEMA = 'tracon-move/1'
#: Seconds after a recommendation in which a migration of the VM to that host counts as it.
PATIENCE = 86400.0
_WEEK = 7 * 86400.0
#: Earlier removals of an audit that are kept.
_PAST = 100


class MigrationTracker:
    """Takes down moves, sees them made, and measures them.

    :param view_of: returns what the engine knows now
    :param term: returns the engine's term; raises when it does not lead
    :param clock: seconds since the epoch
    """

    def __init__(self, storage: storages.Storage, view_of: Callable[[], views.View | None],
                 term: Callable[[], lease.Term], clock: Callable[[], float] = time.time) -> None:
        self._storage = storage
        self._view_of = view_of
        self._term = term
        self._clock = clock
        self.episodes = episode_tracker.EpisodeTracker(storage.episodes, view_of, clock)

    def recommended(self, documents: list[dict[str, Any]]) -> None:
        """Take down what the strategy tells of: moves, with what is observed of the VMs now, and
        what an audit has left; and the episodes that tracon-background tells of.

        :raises tracon_watcher.errors.InvalidDocument: naming the field; then none is taken down
        """
        others = (episode_tracker.SCHEMA, plan.SCHEMA)
        episodes, left = ([one for one in documents if one.get('schema') == schema]
                          for schema in others)
        recommended = [one for one in documents if one.get('schema') not in others]
        if episodes:
            self.episodes.take(episodes)
        # Of all VMs: episodes come more often than moves.
        observed, limits = (self._observed(), self._limits()) if recommended else ({}, {})
        made = [_move(one, observed, limits) for one in recommended]
        told = [plan.read_audit(one) for one in left]
        if made:
            self._storage.moves.add(made)
        for one in told:
            self._storage.audits.put(self._with_past(one))

    def _with_past(self, told: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what an audit tells with its earlier removals, which it tells no more.

        One that it recommends again was not carried out.
        """
        before = self._storage.audits.get(told['audit']) or {}
        again = {(one['vm'], one['host']) for one in told['removals']}
        past = [*before.get('past', ()),
                *({**one, 'at': before['at']} for one in before.get('removals', ())
                  if (one['vm'], one['host']) not in again)]
        return {**told, 'past': past[-_PAST:]} if past else told

    def moved(self, vm: str, host: str) -> None:
        """Take note that a VM has come to a host, regardless of who ordered it."""
        try:
            self._moved(vm, host, self._clock())
        except errors.StorageFailed as error:
            LOG.warning('The move of VM %s to %s was not recorded: %s', vm, host, error)

    def _moved(self, vm: str, host: str, now: float) -> None:
        for state in (moves.RECOMMENDED, moves.STARTED):
            for one in self._storage.moves.find(vm=vm, state=state, since=now - PATIENCE):
                if one.destination == host:
                    self._storage.moves.ended(one.id, now, True)
                    return
        self._storage.cooldowns.moved(vm, now)

    def measure(self) -> int:
        """Measure the outcomes that are due, and return how many there were."""
        view = self._view_of()
        if view is None:
            return 0
        now = self._clock()
        due = self._storage.outcomes.due(now)
        observed = self._observed()
        for one in due:
            move = self._storage.moves.get(one.move)
            if move is not None:
                self._storage.outcomes.record(self._term(), one, move, observed, now)
        self.episodes.measure(view)
        return len(due)

    def standing(self) -> dict[str, Any]:
        """Return what was learnt, as the strategy asks for it."""
        now = self._clock()
        return {'suspended': {one.kind: one.until
                              for one in self._storage.kinds.suspended(now)},
                'cooldowns': {vm: one.until
                              for vm, one in self._storage.cooldowns.running(now).items()}}

    def counts(self) -> tuple[Mapping[str, int], Mapping[str, int]]:
        """Return how many moves of the last seven days there are by state, and by verdict."""
        since = self._clock() - _WEEK
        return self._storage.moves.states(since), self._storage.outcomes.verdicts(since)

    def _observed(self) -> Mapping[str, float]:
        view = self._view_of()
        if view is None:
            return {}
        return dict(zip(view.assessor.cluster.uuids, view.observed.tolist()))

    def _limits(self) -> Mapping[str, float | None]:
        """Return the largest slowdown that each VM may have, None for any."""
        view = self._view_of()
        if view is None:
            return {}
        cluster = view.assessor.cluster
        return {uuid: limit if math.isfinite(limit) else None
                for uuid, limit in zip(cluster.uuids, cluster.max_slowdown.tolist())}


def _move(content: Any, observed: Mapping[str, float],
          limits: Mapping[str, float | None]) -> moves.MoveRecord:
    fields = document.Fields('a move', content)
    fields.string('schema', (SCHEMA,))
    return moves.MoveRecord(
        fields.string('id'), fields.string('kind'), _effect(fields.section('own'), observed),
        tuple(_effect(one, observed) for one in fields.sections('relieved')),
        fields.string('source'), fields.string('destination'), fields.string('reason'),
        fields.number('decided_at', 0), fields.string('audit') if fields.has('audit') else None,
        # A strategy of an earlier release does not tell them.
        changes=tuple(_change(one, limits) for one in fields.sections('changes'))
        if fields.has('changes') else ())


def _change(fields: document.Fields, limits: Mapping[str, float | None]) -> dict[str, Any]:
    vm = fields.string('vm')
    # Of a VM that the engine does not know, no limit is recorded, which is not the same as none.
    return {'vm': vm, **({'limit': limits[vm]} if vm in limits else {}),
            **{name: _prediction(fields.section(name)) for name in ('before', 'after')}}


def _prediction(fields: document.Fields) -> dict[str, Any]:
    bounds = {name: fields.number(name) if fields.has(name) else None
              for name in ('lower', 'upper')}
    return {'predicted': fields.number('predicted', 1), **bounds,
            'in_breach': fields.raw('in_breach') is True}


def _effect(fields: document.Fields, observed: Mapping[str, float]) -> moves.MoveEffect:
    vm = fields.string('vm')
    return moves.MoveEffect(vm, fields.number('before', 1), fields.number('after', 1),
                            observed.get(vm, math.nan))
