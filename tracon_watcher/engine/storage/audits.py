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

"""What audits have left undone, and why; the latest run of each."""

from __future__ import annotations

from typing import Any, Mapping

import sqlalchemy as sa

from tracon_watcher.engine.storage import database as databases
from tracon_watcher.engine.storage import plain
from tracon_watcher.engine.storage import tables


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
        row = {'id': plain.checked('an audit', 'audit', content['audit'], tables.ID),
               'at': content['at'], 'document': plain.encode(content, 'an audit')}

        def work(connection: sa.Connection) -> None:
            connection.execute(sa.delete(tables.AUDITS).where(tables.AUDITS.c.id == row['id']))
            connection.execute(sa.insert(tables.AUDITS), [row])

        self._database.write(work)

    def get(self, audit: str | None = None) -> Mapping[str, Any] | None:
        """Return what an audit told last, None for nothing.

        :param audit: Watcher's uuid; None for the latest of all
        """
        columns = tables.AUDITS.c
        wanted = sa.select(columns.document).order_by(columns.at.desc(), columns.id).limit(1)
        if audit is not None:
            wanted = wanted.where(columns.id == audit)
        found = self._database.read(lambda connection: connection.scalar(wanted))
        return None if found is None else plain.decode(found, 'an audit')
