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

"""The tables as this release reads and writes them; ``migrations`` makes them."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from tracon_watcher.engine.storage import types

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
    sa.Column('document', types.long_text(), nullable=False),
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
    sa.Column('settled_at', types.Unknown),
    sa.Column('document', types.long_text(), nullable=False),
    sa.Index(None, 'at', 'id'), sa.Index(None, 'vm', 'at'), sa.Index(None, 'request', 'at'),
    **_MYSQL)

#: What each audit told when it ran last.
AUDITS = sa.Table(
    'audits', METADATA,
    sa.Column('id', sa.String(ID), primary_key=True),
    sa.Column('at', sa.Double, nullable=False),
    sa.Column('document', types.long_text(), nullable=False),
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
    sa.Column('slowdown_before', types.Unknown),
    sa.Column('slowdown_after', types.Unknown),
    sa.Column('slowdown_observed', types.Unknown),
    sa.Column('relieved', types.long_text(), nullable=False),
    sa.Column('reason', sa.String(REASON), nullable=False),
    sa.Column('decided_at', sa.Double, nullable=False),
    sa.Column('state', sa.String(WORD), nullable=False),
    sa.Column('started_at', types.Unknown),
    sa.Column('ended_at', types.Unknown),
    sa.Column('changes', types.long_text()),
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
    sa.Column('predicted', types.Unknown),
    sa.Column('measured', types.Unknown),
    sa.Column('error', types.Unknown),
    sa.Column('measured_at', types.Unknown),
    sa.Column('slowdowns', types.long_text(), nullable=False),
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

KINDS = sa.Table(
    'action_kinds', METADATA,
    sa.Column('kind', sa.String(NAME), primary_key=True),
    sa.Column('evidence', sa.Double, nullable=False),
    sa.Column('measured', sa.Integer, nullable=False),
    sa.Column('helped', sa.Integer, nullable=False),
    sa.Column('level', sa.Integer, nullable=False),
    sa.Column('suspended_at', types.Unknown),
    sa.Column('suspended_until', types.Unknown),
    **_MYSQL)

COOLDOWNS = sa.Table(
    'cooldowns', METADATA,
    sa.Column('vm', sa.String(ID), primary_key=True),
    sa.Column('moves', sa.Integer, nullable=False),
    sa.Column('moved_at', sa.Double, nullable=False),
    sa.Column('until', sa.Double, nullable=False),
    sa.Index(None, 'until'),
    **_MYSQL)
