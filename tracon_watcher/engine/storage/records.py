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

"""Small tables: results of audits, episodes, breaches by month, cooldowns, learnt values."""

from __future__ import annotations

import datetime
import logging
from typing import Any, Mapping, Sequence

import sqlalchemy as sa

from tracon_watcher import document
from tracon_watcher.engine.storage import database as databases
from tracon_watcher.engine.storage import errors as storage_errors
from tracon_watcher.engine.storage import tables
from tracon_watcher import errors
from tracon_watcher.placement import cooldown
from tracon_watcher.placement import queues
from tracon_watcher.placement import snapshot_lines


class Audits:
    """The audits in a database."""

    def __init__(self, database: databases.Database) -> None:
        self._database = database

    def put(self, content: Mapping[str, Any]) -> None:
        """Store what an audit told, in place of what it told before.

        :param content: as :func:`tracon_watcher.placement.plan.read_audit` returns it
        :raises tracon_watcher.errors.InvalidDocument: when it cannot be stored
        :raises errors.StorageFailed: one of its kinds
        """
        row = {'id': tables.checked('an audit', 'audit', content['audit'], tables.ID),
               'at': content['at'], 'document': tables.encode(content, 'an audit')}

        def work(connection: sa.Connection) -> None:
            connection.execute(sa.delete(tables.AUDITS).where(tables.AUDITS.c.id == row['id']))
            connection.execute(sa.insert(tables.AUDITS), [row])

        self._database.write(work)

    def all(self) -> list[Mapping[str, Any]]:
        """Return what each audit told last."""
        found = self._database.read(lambda connection: list(connection.scalars(
            sa.select(tables.AUDITS.c.document))))
        return [tables.decode(one, 'an audit') for one in found]

    def get(self, audit: str | None = None) -> Mapping[str, Any] | None:
        """Return what an audit told last, None for nothing.

        :param audit: Watcher's uuid; None for the latest of all
        """
        columns = tables.AUDITS.c
        wanted = sa.select(columns.document).order_by(columns.at.desc(), columns.id).limit(1)
        if audit is not None:
            wanted = wanted.where(columns.id == audit)
        found = self._database.read(lambda connection: connection.scalar(wanted))
        return None if found is None else tables.decode(found, 'an audit')


#: Episodes of one host that are kept, and of one VM that are shown.
_KEPT, _SHOWN = 1000, 100


class Episodes:
    """The episodes in a database."""

    def __init__(self, database: databases.Database) -> None:
        self._database = database

    def put(self, number: str, content: Mapping[str, Any]) -> None:
        """Store an episode, in place of what was known of it.

        :param number: its id
        :param content: as :class:`tracon_watcher.engine.episode_tracker.EpisodeTracker` has it
        :raises errors.StorageFailed: one of its kinds
        """
        table, columns, host = tables.EPISODES, tables.EPISODES.c, content['host']
        row = {'id': number, 'host': host, 'vm': content['vm'], 'at': content['began_at'],
               'document': tables.encode(content, 'an episode')}
        oldest = sa.select(columns.at).where(columns.host == host).order_by(
            columns.at.desc()).offset(_KEPT).limit(1)

        def work(connection: sa.Connection) -> None:
            connection.execute(sa.delete(table).where(columns.id == number))
            connection.execute(sa.insert(table), [row])
            # A host that tells of ever more must not fill the database.
            until = connection.scalar(oldest)
            if until is not None:
                connection.execute(sa.delete(table).where(
                    columns.host == host, columns.at <= until))

        self._database.write(work)

    def get(self, number: str) -> Mapping[str, Any] | None:
        """Return an episode by its id, None for none."""
        found = self._select(tables.EPISODES.c.id == number)
        return found[0] if found else None

    def of_vm(self, vm: str, host: str | None) -> list[Mapping[str, Any]]:
        """Return the latest episodes for a VM: those that name it, and those of its host.

        :param host: where it is now, None where that is not known
        """
        columns = tables.EPISODES.c
        return [one for one in self._select(sa.or_(columns.vm == vm, sa.and_(
            columns.vm.is_(None), columns.host == host))) if vm in one['slowdowns_before']]

    def _select(self, condition: sa.ColumnElement[bool]) -> list[Mapping[str, Any]]:
        wanted = sa.select(tables.EPISODES.c.document).where(condition).order_by(
            tables.EPISODES.c.at.desc()).limit(_SHOWN)
        found = self._database.read(lambda connection: list(connection.scalars(wanted)))
        return [tables.decode(one, 'an episode') for one in found]


LOG = logging.getLogger(__name__)
_CHUNK = 500


