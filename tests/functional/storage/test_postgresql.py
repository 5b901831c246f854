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

"""The storage on PostgreSQL."""

import sqlalchemy as sa

from tests.functional import databases
from tests.functional.storage import suite
from tests.unit.engine.storage import base

globals().update(suite.cases(__name__, databases.PostgreSQL))


class TestPostgreSQL(suite.OnServer, base.StorageCase):
    """What only PostgreSQL has."""

    server = databases.PostgreSQL

    def test_a_stopped_engine_is_not_waited_for_for_long(self):
        for name, expected in (('idle_in_transaction_session_timeout', '15s'),
                               ('statement_timeout', '1min')):
            self.assertEqual(expected, self.database.read(
                lambda connection, name=name: connection.scalar(sa.text(f'SHOW {name}'))))
