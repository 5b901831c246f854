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


"""For how long VMs were in breach, by month."""

from alembic import op
import sqlalchemy as sa

revision = '0005'
down_revision = '0004'


def upgrade() -> None:
    """Make the table; one that an interrupted upgrade left behind is kept."""
    op.create_table(
        'breaches',
        sa.Column('id', sa.String(64)),
        sa.Column('vm', sa.String(64), nullable=False),
        sa.Column('seconds', sa.Double, nullable=False),
        sa.Column('at', sa.Double, nullable=False),
        sa.PrimaryKeyConstraint('id', name='pk_breaches'),
        if_not_exists=True, mysql_engine='InnoDB', mysql_charset='utf8mb4',
        mysql_collate='utf8mb4_bin')
    op.create_index('ix_breaches_at', 'breaches', ['at'], if_not_exists=True)