class Breaches:
    """The sums in a database."""

    def __init__(self, database: databases.Database) -> None:
        self._database = database

    def add(self, vms: Sequence[str], seconds: float, now: float) -> None:
        """Count time for VMs.

        :param vms: uuids of those in breach
        :param seconds: for each of them
        :param now: seconds since the epoch; its month is the one that is counted for
        :raises storage_errors.StorageFailed: one of its kinds
        """
        for start in range(0, len(vms), _CHUNK):
            some = {_key(vm, now): vm for vm in vms[start:start + _CHUNK]}

            def work(connection: sa.Connection, some: Mapping[str, str] = some) -> None:
                columns = tables.BREACHES.c
                known = set(connection.scalars(
                    sa.select(columns.id).where(columns.id.in_(some))))
                if known:
                    connection.execute(
                        sa.update(tables.BREACHES).where(columns.id.in_(known)).values(
                            seconds=columns.seconds + seconds, at=now))
                fresh = [{'id': key, 'vm': vm, 'seconds': seconds, 'at': now}
                         for key, vm in some.items() if key not in known]
                if fresh:
                    connection.execute(sa.insert(tables.BREACHES), fresh)

            self._database.write(work)

    def seconds(self, vms: Sequence[str], now: float) -> dict[str, float]:
        """Return for how long VMs were in breach this month; those that were not are left out.

        :raises storage_errors.StorageFailed: one of its kinds
        """
        columns = tables.BREACHES.c
        wanted = sa.select(columns.vm, columns.seconds).where(
            columns.id.in_([_key(vm, now) for vm in vms]))
        return {row.vm: row.seconds for row in self._database.read(
            lambda connection: connection.execute(wanted).all())}


class Clock:
    """Counts, from one view to the next.

    :param longest: seconds that count between two views at most: of a longer gap it is not known
        what VMs suffered
    """

    def __init__(self, breaches: Breaches, longest: float) -> None:
        self._breaches = breaches
        self._longest = longest
        self._last: tuple[int, float] | None = None

    def take(self, epoch: int, vms: Sequence[str], now: float) -> None:
        """Count the time since the view before.

        :param epoch: of the term; another engine has counted before it
        :param vms: uuids of those in breach in this view
        """
        last, self._last = self._last, (epoch, now)
        if last is None or last[0] != epoch or now <= last[1] or not vms:
            return
        try:
            self._breaches.add(vms, min(now - last[1], self._longest), now)
        except storage_errors.StorageFailed as error:
            LOG.warning('The time for which %d VMs were in breach was not recorded: %s',
                        len(vms), error)


def _key(vm: str, now: float) -> str:
    moment = datetime.datetime.fromtimestamp(now, datetime.timezone.utc)
    return f'{moment:%Y-%m} {vm}'


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


_HOST_TYPE, _POOL = 'host_type', 'pool'


class LearnedParameters:
    """The values in a database, a row for each host type and each pool."""

    def __init__(self, database: databases.Database) -> None:
        self._database = database

    def save(self, learnt: Mapping[str, queues.LearnedParameters],
             pools: Mapping[str, queues.Pool],
             now: float) -> None:
        """Replace all rows.

        :param learnt: by host type
        :param pools: by name
        :param now: seconds since the epoch
        :raises errors.StorageFailed: one of its kinds
        """
        rows = [{'kind': kind, 'name': name, 'updated_at': now,
                 'document': tables.encode(content, f'the {kind} {name!r}')}
                for kind, values in ((_HOST_TYPE, learnt), (_POOL, pools))
                for name, content in snapshot_lines.of_learnt(values).items()]

        def work(connection: sa.Connection) -> None:
            connection.execute(sa.delete(tables.LEARNT))
            if rows:
                connection.execute(sa.insert(tables.LEARNT), rows)

        self._database.write(work)

    def load(self) -> tuple[dict[str, queues.LearnedParameters], dict[str, queues.Pool], float]:
        """Return values by host type and by pool, and when they were saved; 0.0 if never.

        A row that somebody has edited into something else is left out, and logged.

        :raises errors.StorageFailed: one of its kinds
        """
        columns = tables.LEARNT.c
        rows = self._database.read(lambda connection: connection.execute(sa.select(
            columns.kind, columns.name, columns.document, columns.updated_at)).all())
        learnt: dict[str, queues.LearnedParameters] = {}
        pools: dict[str, queues.Pool] = {}
        for row in rows:
            source = f'the {row.kind} {row.name!r} in the table {tables.LEARNT.name}'
            try:
                content = {row.name: tables.decode(row.document, source)}
                if row.kind == _HOST_TYPE:
                    learnt |= snapshot_lines.learnt(document.Fields(source, {'learnt': content}))
                else:
                    pools |= snapshot_lines.pools(document.Fields(source, {'pools': content}))
            except errors.InvalidDocument as error:
                LOG.warning('A learnt parameter is ignored: %s', error)
        return learnt, pools, max((row.updated_at for row in rows), default=0.0)
