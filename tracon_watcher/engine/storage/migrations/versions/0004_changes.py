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

"""What a move does to every VM that it concerns."""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import mysql

revision = '0004'
down_revision = '0003'


def upgrade() -> None:
    """Add the column, unless an interrupted upgrade has done so."""
    if 'changes' not in {one['name'] for one in sa.inspect(op.get_bind()).get_columns('moves')}:
        op.add_column('moves', sa.Column(
            'changes', sa.Text().with_variant(mysql.MEDIUMTEXT(), 'mysql')))
