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

"""Outcomes: what a move was measured to have brought, beside what was predicted."""

from __future__ import annotations

import dataclasses
import datetime
import logging
import math
from typing import Any, Mapping, Sequence

import numpy as np
import sqlalchemy as sa

from tracon_watcher.engine import sequential_test
from tracon_watcher.engine.storage import database as databases
from tracon_watcher.engine.storage import lease
from tracon_watcher.engine.storage import moves
from tracon_watcher.engine.storage import tables

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Outcome:
    """One measurement of a move, done or due. Gains are in log responses; NaN where unknown.

    :param delay: seconds after the move's end
    :param due_at: seconds since the epoch, as is ``measured_at``
    :param predicted: gain of those VMs of whom the gain was measured
    :param measured: their gain: what was observed of them before, against what is now
    :param error: ``measured − predicted``
    :param slowdowns: as measured, by VM
    :param verdict: one of :data:`tracon_watcher.engine.sequential_test.VERDICTS`, None until
        it is known
    """

    id: int
    move: str
    delay: int
    due_at: float
    predicted: float
    measured: float
    error: float
    measured_at: float
    slowdowns: Mapping[str, float]
    verdict: str | None


class Outcomes:
    """The outcomes in a database.

    :param cost: gain, in log responses, from which on a move helped: what a move costs
    :param backoff: for how long kinds are suspended whose moves do not help
    """

    def __init__(self, database: databases.Database, cost: float,
                 backoff: sequential_test.SuspensionRule) -> None:
        self._database = database
        self._cost = cost
        self._backoff = backoff

    def due(self, now: float, limit: int = 100) -> list[Outcome]:
        """Return what is to be measured now, the longest overdue first.

        :param now: seconds since the epoch
        """
        columns = tables.OUTCOMES.c
        return self._select(columns.verdict.is_(None), columns.due_at <= now,
                            order=columns.due_at, limit=limit)

    def of_moves(self, numbers: Sequence[str]) -> dict[str, list[Outcome]]:
        """Return all outcomes of some moves, by id of the move, the earliest first."""
        columns = tables.OUTCOMES.c
        found: dict[str, list[Outcome]] = {}
        for one in self._select(columns.move.in_(numbers), order=columns.delay,
                                limit=len(numbers) * len(moves.DELAYS)):
            found.setdefault(one.move, []).append(one)
        return found

    def of_move(self, number: str) -> list[Outcome]:
        """Return all outcomes of a move, the earliest first."""
        return self.of_moves([number]).get(number, [])

    def verdicts(self, since: float) -> dict[str, int]:
        """Return how many moves have which verdict, by the first measurement of each.

        :param since: seconds since the epoch at which that was due at the earliest
        """
        columns = tables.OUTCOMES.c
        counted = sa.select(columns.verdict, sa.func.count()).where(
            columns.due_at >= since, columns.delay == min(moves.DELAYS),
            columns.verdict.is_not(None)).group_by(columns.verdict)
        found = self._database.read(lambda connection: connection.execute(counted).all())
        return dict.fromkeys(sequential_test.VERDICTS,
                             0) | {verdict: count for verdict, count in found}

    def record(self, term: lease.Term, outcome: Outcome, move: moves.MoveRecord,
               slowdowns: Mapping[str, float], now: float) -> moves.Suspension | None:
        """Take down what was measured, and judge the move by it, and its kind.

        It is unknown when it was measured later than twice its delay after the move, as happens
        when no engine ran; so is the gain of a VM that has moved on since. Each move counts once
        for its kind, by its first outcome that is known.

        :param slowdowns: observed now, by VM; who is missing or NaN is unknown
        :param now: seconds since the epoch
        :return: the suspension of its kind that this leads to; None for none
        :raises storage.errors.NoLongerLeader: when the term is over
        """
        late = now > outcome.due_at + outcome.delay
        seen = {one.vm: math.nan if late else slowdowns.get(one.vm, math.nan)
                for one in move.effects}
        # Others on both hosts are no part of the verdict, but of the ledger.
        others = {str(one['vm']): math.nan if late else slowdowns.get(one['vm'], math.nan)
                  for one in move.changes}

        def work(connection: sa.Connection) -> tuple[str | None, moves.Suspension | None]:
            lease.fence(connection, term)
            if _moved_on(connection, move):
                seen[move.own.vm] = math.nan
            values = self._judged(move, seen)
            columns = tables.OUTCOMES.c
            fresh = connection.execute(sa.update(tables.OUTCOMES).where(
                columns.id == outcome.id, columns.verdict.is_(None),
            ).values(measured_at=now, slowdowns=tables.encode(
                others | seen, f'outcome {outcome.id}'), **values)).rowcount
            verdict = values['verdict']
            if not fresh:
                return None, None
            earlier = connection.scalar(sa.select(sa.func.count()).where(
                columns.move == move.id, columns.id != outcome.id,
                columns.verdict.in_((sequential_test.HELPED, sequential_test.DID_NOT_HELP))))
            if verdict == sequential_test.UNKNOWN or earlier:
                return verdict, None
            return verdict, moves.note(connection, move.kind, verdict, now, self._backoff)

        verdict, suspension = self._database.write(work)
        if verdict is not None:
            LOG.info('Move %s of VM %s to %s, after %d s: %s', move.id, move.own.vm,
                     move.destination, outcome.delay, verdict)
        if suspension is not None:
            LOG.warning(
                'Moves of kind "%s" are suspended until %s: too few of them helped '
                '(suspension number %d in a row)', suspension.kind,
                datetime.datetime.fromtimestamp(suspension.until, datetime.timezone.utc).isoformat(
                    timespec='seconds'), suspension.level)
        return suspension

    def _judged(self, move: moves.MoveRecord, seen: Mapping[str, float]) -> dict[str, Any]:
        now = np.array([seen[one.vm] for one in move.effects])
        observed, before, after = np.array(
            [(one.observed, one.before, one.after) for one in move.effects]).T
        measured = sequential_test.gain(observed, now)
        known = np.isfinite(observed) & np.isfinite(now)
        predicted = sequential_test.gain(np.where(known, before, np.nan), after)
        return {'predicted': predicted, 'measured': measured, 'error': measured - predicted,
                'verdict': sequential_test.verdict(measured, self._cost)}

    def _select(self, *conditions: sa.ColumnElement[bool], order: sa.ColumnElement[Any],
                limit: int) -> list[Outcome]:
        statement = sa.select(tables.OUTCOMES).where(*conditions).order_by(
            order, tables.OUTCOMES.c.id).limit(limit)
        return [_outcome(row) for row in self._database.read(
            lambda connection: connection.execute(statement).all())]


def _moved_on(connection: sa.Connection, move: moves.MoveRecord) -> bool:
    """Say whether the VM was moved again after this move."""
    columns = tables.MOVES.c
    return bool(connection.scalar(sa.select(sa.func.count()).where(
        columns.vm == move.own.vm, columns.id != move.id, columns.state == moves.SUCCEEDED,
        columns.ended_at >= move.ended_at)))


def _outcome(row: Any) -> Outcome:
    slowdowns = {vm: math.nan if value is None else value for vm, value in tables.decode(
        row.slowdowns, f'outcome {row.id}: slowdowns').items()}
    return Outcome(row.id, row.move, row.delay, row.due_at, row.predicted, row.measured,
                   row.error, row.measured_at, slowdowns, row.verdict)
