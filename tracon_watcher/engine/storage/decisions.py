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

"""Decisions: what was asked, what each host was predicted, what was chosen."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Callable, Iterable, Mapping, Sequence

import sqlalchemy as sa

from tracon_watcher import document as documents
from tracon_watcher.engine.storage import database as databases
from tracon_watcher.engine.storage import tables
from tracon_watcher import errors

SCHEMA = 'tracon-decision/1'
SETTLED = 'tracon-decision-settled/1'
#: On a page at most, and in one transaction.
PAGE = 1000
_SOURCE = 'a decision'
_MOMENTS = (0.0, 1e11)
_Settling = Callable[[sa.Connection], 'str | None']


@dataclasses.dataclass(frozen=True)
class Decision:
    """One decision of the scheduler.

    :param request: id of the request, None where there was none
    :param at: when it was taken, seconds since the epoch, by the scheduler's clock
    :param chosen: host; None while it is not known, or when none was
    :param settled_at: when it became known where the VM went; NaN: not yet
    :param document: all of it
    """

    id: str
    request: str | None
    vm: str
    at: float
    operation: str
    outcome: str
    chosen: str | None
    document: Mapping[str, Any]
    settled_at: float = math.nan

    @classmethod
    def of(cls, content: Any) -> Decision:
        """Read a decision document; only what is searched for is looked at here.

        :raises tracon_watcher.errors.InvalidDocument: naming the offending field
        """
        fields = documents.Fields(_SOURCE, content)
        fields.string('schema', (SCHEMA,))
        optional = {name: tables.word(fields, name, longest) if fields.has(name) else None
                    for name, longest in (('request', tables.ID), ('chosen', tables.NAME))}
        return cls(
            tables.word(fields, 'id', tables.ID), optional['request'],
            tables.word(fields, 'vm', tables.ID), fields.number('at', *_MOMENTS),
            tables.word(fields, 'operation', tables.WORD),
            tables.word(fields, 'outcome', tables.ID),
            optional['chosen'], content)


class Decisions:
    """The decisions in a database."""

    def __init__(self, database: databases.Database) -> None:
        self._database = database

    def add(self, decisions: Sequence[Decision]) -> int:
        """Store decisions, and return how many were new; a message may come twice.

        :raises tracon_watcher.errors.InvalidDocument: when a document is too long; then none of
            them is stored
        :raises errors.StorageFailed: one of its kinds
        """
        # The first of several of one id counts.
        rows = {one.id: {
            'id': one.id, 'request': one.request, 'vm': one.vm, 'at': one.at,
            'operation': one.operation, 'outcome': one.outcome, 'chosen': one.chosen,
            'settled_at': one.settled_at, 'document': tables.encode(one.document, _SOURCE)}
            for one in reversed(decisions)}
        ids = sorted(rows)
        return sum(self._database.write(
            lambda connection, some=ids[start:start + PAGE]: _insert(  # type: ignore[misc]
                connection, [rows[one] for one in some]))
            for start in range(0, len(ids), PAGE))

    def settle(self, content: Any) -> str | None:
        """Take down where a VM went.

        A document that names no decision means the latest one of its VM before it.

        :param content: a document of schema :data:`SETTLED`
        :return: id of the decision; None when there is none, or it was settled later than this
        :raises tracon_watcher.errors.InvalidDocument: naming the offending field
        """
        settled: str | None = self._database.write(_settling(content))
        return settled

    def settle_all(self, contents: Iterable[Any],
                   report: Callable[[errors.InvalidDocument], None]) -> int:
        """Take down where several VMs went, in one transaction for :data:`PAGE` of them.

        :param contents: as for :meth:`settle`
        :param report: called with the error of each that cannot be read, which is left out
        :return: how many decisions were settled; those that were before do not count again
        """
        works = []
        for content in contents:
            try:
                works.append(_settling(content))
            except errors.InvalidDocument as error:
                report(error)

        def work(connection: sa.Connection, some: Sequence[_Settling]) -> int:
            return sum(one(connection) is not None for one in some)

        return sum(self._database.write(
            lambda connection, some=works[start:start + PAGE]: work(  # type: ignore[misc]
                connection, some))
            for start in range(0, len(works), PAGE))

    def get(self, number: str) -> Decision | None:
        """Return a decision by its id, None for none."""
        found = self._select(tables.DECISIONS.c.id == number, limit=1)
        return found[0] if found else None

    def find(self, *, request: str | None = None, vm: str | None = None,
             since: float | None = None, marker: str | None = None, limit: int = 100,
             naming: str = '') -> list[Decision]:
        """Return a page of decisions, newest first.

        :param request: of this request alone
        :param vm: about this VM alone
        :param since: no earlier than this, seconds since the epoch
        :param marker: id of the last decision on the page before
        :param limit: 1 to :data:`PAGE`
        :param naming: of these, those alone whose document has this text, such as a uuid
        :raises tracon_watcher.errors.InvalidOption: when the limit is another, or there is no such
            decision
        """
        if not 1 <= limit <= PAGE:
            raise errors.InvalidOption('limit', limit, f'expected 1 to {PAGE}')
        columns = tables.DECISIONS.c
        conditions: list[sa.ColumnElement[bool]] = []
        if request is not None:
            conditions.append(columns.request == request)
        if vm is not None:
            conditions.append(columns.vm == vm)
        if since is not None:
            conditions.append(columns.at >= since)
        return self._select(*conditions, marker=marker, limit=limit, naming=naming)

    def _select(self, *conditions: sa.ColumnElement[bool], limit: int,
                marker: str | None = None, naming: str = '') -> list[Decision]:
        columns = tables.DECISIONS.c

        def work(connection: sa.Connection) -> list[Any]:
            wanted = list(conditions)
            if marker is not None:
                # A moment is compared as the database has it: no digit may get lost on the way.
                at = sa.select(columns.at).where(columns.id == marker).scalar_subquery()
                if connection.scalar(sa.select(at)) is None:
                    raise errors.InvalidOption('marker', marker, 'there is no such decision; it '
                                               'may have been purged: begin with the first page')
                wanted.append(sa.or_(columns.at < at,
                                     sa.and_(columns.at == at, columns.id < marker)))
            return list(connection.execute(sa.select(tables.DECISIONS).where(*wanted).order_by(
                columns.at.desc(), columns.id.desc()).limit(limit)))

        return [Decision(
            row.id, row.request, row.vm, row.at, row.operation, row.outcome, row.chosen,
            tables.decode(row.document, f'decision {row.id}'), row.settled_at)
            # To decode a document takes much longer than to search it.
            for row in self._database.read(work) if naming in row.document]


def _insert(connection: sa.Connection, rows: list[dict[str, Any]]) -> int:
    known = set(connection.scalars(sa.select(tables.DECISIONS.c.id).where(
        tables.DECISIONS.c.id.in_([one['id'] for one in rows]))))
    new = [one for one in rows if one['id'] not in known]
    if new:
        connection.execute(sa.insert(tables.DECISIONS), new)
    return len(new)


def _settling(content: Any) -> _Settling:
    """Return what takes down where a VM went.

    :raises tracon_watcher.errors.InvalidDocument: naming the offending field
    """
    fields = documents.Fields('a settled decision', content)
    fields.string('schema', (SETTLED,))
    at = fields.number('at', *_MOMENTS)
    chosen = tables.word(fields, 'chosen', tables.NAME) if fields.has('chosen') else None
    columns = tables.DECISIONS.c
    if fields.has('id'):
        meant = columns.id == tables.word(fields, 'id', tables.ID)
    else:
        meant = sa.and_(columns.vm == tables.word(fields, 'vm', tables.ID), columns.at <= at)

    def work(connection: sa.Connection) -> str | None:
        found = connection.scalar(sa.select(columns.id).where(meant).order_by(
            columns.at.desc(), columns.id.desc()).limit(1))
        changed = connection.execute(sa.update(tables.DECISIONS).where(
            columns.id == found,
            sa.or_(columns.settled_at.is_(None), columns.settled_at <= at),
        ).values(chosen=chosen, settled_at=at)).rowcount if found else 0
        return found if changed else None

    return work
