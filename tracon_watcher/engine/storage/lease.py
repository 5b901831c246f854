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

"""Who leads, in one row: holder, epoch, beat, and the version of the latest snapshot.

All changes are compare-and-set, so that of several engines that try at the same time one succeeds.
The row holds no time: engines judge by their own monotonic clocks whether its beat goes on
(:mod:`tracon_watcher.engine.leadership`), and no wall clock can be wrong about it.

*Fencing.* An engine may be stopped for minutes between "I lead" and what it does as leader. Each
write that matters therefore begins, in its own transaction, with a change of this row that finds
it only while the writer's epoch lasts. It is a change, and not a locking read, because Galera
notices at commit when two nodes changed a row, and never that one of them had read it.

*Why not tooz*, whose locks of MariaDB, PostgreSQL and Redis would do the electing: it would be a
second thing to configure and to fail, it has nothing for SQLite across processes but locks of
files, and none of its drivers gives out a fencing token that a transaction could ask for. All
of it is in this file and its fifty lines of clockwork.
"""

from __future__ import annotations

import dataclasses

import sqlalchemy as sa

from tracon_watcher.engine.storage import database as databases
from tracon_watcher.engine.storage import errors
from tracon_watcher.engine.storage import tables

_ENGINE = 'engine'
# More epochs than there were since any backup, should the clock be of no use.
_LEAP = 1000000


@dataclasses.dataclass(frozen=True)
class Term:
    """The time for which an engine leads.

    :param holder: the engine, by a name that no other process has or will have
    :param epoch: the fencing token; it rises with each term of any engine
    """

    holder: str
    epoch: int


@dataclasses.dataclass(frozen=True)
class Sight:
    """The row as it was seen.

    :param holder: None: no engine leads
    :param version: of the snapshot that was published last
    """

    holder: str | None
    epoch: int
    beat: int
    version: int


class Lease:
    """The row of the engine's leader."""

    def __init__(self, database: databases.Database) -> None:
        self._database = database

    def look(self) -> Sight:
        """Return the row as it is.

        :raises errors.StorageFailed: one of its kinds
        """
        def work(connection: sa.Connection) -> Sight | None:
            columns = tables.LEASES.c
            row = connection.execute(
                sa.select(columns.holder, columns.epoch, columns.beat, columns.version).where(
                    columns.name == _ENGINE)).one_or_none()
            return None if row is None else Sight(*row)

        found = self._database.read(work)
        if found is None:
            raise errors.StorageFailed(
                self._database.where, 'table leases has lost its row',
                'stop all engines and run "tracon db restored"')
        return found

    def take(self, seen: Sight, holder: str) -> Term | None:
        """Begin a term, if nothing has happened to the row since it was seen.

        :return: None when something has
        :raises errors.StorageFailed: one of its kinds
        """
        columns = tables.LEASES.c
        statement = sa.update(tables.LEASES).where(
            columns.name == _ENGINE, columns.epoch == seen.epoch, columns.beat == seen.beat,
        ).values(holder=holder, epoch=columns.epoch + 1, beat=columns.beat + 1)
        taken = self._database.write(lambda connection: connection.execute(statement).rowcount)
        return Term(holder, seen.epoch + 1) if taken else None

    def renew(self, term: Term) -> None:
        """Let the beat go on.

        :raises errors.NoLongerLeader: when the term is over
        :raises errors.StorageFailed: one of its kinds
        """
        self._database.write(lambda connection: fence(connection, term))

    def release(self, term: Term) -> None:
        """End a term, so that another engine need not wait.

        :raises errors.NoLongerLeader: when it is over already
        :raises errors.StorageFailed: one of its kinds
        """
        self._database.write(lambda connection: fence(connection, term, holder=None))

    def next_version(self, term: Term) -> tuple[int, int]:
        """Return the (epoch, version) of the snapshot that is published next.

        It is greater than each that was ever returned, by any engine, before any crash. The
        version rises by one each time and goes on over epochs.

        :raises errors.NoLongerLeader: when the term is over
        :raises errors.StorageFailed: one of its kinds
        """
        def work(connection: sa.Connection) -> int:
            columns = tables.LEASES.c
            fence(connection, term, version=columns.version + 1)
            version = connection.scalar(
                sa.select(columns.version).where(columns.name == _ENGINE))
            assert version is not None
            return int(version)

        return term.epoch, self._database.write(work)

    def restored(self, now: float) -> int:
        """Let epochs go on beyond all that were given out since a backup, and return the next.

        Services that had heard of those would otherwise take what is published from now on for
        old. The row is made again if it was lost.

        :param now: seconds since the epoch, above any epoch that was counted up to
        :raises errors.StorageFailed: one of its kinds
        """
        columns = tables.LEASES.c

        def work(connection: sa.Connection) -> int:
            before = connection.scalar(sa.select(columns.epoch).where(
                columns.name == _ENGINE).with_for_update())
            epoch = max((before or 0) + _LEAP, int(now))
            if before is None:
                connection.execute(sa.insert(tables.LEASES).values(
                    name=_ENGINE, epoch=epoch, beat=0, version=0))
            else:
                connection.execute(sa.update(tables.LEASES).where(columns.name == _ENGINE).values(
                    holder=None, epoch=epoch, beat=columns.beat + 1))
            return epoch + 1

        return self._database.write(work)


def fence(connection: sa.Connection, term: Term, **values: object) -> None:
    """Go on in this transaction only if ``term`` lasts; until it ends no other term begins.

    :param values: what to change in the row beside its beat
    :raises errors.NoLongerLeader: when the term is over
    """
    columns = tables.LEASES.c
    changed = connection.execute(sa.update(tables.LEASES).where(
        columns.name == _ENGINE, columns.epoch == term.epoch, columns.holder == term.holder,
    ).values(beat=columns.beat + 1, **values))
    if not changed.rowcount:
        raise errors.NoLongerLeader(term.epoch)
