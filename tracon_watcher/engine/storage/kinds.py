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

"""Kinds of moves: whether they still help, and which are suspended because they do not."""

from __future__ import annotations

import dataclasses
import logging

import sqlalchemy as sa

from tracon_watcher.engine import outcomes as judgement
from tracon_watcher.engine.storage import database as databases
from tracon_watcher.engine.storage import lease
from tracon_watcher.engine.storage import tables

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

    def standings(self) -> dict[str, judgement.Standing]:
        """Return what is known, by kind."""
        rows = self._database.read(
            lambda connection: connection.execute(_select()).all())
        return {row.kind: judgement.Standing(*row[1:]) for row in rows}

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
         backoff: judgement.Backoff) -> Suspension | None:
    """Take one more judged move down inside of a fenced transaction.

    :return: the suspension that it leads to, None for none
    """
    row = connection.execute(_select().where(
        tables.KINDS.c.kind == kind).with_for_update()).one_or_none()
    before = judgement.Standing() if row is None else judgement.Standing(*row[1:])
    after = judgement.follow(before, verdict, now, backoff)
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
