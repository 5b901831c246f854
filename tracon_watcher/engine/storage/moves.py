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

"""Recommended migrations, and kinds of moves with their suspensions."""

from __future__ import annotations

import dataclasses
import logging
import math
from typing import Any, Mapping, Sequence

import sqlalchemy as sa

from tracon_watcher.engine import sequential_test
from tracon_watcher.engine.storage import database as databases
from tracon_watcher.engine.storage import lease
from tracon_watcher.engine.storage import records
from tracon_watcher.engine.storage import tables
from tracon_watcher import errors
from tracon_watcher.placement import cooldown

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Suspension:
    """A kind of moves that is suspended.

    :param until: seconds since the epoch
    :param level: how often it was suspended in a row
    """

    kind: str
    until: float
    level: int


class Kinds:
    """The kinds of moves of which outcomes were measured."""

    def __init__(self, database: databases.Database) -> None:
        self._database = database

    def standings(self) -> dict[str, sequential_test.Standing]:
        """Return what is known, by kind."""
        rows = self._database.read(
            lambda connection: connection.execute(_select()).all())
        return {row.kind: sequential_test.Standing(*row[1:]) for row in rows}

    def suspended(self, now: float) -> list[Suspension]:
        """Return the kinds that are suspended now, ordered by name.

        :param now: seconds since the epoch
        """
        return [Suspension(kind, one.suspended_until, one.level)
                for kind, one in sorted(self.standings().items()) if one.suspended(now)]

    def resume(self, term: lease.Term, kind: str) -> bool:
        """Forget what is known of a kind, as an operator wishes, and return whether anything was.

        :raises errors.NoLongerLeader: when the term is over
        """
        def work(connection: sa.Connection) -> bool:
            lease.fence(connection, term)
            return bool(connection.execute(sa.delete(tables.KINDS).where(
                tables.KINDS.c.kind == kind)).rowcount)

        found = self._database.write(work)
        if found:
            LOG.warning('Moves of kind "%s" are no longer suspended: an operator wishes so', kind)
        return found


def note(connection: sa.Connection, kind: str, verdict: str, now: float,
         backoff: sequential_test.SuspensionRule) -> Suspension | None:
    """Take one more judged move down inside of a fenced transaction.

    :return: the suspension that it leads to, None for none
    """
    row = connection.execute(_select().where(
        tables.KINDS.c.kind == kind).with_for_update()).one_or_none()
    before = sequential_test.Standing() if row is None else sequential_test.Standing(*row[1:])
    after = sequential_test.follow(before, verdict, now, backoff)
    values = dataclasses.asdict(after)
    if row is None:
        connection.execute(sa.insert(tables.KINDS).values(kind=kind, **values))
    else:
        connection.execute(sa.update(tables.KINDS).where(
            tables.KINDS.c.kind == kind).values(**values))
    if after.level > before.level:
        return Suspension(kind, after.suspended_until, after.level)
    return None


def _select() -> sa.Select[tuple[str, float, int, int, int, float, float]]:
    columns = tables.KINDS.c
    return sa.select(columns.kind, columns.evidence, columns.measured, columns.helped,
                     columns.level, columns.suspended_until, columns.suspended_at)


RECOMMENDED, STARTED, SUCCEEDED, FAILED = STATES = (
    'recommended', 'started', 'succeeded', 'failed')
#: Seconds after the end of a move at which its outcome is measured.
DELAYS = (300, 86400)
PAGE = 1000


@dataclasses.dataclass(frozen=True)
class MoveEffect:
    """Slowdowns of a VM; NaN where unknown.

    :param before: predicted where it was, beside whom it was
    :param after: predicted when the move is made
    :param observed: as its counters showed it when the move was decided on
    """

    vm: str
    before: float
    after: float
    observed: float = math.nan


