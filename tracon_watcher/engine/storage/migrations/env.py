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

"""Alembic runs this; it is given the connection, with a transaction begun."""

from alembic import context
import sqlalchemy as sa

from tracon_watcher.engine.storage import tables


def _run(connection: sa.Connection) -> None:
    # SQLite can take back changes to tables, as oslo.db begins transactions; alembic, which is
    # used to other drivers, would not believe it.
    context.configure(connection=connection, target_metadata=tables.METADATA, compare_type=True,
                      render_as_batch=connection.dialect.name == 'sqlite',
                      transactional_ddl=connection.dialect.name != 'mysql')
    with context.begin_transaction():
        context.run_migrations()


if (lent := context.config.attributes.get('connection')) is not None:
    _run(lent)
else:
    # "alembic revision", in a developer's hands.
    with sa.create_engine(context.config.get_main_option('sqlalchemy.url')).begin() as made:
        _run(made)
