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

"""Old records go, a bounded number in a transaction, so that no one waits long for any."""

from __future__ import annotations

import dataclasses
import logging
from typing import Any

import sqlalchemy as sa

from tracon_watcher.engine.storage import database as databases
from tracon_watcher.engine.storage import tables

LOG = logging.getLogger(__name__)
_DAY = 86400.0


@dataclasses.dataclass(frozen=True)
class Keep:
    """For how many days records are kept.

    :param decisions: of the scheduler, and what audits told
    :param moves: with their outcomes, and for how long VMs were in breach
    """

    decisions: float = 14.0
    moves: float = 365.0


def purge(database: databases.Database, keep: Keep, now: float, trusted: bool = False,
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
