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

"""Episodes in which tracon-background throttled."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0006'
down_revision = '0005'


def upgrade() -> None:
    """Make the table; one that an interrupted upgrade left behind is kept."""
    op.create_table(
        'episodes',
        sa.Column('id', sa.String(64)),
        sa.Column('host', sa.String(255), nullable=False),
        sa.Column('vm', sa.String(64)),
        sa.Column('at', sa.Double, nullable=False),
        sa.Column('document', sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql'),
                  nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_episodes'),
        if_not_exists=True, mysql_engine='InnoDB', mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin')
    for names in (['at'], ['host', 'at'], ['vm', 'at']):
        op.create_index(f'ix_episodes_{"_".join(names)}', 'episodes', names, if_not_exists=True)
