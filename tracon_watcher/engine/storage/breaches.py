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


"""For how long VMs were in breach of a limit, by calendar month (UTC)."""

from __future__ import annotations

import datetime
import logging
from typing import Mapping, Sequence

import sqlalchemy as sa

from tracon_watcher.engine.storage import database as databases
from tracon_watcher.engine.storage import errors as storage_errors
from tracon_watcher.engine.storage import tables

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
            LOG.warning('That %d VMs were in breach is not counted: %s', len(vms), error)


def _key(vm: str, now: float) -> str:
    moment = datetime.datetime.fromtimestamp(now, datetime.timezone.utc)
    return f'{moment:%Y-%m} {vm}'
