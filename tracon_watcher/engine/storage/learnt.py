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

"""Values that the law of queueing has learnt of host types and of pools."""

from __future__ import annotations

import logging
from typing import Mapping

import sqlalchemy as sa

from tracon_watcher import document
from tracon_watcher.engine.storage import database as databases
from tracon_watcher.engine.storage import plain
from tracon_watcher.engine.storage import tables
from tracon_watcher import errors
from tracon_watcher.placement import queues
from tracon_watcher.placement import snapshot_lines

LOG = logging.getLogger(__name__)
_HOST_TYPE, _POOL = 'host_type', 'pool'


class LearntValues:
    """The values in a database, a row for each host type and each pool."""

    def __init__(self, database: databases.Database) -> None:
        self._database = database

    def save(self, learnt: Mapping[str, queues.Learnt], pools: Mapping[str, queues.Pool],
             now: float) -> None:
        """Replace all rows.

        :param learnt: by host type
        :param pools: by name
        :param now: seconds since the epoch
        :raises errors.StorageFailed: one of its kinds
        """
        rows = [{'kind': kind, 'name': name, 'updated_at': now,
                 'document': plain.encode(content, f'the {kind} {name!r}')}
                for kind, values in ((_HOST_TYPE, learnt), (_POOL, pools))
                for name, content in snapshot_lines.of_learnt(values).items()]

        def work(connection: sa.Connection) -> None:
            connection.execute(sa.delete(tables.LEARNT))
            if rows:
                connection.execute(sa.insert(tables.LEARNT), rows)

        self._database.write(work)

    def load(self) -> tuple[dict[str, queues.Learnt], dict[str, queues.Pool], float]:
        """Return values by host type and by pool, and when they were saved; 0.0 if never.

        A row that somebody has edited into something else is left out, and logged.

        :raises errors.StorageFailed: one of its kinds
        """
        columns = tables.LEARNT.c
        rows = self._database.read(lambda connection: connection.execute(sa.select(
            columns.kind, columns.name, columns.document, columns.updated_at)).all())
        learnt: dict[str, queues.Learnt] = {}
        pools: dict[str, queues.Pool] = {}
        for row in rows:
            source = f'the {row.kind} {row.name!r} in the table {tables.LEARNT.name}'
            try:
                content = {row.name: plain.decode(row.document, source)}
                if row.kind == _HOST_TYPE:
                    learnt |= snapshot_lines.learnt(document.Fields(source, {'learnt': content}))
                else:
                    pools |= snapshot_lines.pools(document.Fields(source, {'pools': content}))
            except errors.InvalidDocument as error:
                LOG.warning('What was learnt is left out: %s', error)
        return learnt, pools, max((row.updated_at for row in rows), default=0.0)
