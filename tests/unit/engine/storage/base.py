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

"""What tests of the storage begin with: an empty database with all tables.

In this package that is a file of SQLite's; ``tests/functional/storage`` runs the same tests on
MariaDB and PostgreSQL.
"""

import math
import pathlib
import tempfile
import unittest
from unittest import mock
import uuid

from tracon_watcher.engine.storage import database
from tracon_watcher.engine.storage import decisions
from tracon_watcher.engine.storage import lease
from tracon_watcher.engine.storage import moves
from tracon_watcher.engine.storage import repository
from tracon_watcher.engine.storage import schema

NOW = 1.8e9


class SQLite:
    """Where a database comes from: a file in a folder that goes after the test."""

    def new_address(self):
        return f'sqlite:///{self.enterContext(tempfile.TemporaryDirectory())}/tracon.db'


class DatabaseCase(SQLite, unittest.TestCase):
    """Has an address of a database without tables."""

    #: Whether SQLite waits for the disk, as it does in operation; slow, and of use to those alone
    #: who mean to test that.
    synchronous = False

    def setUp(self):
        super().setUp()
        # Several that write wait for each other, however busy the machine is.
        self.enterContext(mock.patch.object(database, '_BUSY_MILLISECONDS', 120000))
        self.address = self.new_address()

    def connect(self, address=None, **options):
        """Return a database that gives up at once, and is closed after the test."""
        made = database.Database(address or self.address, **{
            'max_retries': 1, 'retry_interval': 0, 'sqlite_synchronous': self.synchronous,
            **options})
        self.addCleanup(made.close)
        return made

    @property
    def backend(self):
        """Name of the database: sqlite, mysql or postgresql."""
        return self.connect().url.get_backend_name()


class StorageCase(DatabaseCase):
    """Has a storage."""

    def setUp(self):
        super().setUp()
        self.database = self.connect()
        schema.upgrade(self.database)
        self.storage = repository.Storage(self.database)

    def lead(self, holder='engine-1'):
        """Begin a new term."""
        term = self.storage.lease.take(self.storage.lease.look(), holder)
        self.assertIsInstance(term, lease.Term)
        return term

    def execute(self, statement):
        """Do with the database what the storage never would."""
        self.database.write(lambda connection: connection.exec_driver_sql(statement))


def decision(at=NOW, vm=None, request='req-1', **more):
    """Return a decision document, as nova-scheduler sends it; its numbers are invented."""
    return {
        'schema': decisions.SCHEMA, 'id': str(uuid.uuid4()), 'request': request,
        'vm': vm or str(uuid.uuid4()), 'at': at, 'operation': 'create', 'snapshot': [3, 17],
        'newcomer': {'source': 'flavor', 'mean': [1.0] * 4, 'deviation': [0.1] * 4},
        'considered': 1, 'refused': 0, 'unknown': 0, 'outcome': 'placed', 'hosts': [{
            'host': 'compute-1', 'mode': 'weigh', 'status': 'known', 'refused': False,
            'weight': 0.9, 'rank': 1, 'score': 0.1, 'slowdown': [1.0, 1.1, 1.2],
            'iops_ratio': None, 'worst': None, 'reasons': {}}],
        'chosen': None, **more}


def settled(at, chosen='compute-1', **more):
    """Return the document that says where a VM went."""
    return {'schema': decisions.SETTLED, 'chosen': chosen, 'at': at, **more}


def move(number=None, vm='vm-1', kind='live_migration for CPU', decided_at=NOW, observed=2.0,
         **more):
    """Return a move that relieves one other VM."""
    return moves.MoveRecord(**{
        'id': number or str(uuid.uuid4()), 'kind': kind,
        'own': moves.MoveEffect(vm, 2.0, 1.1, observed),
        'relieved': (moves.MoveEffect('vm-2', 1.8, 1.2, 1.9),
                     moves.MoveEffect('vm-3', 1.3, 1.0, math.nan)),
        'source': 'compute-1', 'destination': 'compute-2', 'reason': 'ends 1 breach',
        'decided_at': decided_at, **more})


def alembic_folder():
    """Return the folder of the migrations."""
    return pathlib.Path(schema.__file__).parent / 'migrations'