@dataclasses.dataclass(frozen=True)
class MoveRecord:
    """One live migration.

    :param id: as the engine chose it
    :param kind: what is suspended when it does not help, such as ``live_migration of CPU on TYPE``
    :param own: of the VM itself
    :param relieved: of those for whose sake it leaves
    :param reason: in words
    :param decided_at: seconds since the epoch, as are the others; NaN: not yet
    :param audit: Watcher's uuids, where they are known
    :param changes: of every VM that is concerned, ``vm``, ``limit`` (of its slowdown, None for
        none; missing where unknown), and ``before`` and ``after``, each with ``predicted``,
        ``lower``, ``upper`` and ``in_breach``
    """

    id: str
    kind: str
    own: MoveEffect
    relieved: tuple[MoveEffect, ...]
    source: str
    destination: str
    reason: str
    decided_at: float
    audit: str | None = None
    action: str | None = None
    state: str = RECOMMENDED
    started_at: float = math.nan
    ended_at: float = math.nan
    changes: tuple[Mapping[str, Any], ...] = ()

    @property
    def effects(self) -> tuple[MoveEffect, ...]:
        """All VMs that are concerned, the one that moves first."""
        return (self.own, *self.relieved)


class Moves:
    """The moves in a database."""

    def __init__(self, database: databases.Database, rule: cooldown.Rule) -> None:
        self._database = database
        self._rule = rule

    def add(self, moves: Sequence[MoveRecord]) -> int:
        """Store moves that are recommended, and return how many were new.

        :raises tracon_watcher.errors.InvalidDocument: when one of them cannot be stored; then none
            is
        """
        rows = {one.id: _row(one) for one in moves}

        def work(connection: sa.Connection) -> int:
            known = set(connection.scalars(sa.select(tables.MOVES.c.id).where(
                tables.MOVES.c.id.in_(list(rows)))))
            new = [row for number, row in rows.items() if number not in known]
            if new:
                connection.execute(sa.insert(tables.MOVES), new)
            return len(new)

        return self._database.write(work)

    def started(self, number: str, at: float, action: str | None = None) -> bool:
        """Take down that a move has begun; from now on its VM cools down.

        :param at: seconds since the epoch
        :param action: Watcher's uuid, where it was not known before
        :return: whether it was still waiting for that
        """
        values: dict[str, Any] = {'state': STARTED, 'started_at': at}
        if action is not None:
            values['action'] = tables.checked(f'move {number}', 'action', action, tables.ID)
        return self._database.write(
            lambda connection: self._advance(connection, number, (RECOMMENDED,), values, at))

    def ended(self, number: str, at: float, succeeded: bool) -> bool:
        """Take down how a move ended; if it succeeded, its outcomes are due in a while.

        :param at: seconds since the epoch
        :return: whether it had not ended before
        """
        values = {'state': SUCCEEDED if succeeded else FAILED, 'ended_at': at}

        def work(connection: sa.Connection) -> bool:
            changed = self._advance(connection, number, (RECOMMENDED, STARTED), values, at)
            if changed and succeeded:
                connection.execute(sa.insert(tables.OUTCOMES), [
                    {'move': number, 'delay': delay, 'due_at': at + delay, 'slowdowns': '{}'}
                    for delay in DELAYS])
            return changed

        return self._database.write(work)

    def get(self, number: str) -> MoveRecord | None:
        """Return a move by its id, None for none."""
        found = self._select(tables.MOVES.c.id == number, limit=1)
        return found[0] if found else None

    def of_action(self, action: str) -> MoveRecord | None:
        """Return the move that one of Watcher's actions carries out, None for none."""
        found = self._select(tables.MOVES.c.action == action, limit=1)
        return found[0] if found else None

    def find(self, *, vm: str | None = None, state: str | None = None, audit: str | None = None,
             since: float = 0.0, before: MoveRecord | None = None,
             limit: int = 100) -> list[MoveRecord]:
        """Return the latest moves, newest first.

        :param since: seconds since the epoch at which they were decided on at the earliest
        :param before: only those that come after this one in the list
        :raises tracon_watcher.errors.InvalidOption: for a limit that is not 1 to :data:`PAGE`
        """
        if not 1 <= limit <= PAGE:
            raise errors.InvalidOption('limit', limit, f'expected 1 to {PAGE}')
        columns = tables.MOVES.c
        wanted = [columns.decided_at >= since]
        wanted += [column == value for column, value in (
            (columns.vm, vm), (columns.state, state), (columns.audit, audit)) if value is not None]
        if before is not None:
            wanted.append(sa.or_(columns.decided_at < before.decided_at, sa.and_(
                columns.decided_at == before.decided_at, columns.id < before.id)))
        return self._select(*wanted, limit=limit)

    def states(self, since: float) -> dict[str, int]:
        """Return how many moves there are by state; those that none has are among them.

        :param since: seconds since the epoch at which they were decided on at the earliest
        """
        columns = tables.MOVES.c
        counted = sa.select(columns.state, sa.func.count()).where(
            columns.decided_at >= since).group_by(columns.state)
        found = self._database.read(lambda connection: connection.execute(counted).all())
        return dict.fromkeys(STATES, 0) | {state: count for state, count in found}

    def _advance(self, connection: sa.Connection, number: str, states: Sequence[str],
                 values: dict[str, Any], at: float) -> bool:
        columns = tables.MOVES.c
        changed = connection.execute(sa.update(tables.MOVES).where(
            columns.id == number, columns.state.in_(states)).values(**values)).rowcount
        if changed and values['state'] != FAILED:
            vm = connection.scalar(sa.select(columns.vm).where(columns.id == number))
            started = connection.scalar(sa.select(columns.started_at).where(columns.id == number))
            assert vm is not None and started is not None
            # Its end is not another move.
            records.note(connection, self._rule, vm, at if math.isnan(started) else started)
        return bool(changed)

    def _select(self, *conditions: sa.ColumnElement[bool], limit: int) -> list[MoveRecord]:
        columns = tables.MOVES.c
        statement = sa.select(tables.MOVES).where(*conditions).order_by(
            columns.decided_at.desc(), columns.id.desc()).limit(limit)
        return [_move(row) for row in self._database.read(
            lambda connection: connection.execute(statement).all())]


