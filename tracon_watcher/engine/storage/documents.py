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

"""Documents in versions, one of which is active: models."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Callable, Mapping, Sequence

import sqlalchemy as sa

from tracon_watcher.engine.storage import database as databases
from tracon_watcher.engine.storage import lease
from tracon_watcher.engine.storage import plain
from tracon_watcher.engine.storage import tables
from tracon_watcher import errors
from tracon_watcher.prediction import document as documents

#: What a document was made from.
LAB, CLOUD_MEASURE, REFIT = ORIGINS = ('lab', 'cloud measure', 'refit')


@dataclasses.dataclass(frozen=True)
class Document:
    """One version.

    :param host_type: for which it holds
    :param response: what it is about: slowdown or iops_ratio
    :param version: counts from 1 for each host type and response
    :param text: the JSON text, unchanged
    :param created_at: seconds since the epoch
    :param origin: one of :data:`ORIGINS`
    :param errors: how wrong it was found to be, by name; null where that is unknown
    :param active: whether it is in use
    """

    id: int
    host_type: str
    response: str
    version: int
    text: str
    created_at: float
    origin: str
    errors: Mapping[str, Any]
    active: bool

    @property
    def content(self) -> Any:
        """The parsed document.

        :raises tracon_watcher.errors.InvalidDocument: when somebody else has written into it
        """
        return plain.decode(self.text, f'{self.host_type}, {self.response} {self.version}')


class Documents:
    """The versions in one table.

    :param table: with columns as :mod:`tables` makes them
    :param check: given the parsed document and a name for errors, returns host type and
        response, or raises :class:`tracon_watcher.errors.InvalidDocument`
    """

    def __init__(self, database: databases.Database, table: sa.Table,
                 check: Callable[[Any, str], tuple[str, str]]) -> None:
        self._database = database
        self._table = table
        self._check = check

    def add(self, text: str, origin: str, created_at: float,
            found: Mapping[str, Any] | None = None) -> Document:
        """Store a new version; it is not active yet.

        :param found: how wrong it was found to be, where the document itself does not say
        :raises tracon_watcher.errors.InvalidDocument: when it is not one, or was edited
        :raises errors.StorageFailed: one of its kinds
        """
        source = f'a {self._table.name.removesuffix("s")} for table {self._table.name}'
        plain.checked_text(text, source)
        documents.parse(text, source)
        content = json.loads(text)
        stated, response = self._check(content, source)
        host_type = plain.checked(source, 'host_type', stated, tables.NAME)
        if origin not in ORIGINS:
            raise errors.InvalidDocument(source, 'origin', origin,
                                         f'expected one of {", ".join(ORIGINS)}')
        wrong = plain.encode(content.get('errors', {}) if found is None else found, source)
        columns = self._table.c

        def work(connection: sa.Connection) -> int:
            latest = connection.scalar(sa.select(sa.func.max(columns.version)).where(
                columns.host_type == host_type, columns.response == response))
            key = connection.execute(sa.insert(self._table).values({
                'host_type': host_type, 'response': response, 'version': (latest or 0) + 1,
                'document': text, 'created_at': created_at, 'origin': origin, 'errors': wrong,
            })).inserted_primary_key
            assert key is not None
            return int(key[0])

        return self.get(self._database.write(work))

    def get(self, number: int) -> Document:
        """Return one version by its id.

        :raises tracon_watcher.errors.InvalidOption: when there is none
        """
        found = self._select(self._table.c.id == number)
        if not found:
            raise self._unknown([number])
        return found[0]

    def active(self) -> list[Document]:
        """Return what is in use, ordered by host type and response.

        :raises tracon_watcher.errors.InvalidDocument: when somebody else has written into it
        """
        return self._select(self._table.c.active.is_(True))

    def versions(self, host_type: str, response: str, limit: int = 20) -> list[Document]:
        """Return the latest versions, newest first."""
        columns = self._table.c
        return self._select(columns.host_type == host_type, columns.response == response,
                            order=(columns.version.desc(),), limit=limit)

    def activate(self, term: lease.Term, numbers: Sequence[int]) -> None:
        """Put versions to use, and what was in use before out of it, all at once.

        :param numbers: ids; one for each host type and response
        :raises storage.errors.NoLongerLeader: when the term is over
        :raises tracon_watcher.errors.InvalidOption: when one of them does not exist
        """
        columns = self._table.c

        def work(connection: sa.Connection) -> list[int]:
            lease.fence(connection, term)
            rows = connection.execute(sa.select(
                columns.id, columns.host_type, columns.response,
            ).where(columns.id.in_(numbers))).all()
            missing = sorted(set(numbers) - {row[0] for row in rows})
            if missing:
                return missing
            for number, host_type, response in rows:
                connection.execute(sa.update(self._table).where(
                    columns.host_type == host_type, columns.response == response,
                    columns.active.is_(True)).values(active=None))
                connection.execute(sa.update(self._table).where(
                    columns.id == number).values(active=True))
            return []

        missing = self._database.write(work)
        if missing:
            raise self._unknown(missing)

    def _unknown(self, numbers: Sequence[int]) -> errors.InvalidOption:
        return errors.InvalidOption(f'id in table {self._table.name}',
                                    ', '.join(map(str, numbers)),
                                    'there is none; it may have been purged')

    def _select(self, *conditions: sa.ColumnElement[bool],
                order: Sequence[sa.ColumnElement[Any]] = (), limit: int | None = None
                ) -> list[Document]:
        columns = self._table.c
        statement = sa.select(
            columns.id, columns.host_type, columns.response, columns.version, columns.document,
            columns.created_at, columns.origin, columns.errors, columns.active,
        ).where(*conditions).order_by(
            *(order or (columns.host_type, columns.response))).limit(limit)
        rows = self._database.read(lambda connection: connection.execute(statement).all())
        return [Document(*row[:7], errors=plain.decode(row[7], f'errors of {row[0]}'),
                         active=bool(row[8])) for row in rows]
