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

"""The first schema."""

from typing import Any

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0001'
down_revision = None

_MYSQL = {'mysql_engine': 'InnoDB', 'mysql_charset': 'utf8mb4', 'mysql_collate': 'utf8mb4_bin'}


def upgrade() -> None:
    """Make all tables; those that an interrupted upgrade left behind are kept."""
    _make('leases',
          sa.Column('name', sa.String(32)),
          sa.Column('holder', sa.String(255)),
          sa.Column('epoch', sa.BigInteger, nullable=False),
          sa.Column('beat', sa.BigInteger, nullable=False),
          sa.Column('version', sa.BigInteger, nullable=False),
          sa.PrimaryKeyConstraint('name', name='pk_leases'))
    op.execute("INSERT INTO leases (name, epoch, beat, version) "
               "SELECT 'engine', 0, 0, 0 FROM (SELECT 1 AS one) AS blank "
               "WHERE NOT EXISTS (SELECT 1 FROM leases WHERE name = 'engine')")
    _documents('models')
    _documents('calibrations')
    _make('decisions',
          sa.Column('id', sa.String(64)),
          sa.Column('request', sa.String(64)),
          sa.Column('vm', sa.String(64), nullable=False),
          sa.Column('at', sa.Double, nullable=False),
          sa.Column('operation', sa.String(32), nullable=False),
          sa.Column('outcome', sa.String(64), nullable=False),
          sa.Column('chosen', sa.String(255)),
          sa.Column('settled_at', sa.Double),
          sa.Column('document', _text(), nullable=False),
          sa.PrimaryKeyConstraint('id', name='pk_decisions'))
    _index('decisions', 'at', 'id')
    _index('decisions', 'vm', 'at')
    _index('decisions', 'request', 'at')
    _make('moves',
          sa.Column('id', sa.String(64)),
          sa.Column('kind', sa.String(255), nullable=False),
          sa.Column('audit', sa.String(64)),
          sa.Column('action', sa.String(64)),
          sa.Column('vm', sa.String(64), nullable=False),
          sa.Column('source', sa.String(255), nullable=False),
          sa.Column('destination', sa.String(255), nullable=False),
          sa.Column('slowdown_before', sa.Double),
          sa.Column('slowdown_after', sa.Double),
          sa.Column('slowdown_observed', sa.Double),
          sa.Column('relieved', _text(), nullable=False),
          sa.Column('reason', sa.String(1000), nullable=False),
          sa.Column('decided_at', sa.Double, nullable=False),
          sa.Column('state', sa.String(32), nullable=False),
          sa.Column('started_at', sa.Double),
          sa.Column('ended_at', sa.Double),
          sa.PrimaryKeyConstraint('id', name='pk_moves'))
    _index('moves', 'decided_at', 'id')
    _index('moves', 'vm', 'decided_at')
    _index('moves', 'action')
    _make('outcomes',
          sa.Column('id', sa.Integer, autoincrement=True),
          sa.Column('move', sa.String(64), nullable=False),
          sa.Column('delay', sa.Integer, nullable=False),
          sa.Column('due_at', sa.Double, nullable=False),
          sa.Column('predicted', sa.Double),
          sa.Column('measured', sa.Double),
          sa.Column('error', sa.Double),
          sa.Column('measured_at', sa.Double),
          sa.Column('slowdowns', _text(), nullable=False),
          sa.Column('verdict', sa.String(32)),
          sa.PrimaryKeyConstraint('id', name='pk_outcomes'),
          sa.ForeignKeyConstraint(['move'], ['moves.id'], name='fk_outcomes_move',
                                  ondelete='CASCADE'),
          sa.UniqueConstraint('move', 'delay', name='uq_outcomes_move_delay'))
    _index('outcomes', 'verdict', 'due_at')
    _make('action_kinds',
          sa.Column('kind', sa.String(255)),
          sa.Column('evidence', sa.Double, nullable=False),
          sa.Column('measured', sa.Integer, nullable=False),
          sa.Column('helped', sa.Integer, nullable=False),
          sa.Column('level', sa.Integer, nullable=False),
          sa.Column('suspended_at', sa.Double),
          sa.Column('suspended_until', sa.Double),
          sa.PrimaryKeyConstraint('kind', name='pk_action_kinds'))
    _make('cooldowns',
          sa.Column('vm', sa.String(64)),
          sa.Column('moves', sa.Integer, nullable=False),
          sa.Column('moved_at', sa.Double, nullable=False),
          sa.Column('until', sa.Double, nullable=False),
          sa.PrimaryKeyConstraint('vm', name='pk_cooldowns'))
    _index('cooldowns', 'until')


def _documents(name: str) -> None:
    _make(name,
          sa.Column('id', sa.Integer, autoincrement=True),
          sa.Column('host_type', sa.String(255), nullable=False),
          sa.Column('response', sa.String(64), nullable=False),
          sa.Column('version', sa.Integer, nullable=False),
          sa.Column('document', _text(), nullable=False),
          sa.Column('created_at', sa.Double, nullable=False),
          sa.Column('origin', sa.String(32), nullable=False),
          sa.Column('errors', _text(), nullable=False),
          sa.Column('active', sa.Boolean),
          sa.PrimaryKeyConstraint('id', name=f'pk_{name}'),
          sa.UniqueConstraint('host_type', 'response', 'version',
                              name=f'uq_{name}_host_type_response_version'),
          sa.UniqueConstraint('host_type', 'response', 'active',
                              name=f'uq_{name}_host_type_response_active'))
    _index(name, 'created_at')


def _text() -> sa.types.TypeEngine[str]:
    return sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql')


def _make(name: str, *parts: Any) -> None:
    op.create_table(name, *parts, if_not_exists=True, **_MYSQL)


def _index(table: str, *columns: str) -> None:
    op.create_index(f'ix_{table}_{"_".join(columns)}', table, list(columns), if_not_exists=True)