def _row(move: MoveRecord) -> dict[str, Any]:
    source = f'move {move.id[:tables.ID]}'
    for name, value, longest in (
            ('id', move.id, tables.ID), ('kind', move.kind, tables.NAME),
            ('vm', move.own.vm, tables.ID), ('source', move.source, tables.NAME),
            ('destination', move.destination, tables.NAME), ('audit', move.audit, tables.ID),
            ('action', move.action, tables.ID)):
        if value is not None:
            tables.checked(source, name, value, longest)
    if move.state not in STATES:
        raise errors.InvalidDocument(source, 'state', move.state,
                                     f'expected one of {", ".join(STATES)}')
    return {
        'id': move.id, 'kind': move.kind, 'audit': move.audit, 'action': move.action,
        'vm': move.own.vm, 'source': move.source, 'destination': move.destination,
        'slowdown_before': move.own.before, 'slowdown_after': move.own.after,
        'slowdown_observed': move.own.observed,
        'relieved': tables.encode([dataclasses.asdict(one) for one in move.relieved], source),
        'reason': tables.shortened(move.reason, tables.REASON), 'decided_at': move.decided_at,
        'state': move.state, 'started_at': move.started_at, 'ended_at': move.ended_at,
        'changes': tables.encode(list(move.changes), source) if move.changes else None}


def _move(row: Any) -> MoveRecord:
    relieved = tuple(
        MoveEffect(one['vm'], *(math.nan if one[name] is None else one[name]
                                for name in ('before', 'after', 'observed')))
        for one in tables.decode(row.relieved, f'move {row.id}: relieved'))
    return MoveRecord(
        row.id, row.kind,
        MoveEffect(row.vm, row.slowdown_before, row.slowdown_after, row.slowdown_observed),
        relieved,
        row.source, row.destination, row.reason, row.decided_at, row.audit, row.action, row.state,
        row.started_at, row.ended_at,
        tuple(tables.decode(row.changes, f'move {row.id}: changes') if row.changes else ()))
