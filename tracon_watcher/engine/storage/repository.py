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

"""Repository of all that is stored, and the purge of old records."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import sqlalchemy as sa

from tracon_watcher.engine import sequential_test
from tracon_watcher.engine.storage import database as databases
from tracon_watcher.engine.storage import decisions
from tracon_watcher.engine.storage import lease
from tracon_watcher.engine.storage import moves
from tracon_watcher.engine.storage import outcomes
from tracon_watcher.engine.storage import records
from tracon_watcher.engine.storage import schema
from tracon_watcher.engine.storage import tables
from tracon_watcher.placement import cooldown
from tracon_watcher.placement import plan

LOG = logging.getLogger(__name__)
_DAY = 86400.0


@dataclasses.dataclass(frozen=True)
class Retention:
    """For how many days records are kept.

    :param decisions: of the scheduler, what audits told, and episodes
    :param moves: with their outcomes, and for how long VMs were in breach
    """

    decisions: float = 14.0
    moves: float = 365.0


def purge(database: databases.Database, keep: Retention, now: float, trusted: bool = False,
          batch: int = 500, batches: int = 1000) -> dict[str, int]:
    """Delete what is older, and return how many rows of each table went.

    :param now: seconds since the epoch
    :param trusted: whether age counts from ``now``. Otherwise it counts from the newest record
        where that is older, so that a clock that was put forward deletes nothing by itself
    :param batch: rows in one transaction at most
    :param batches: transactions for one table at most; the rest goes next time
    :raises errors.StorageFailed: one of its kinds
    """
    # Cooldowns matter for as long as their memory does, which is hours.
    rules: list[tuple[sa.Table, sa.Column[Any], float]] = [
        (tables.DECISIONS, tables.DECISIONS.c.at, keep.decisions),
        (tables.AUDITS, tables.AUDITS.c.at, keep.decisions),
        (tables.EPISODES, tables.EPISODES.c.at, keep.decisions),
        (tables.MOVES, tables.MOVES.c.decided_at, keep.moves),
        (tables.BREACHES, tables.BREACHES.c.at, keep.moves),
        (tables.COOLDOWNS, tables.COOLDOWNS.c.until, 2.0)]
    gone = {}
    for table, moment, days in rules:
        gone[table.name] = _purge(database, table, moment, days * _DAY, now, trusted, batch,
                                  batches)
    if any(gone.values()):
        LOG.info('Purged: %s', ', '.join(f'{count} {name}' for name, count in gone.items()))
    return gone


def _purge(database: databases.Database, table: sa.Table, moment: sa.Column[Any], age: float,
           now: float, trusted: bool, batch: int, batches: int) -> int:
    newest = database.read(lambda connection: connection.scalar(sa.select(sa.func.max(moment))))
    if newest is None:
        return 0
    until = (now if trusted else min(now, newest)) - age
    key = next(iter(table.primary_key.columns))
    old = sa.select(key).where(moment < until).order_by(moment).limit(batch)

    def work(connection: sa.Connection) -> int:
        # Read first: MariaDB takes no LIMIT in a subquery of IN.
        ids = connection.scalars(old).all()
        if ids:
            connection.execute(sa.delete(table).where(key.in_(ids)))
        return len(ids)

    total = 0
    for _turn in range(batches):
        count = database.write(work)
        total += count
        if count < batch:
            break
    return total


class Storage:
    """One database, of which each part has a name: ``storage.decisions.find(vm=…)``.

    Threads may share it, and a process may fork with it.

    :param cooldown_rule: how long a VM stays after a move
    :param backoff: how long a kind of moves that does not help is suspended
    :param move_cost: gain, in log responses, from which on a move helped
    """

    def __init__(self, database: databases.Database,
                 cooldown_rule: cooldown.Rule = cooldown.Rule(),
                 backoff: sequential_test.SuspensionRule = sequential_test.SuspensionRule(),
                 move_cost: float = plan.Parameters().migration_cost) -> None:
        self.database = database
        self.lease = lease.Lease(database)
        self.decisions = decisions.Decisions(database)
        self.audits = records.Audits(database)
        self.episodes = records.Episodes(database)
        self.breaches = records.Breaches(database)
        self.cooldowns = records.Cooldowns(database, cooldown_rule)
        self.moves = moves.Moves(database, cooldown_rule)
        self.outcomes = outcomes.Outcomes(database, move_cost, backoff)
        self.kinds = moves.Kinds(database)
        self.learnt = records.LearnedParameters(database)

    @classmethod
    def open(cls, connection: str, **options: Any) -> Storage:
        """Return the storage at an address, after its schema was found to be right.

        :param connection: as SQLAlchemy writes it
        :param options: of oslo.db, by name
        :raises errors.SchemaOutOfDate: when ``tracon db upgrade`` has to be run
        :raises errors.StorageUnavailable: when the database does not answer
        :raises tracon_watcher.errors.InvalidOption: when the address is not one
        """
        database = databases.Database(connection, **options)
        schema.check(database)
        return cls(database)

    def purge(self, keep: Retention, now: float, trusted: bool = False) -> dict[str, int]:
        """Delete what is older than is to be kept, and return how many rows of each table went.

        :param now: seconds since the epoch
        :param trusted: whether an operator has looked at that clock (:func:`purge.purge`)
        """
        return purge(self.database, keep, now, trusted)

    def close(self) -> None:
        """Close all connections."""
        self.database.close()
