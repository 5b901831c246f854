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

"""Tables, column types, and the serialization of documents into columns."""

from __future__ import annotations

import json
import math
from typing import Any, Mapping

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from tracon_watcher import document
from tracon_watcher import errors

#: Bytes of a document at most: a hundred times the largest there is, and far below what MariaDB
#: takes in one statement as it is delivered.
LONGEST = 4 * 2**20


def encode(content: Any, source: str) -> str:
    """Return a JSON text of ASCII alone; numbers that are not finite become null.

    :raises tracon_watcher.errors.InvalidDocument: when it is none, or longer than :data:`LONGEST`
    """
    try:
        text = json.dumps(_finite(content), allow_nan=False, separators=(',', ':'))
    except (TypeError, ValueError, RecursionError) as error:
        raise errors.InvalidDocument(source, 'the document', str(error),
                                     'expected what JSON can express') from None
    if len(text) > LONGEST:
        raise errors.InvalidDocument(source, 'the length', len(text),
                                     f'expected at most {LONGEST} bytes')
    return text


def decode(text: str, source: str) -> Any:
    """Return what a column holds.

    :raises tracon_watcher.errors.InvalidDocument: when somebody else has written into it
    """
    try:
        return json.loads(text)
    except ValueError as error:
        raise errors.InvalidDocument(source, 'the text', text[-40:], f'no valid JSON ({error}); '
                                     'somebody has edited the database') from None


def word(fields: document.Fields, name: str, longest: int) -> str:
    """Return a short text of a document.

    :raises tracon_watcher.errors.InvalidDocument: when it is empty, too long or not printable
    """
    value = fields.string(name)
    if not fits(value, longest):
        fields.refuse(name, value, f'expected 1 to {longest} printable characters')
    return value


def fits(value: str, longest: int) -> bool:
    """Say whether a short text can be stored: PostgreSQL takes no NUL, nor half a character."""
    return 1 <= len(value) <= longest and value.isprintable()


def checked(source: str, name: str, value: str, longest: int) -> str:
    """Return a short text that is not part of a document.

    :raises tracon_watcher.errors.InvalidDocument: when it is empty, too long or not printable
    """
    if not isinstance(value, str) or not fits(value, longest):
        raise errors.InvalidDocument(source, name, value,
                                     f'expected 1 to {longest} printable characters')
    return value


def shortened(value: str, longest: int) -> str:
    """Return a text for people, made to fit."""
    text = ''.join(one if one.isprintable() else ' ' for one in value) or '-'
    return text if len(text) <= longest else text[:longest - 1] + '…'


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return value


class Unknown(sa.types.TypeDecorator[float]):
    """A number that may be unknown: NaN here, NULL in the database.

    Infinities, which MariaDB cannot hold, are no measurements either, and count as unknown.
    """

    impl = sa.Double
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: Any) -> float | None:
        return float(value) if value is not None and math.isfinite(value) else None

    def process_result_value(self, value: float | None, dialect: Any) -> float:
        return math.nan if value is None else float(value)


def long_text() -> sa.types.TypeEngine[str]:
    """Return the type of documents: MariaDB's TEXT ends at 64 KiB."""
    return sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql')


NAME = 255
#: Ids of VMs, requests, decisions and moves.
ID = 64
WORD = 32
REASON = 1000

METADATA = sa.MetaData(naming_convention={
    'ix': 'ix_%(table_name)s_%(column_0_N_name)s', 'uq': 'uq_%(table_name)s_%(column_0_N_name)s',
    'fk': 'fk_%(table_name)s_%(column_0_N_name)s', 'pk': 'pk_%(table_name)s'})
# Names are compared byte by byte in each of the three databases.
_MYSQL: dict[str, Any] = {
    'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4', 'mysql_collate': 'utf8mb4_bin'}

#: A row for each office that one engine at a time may hold; there is one office.
LEASES = sa.Table(
    'leases', METADATA,
    sa.Column('name', sa.String(WORD), primary_key=True),
    sa.Column('holder', sa.String(NAME)),
    sa.Column('epoch', sa.BigInteger, nullable=False),
    sa.Column('beat', sa.BigInteger, nullable=False),
    sa.Column('version', sa.BigInteger, nullable=False),
    **_MYSQL)

# Nothing reads or writes these; revision 0001 made them.
LEARNT = sa.Table(
    'learnt', METADATA,
    sa.Column('kind', sa.String(WORD), primary_key=True),
    sa.Column('name', sa.String(NAME), primary_key=True),
    sa.Column('document', long_text(), nullable=False),
    sa.Column('updated_at', sa.Double, nullable=False),
    **_MYSQL)

