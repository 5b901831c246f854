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

"""A MariaDB that speaks TLS alone."""

import pathlib
import tempfile
import unittest

import sqlalchemy as sa

from tests.functional import authority
from tests.functional import databases
from tracon_watcher.engine.storage import database
from tracon_watcher.engine.storage import errors
from tracon_watcher import errors as shared


class TLSTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if databases.missing(databases.MariaDB):
            raise unittest.SkipTest(databases.missing(databases.MariaDB))
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.known = authority.Authority(folder / 'known')
        cls.unknown = authority.Authority(folder / 'unknown')
        cls.server = databases.MariaDB(cls.known)
        cls.addClassCleanup(cls.server.stop)
        cls.server.start()
        cls.address = cls.server.create()

    def ask(self, options, statement="SHOW STATUS LIKE 'Ssl_cipher'"):
        found = database.Database(self.address + options, max_retries=1)
        return found.read(lambda connection: connection.execute(sa.text(statement)).all())

    def test_what_is_stored_goes_through_tls(self):
        self.assertNotEqual('', self.ask(f'?ssl_ca={self.known.ca}')[0][1])

    def test_who_shows_another_certificate_is_not_spoken_to(self):
        with self.assertRaisesRegex(errors.StorageUnavailable, 'certificate verify failed') as one:
            self.ask(f'?ssl_ca={self.unknown.ca}')
        self.assertNotIn(databases.PASSWORD, str(one.exception))

    def test_a_file_that_is_missing_is_named(self):
        with self.assertRaisesRegex(shared.InvalidOption, 'ssl_ca=/missing.pem must') as one:
            self.ask('?ssl_ca=/missing.pem')
        self.assertNotIn(databases.PASSWORD, str(one.exception))
