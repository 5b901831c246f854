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

"""Which VMs were moved lately, and stay where they are for a while."""

from __future__ import annotations

import sqlalchemy as sa

from tracon_watcher.engine import cooldown
from tracon_watcher.engine.storage import database as databases
from tracon_watcher.engine.storage import tables


class Cooldowns:
    """The cooldowns in a database."""

    def __init__(self, database: databases.Database, rule: cooldown.Rule) -> None:
        self._database = database
        self._rule = rule

    def moved(self, vm: str, at: float) -> cooldown.Cooldown:
        """Take down that a VM was moved, regardless of who ordered it, and return its cooldown.

        The same move may be told several times.

        :param at: seconds since the epoch
        :raises errors.StorageFailed: one of its kinds
        """
        return self._database.write(lambda connection: note(connection, self._rule, vm, at))

    def get(self, vm: str) -> cooldown.Cooldown | None:
        """Return a VM's cooldown, be it over or not; None for one that was not moved lately."""
        return self._database.read(lambda connection: _get(connection, vm))

    def running(self, now: float) -> dict[str, cooldown.Cooldown]:
        """Return the cooldowns that are not over, by VM.

        :param now: seconds since the epoch
        """
        columns = tables.COOLDOWNS.c
        rows = self._database.read(lambda connection: connection.execute(sa.select(
            columns.vm, columns.moves, columns.moved_at, columns.until).where(
                columns.until > now)).all())
        return {row.vm: cooldown.Cooldown(*row) for row in rows}


def note(connection: sa.Connection, rule: cooldown.Rule, vm: str,
         at: float) -> cooldown.Cooldown:
    """Take a move down inside of a transaction, and return the cooldown."""
    before = _get(connection, vm, lock=True)
    after = rule.after(before, vm, at)
    values = {'moves': after.moves, 'moved_at': after.moved_at, 'until': after.until}
    if before is None:
        connection.execute(sa.insert(tables.COOLDOWNS).values(vm=vm, **values))
    elif after != before:
        connection.execute(sa.update(tables.COOLDOWNS).where(
            tables.COOLDOWNS.c.vm == vm).values(**values))
    return after


def _get(connection: sa.Connection, vm: str, lock: bool = False) -> cooldown.Cooldown | None:
    columns = tables.COOLDOWNS.c
    statement = sa.select(columns.vm, columns.moves, columns.moved_at, columns.until).where(
        columns.vm == vm)
    row = connection.execute(statement.with_for_update() if lock else statement).one_or_none()
    return None if row is None else cooldown.Cooldown(*row)