DECISIONS = sa.Table(
    'decisions', METADATA,
    sa.Column('id', sa.String(ID), primary_key=True),
    sa.Column('request', sa.String(ID)),
    sa.Column('vm', sa.String(ID), nullable=False),
    sa.Column('at', sa.Double, nullable=False),
    sa.Column('operation', sa.String(WORD), nullable=False),
    sa.Column('outcome', sa.String(ID), nullable=False),
    sa.Column('chosen', sa.String(NAME)),
    sa.Column('settled_at', Unknown),
    sa.Column('document', long_text(), nullable=False),
    sa.Index(None, 'at', 'id'), sa.Index(None, 'vm', 'at'), sa.Index(None, 'request', 'at'),
    **_MYSQL)

#: What each audit told when it ran last.
AUDITS = sa.Table(
    'audits', METADATA,
    sa.Column('id', sa.String(ID), primary_key=True),
    sa.Column('at', sa.Double, nullable=False),
    sa.Column('document', long_text(), nullable=False),
    sa.Index(None, 'at'),
    **_MYSQL)

MOVES = sa.Table(
    'moves', METADATA,
    sa.Column('id', sa.String(ID), primary_key=True),
    sa.Column('kind', sa.String(NAME), nullable=False),
    sa.Column('audit', sa.String(ID)),
    sa.Column('action', sa.String(ID)),
    sa.Column('vm', sa.String(ID), nullable=False),
    sa.Column('source', sa.String(NAME), nullable=False),
    sa.Column('destination', sa.String(NAME), nullable=False),
    sa.Column('slowdown_before', Unknown),
    sa.Column('slowdown_after', Unknown),
    sa.Column('slowdown_observed', Unknown),
    sa.Column('relieved', long_text(), nullable=False),
    sa.Column('reason', sa.String(REASON), nullable=False),
    sa.Column('decided_at', sa.Double, nullable=False),
    sa.Column('state', sa.String(WORD), nullable=False),
    sa.Column('started_at', Unknown),
    sa.Column('ended_at', Unknown),
    sa.Column('changes', long_text()),
    sa.Index(None, 'decided_at', 'id'), sa.Index(None, 'vm', 'decided_at'),
    sa.Index(None, 'action'),
    **_MYSQL)

OUTCOMES = sa.Table(
    'outcomes', METADATA,
    sa.Column('id', sa.Integer, primary_key=True, autoincrement=True),
    sa.Column('move', sa.String(ID), sa.ForeignKey('moves.id', ondelete='CASCADE'),
              nullable=False),
    sa.Column('delay', sa.Integer, nullable=False),
    sa.Column('due_at', sa.Double, nullable=False),
    sa.Column('predicted', Unknown),
    sa.Column('measured', Unknown),
    sa.Column('error', Unknown),
    sa.Column('measured_at', Unknown),
    sa.Column('slowdowns', long_text(), nullable=False),
    sa.Column('verdict', sa.String(WORD)),
    sa.UniqueConstraint('move', 'delay'), sa.Index(None, 'verdict', 'due_at'),
    **_MYSQL)

#: For how long VMs were in breach: a row for each VM and month (``2026-11 UUID``).
BREACHES = sa.Table(
    'breaches', METADATA,
    sa.Column('id', sa.String(ID), primary_key=True),
    sa.Column('vm', sa.String(ID), nullable=False),
    sa.Column('seconds', sa.Double, nullable=False),
    sa.Column('at', sa.Double, nullable=False),
    sa.Index(None, 'at'),
    **_MYSQL)

#: Episodes in which tracon-background throttled; without a VM, for the sake of all of the host.
EPISODES = sa.Table(
    'episodes', METADATA,
    sa.Column('id', sa.String(ID), primary_key=True),
    sa.Column('host', sa.String(NAME), nullable=False),
    sa.Column('vm', sa.String(ID)),
    sa.Column('at', sa.Double, nullable=False),
    sa.Column('document', long_text(), nullable=False),
    sa.Index(None, 'at'), sa.Index(None, 'host', 'at'), sa.Index(None, 'vm', 'at'),
    **_MYSQL)

KINDS = sa.Table(
    'action_kinds', METADATA,
    sa.Column('kind', sa.String(NAME), primary_key=True),
    sa.Column('evidence', sa.Double, nullable=False),
    sa.Column('measured', sa.Integer, nullable=False),
    sa.Column('helped', sa.Integer, nullable=False),
    sa.Column('level', sa.Integer, nullable=False),
    sa.Column('suspended_at', Unknown),
    sa.Column('suspended_until', Unknown),
    **_MYSQL)

COOLDOWNS = sa.Table(
    'cooldowns', METADATA,
    sa.Column('vm', sa.String(ID), primary_key=True),
    sa.Column('moves', sa.Integer, nullable=False),
    sa.Column('moved_at', sa.Double, nullable=False),
    sa.Column('until', sa.Double, nullable=False),
    sa.Index(None, 'until'),
    **_MYSQL)
