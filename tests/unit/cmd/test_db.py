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

"""The commands that look after the engine's database."""

import json
import logging
import os
import stat
import subprocess
import sys
import time

from tests.unit import command_line
from tests.unit.engine.storage import base
from tests.unit import folder
from tracon_watcher.cmd import database
from tracon_watcher.cmd import db
from tracon_watcher.engine.storage import decisions
from tracon_watcher.engine.storage import repository
from tracon_watcher.engine.storage import schema
from tracon_watcher import errors

COMMANDS = {'db check': db.Check, 'db purge': db.Purge, 'db upgrade': db.Upgrade,
            'db restored': db.Restored, 'db version': db.Version}


class TestCommands(folder.FolderCase):

    def setUp(self):
        super().setUp()
        for name in ('alembic', 'oslo_db'):
            logger = logging.getLogger(name)
            self.addCleanup(logger.setLevel, logger.level)
        self.file = self.folder / f'{self.id()}.db'
        self.address = f'sqlite:///{self.file}'
        self.configuration = self.configure(connection=self.address)

    def configure(self, **options):
        path = self.folder / f'{self.id()}.conf'
        path.write_text('[database]\n' + ''.join(
            f'{name} = {value}\n' for name, value in options.items()), encoding='utf-8')
        return str(path)

    def run_program(self, *argv):
        """Return exit code, standard output and standard error."""
        return command_line.run('db', *argv, '--config-file', self.configuration, **COMMANDS)

    def succeed(self, *argv):
        code, out, err = self.run_program(*argv)
        self.assertEqual(0, code, err)
        return out

    def refuse(self, expected, *argv):
        code, _out, err = self.run_program(*argv)
        self.assertEqual(2, code)
        self.assertRegex(err, expected)
        self.assertEqual(1, len(err.splitlines()), err)

    def test_from_nothing_to_up_to_date(self):
        found = json.loads(self.succeed('version', '-f', 'json'))
        self.assertEqual({'database': self.address, 'revision': None,
                          'needed': schema.expected(), 'up_to_date': False}, found)
        self.assertFalse(self.file.exists())
        self.refuse('tracon db upgrade', 'check')
        self.assertEqual(f'{self.address}: revision {schema.expected()}; before: no tables\n',
                         self.succeed('upgrade'))
        self.assertIn('as before', self.succeed('upgrade'))
        self.assertTrue(json.loads(self.succeed('version', '-f', 'json'))['up_to_date'])
        found = json.loads(self.succeed('check', '-f', 'json'))
        self.assertEqual((None, 0, 0), (found['leader'], found['epoch'],
                                        found['snapshot_version']))

    def test_nothing_is_said_beside_the_result(self):
        # In a process of its own: alembic tells of what it finds when it is first imported.
        found = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c',
             'import sys; from tracon_watcher.cmd import app; sys.exit(app.main(sys.argv[1:]))',
             'db', 'upgrade', '--config-file', self.configuration],
            capture_output=True, text=True, timeout=120)
        self.assertEqual((0, ''), (found.returncode, found.stderr))
        self.assertIn('before: no tables', found.stdout)

    def test_check_finds_what_was_changed_by_hand(self):
        self.succeed('upgrade')
        made = repository.Storage.open(self.address)
        made.database.write(lambda connection: connection.exec_driver_sql('DROP TABLE moves'))
        self.refuse('the schema is .*moves', 'check')

    def test_check_finds_damage(self):
        self.succeed('upgrade')
        size = self.file.stat().st_size
        with open(self.file, 'r+b') as stream:
            stream.seek(4096)
            stream.write(b'\xff' * (size - 4096))
        self.refuse(str(self.file), 'check')
        self.file.write_bytes(b'This is no database at all. ' * 1000)
        self.refuse(str(self.file), 'version')

    def test_purge(self):
        self.succeed('upgrade')
        made = repository.Storage.open(self.address)
        made.decisions.add([decisions.Decision.of(base.decision(time.time() - days * 86400))
                            for days in (20, 10, 1)])
        found = json.loads(self.succeed('purge', '-f', 'json'))
        self.assertEqual(1, found['decisions'])
        found = json.loads(self.succeed('purge', '--decisions', '5', '-f', 'json'))
        self.assertEqual(1, found['decisions'])
        self.configuration = self.configure(connection=self.address, decisions_kept_days=0.5)
        self.assertEqual(1, json.loads(self.succeed('purge', '-f', 'json'))['decisions'])
        for text in ('-1', 'nan', '1e9'):
            code, _out, err = self.run_program('purge', '--moves', text)
            self.assertEqual(2, code)
            self.assertIn(f"--moves: '{text}': expected a finite number from 0 to 36500", err)

    def test_restored(self):
        self.refuse('tracon db upgrade', 'restored')
        self.succeed('upgrade')
        self.assertRegex(self.succeed('restored'), 'the next epoch is [0-9]{10}\n')
        self.assertGreater(json.loads(self.succeed('check', '-f', 'json'))['epoch'], 1.6e9)

    def test_bad_configuration(self):
        for options, expected in (
                ({'connection': 'oracle://scott:t1ger@host/x'}, 'connection.*expected sqlite'),
                ({'connection': 'sqlite:////no/such/folder/x.db'},
                 'the folder /no/such/folder is not there: make it'),
                ({'connection': self.address, 'decisions_kept_days': 'many'}, '--config-file'),
                ({'connection': self.address, 'max_pool_size': 'many'}, '--config-file')):
            with self.subTest(options):
                self.configuration = self.configure(max_retries=1, retry_interval=0, **options)
                code, out, err = self.run_program('upgrade')
                self.assertEqual(2, code)
                self.assertRegex(err, expected)
                self.assertNotIn('t1ger', out + err)
        self.configuration = '/no/such/file.conf'
        self.refuse('/no/such/file.conf', 'version')

    def test_secrets_are_not_shown(self):
        self.configuration = self.configure(
            connection='postgresql+psycopg2://u:t1ger@127.0.0.1:1/d', max_retries=1,
            retry_interval=0)
        for command in ('version', 'upgrade', 'check', 'purge'):
            code, out, err = self.run_program(command, '--debug')
            self.assertEqual(2, code, out + err)
            self.assertNotIn('t1ger', out + err)

    def test_defaults(self):
        conf = database.cfg.ConfigOpts()
        database.register_opts(conf)
        conf([], default_config_files=[])
        self.assertEqual('sqlite:////var/lib/tracon/tracon.db', conf.database.connection)
        self.assertEqual((14.0, 365.0), (
            database.keep(conf).decisions, database.keep(conf).moves))
        self.assertNotIn('connection', database.engine_options(conf))
        self.assertEqual(10, database.engine_options(conf)['max_retries'])

    def test_others_cannot_read_what_is_stored(self):
        self.succeed('upgrade')
        mode = stat.S_IMODE(os.stat(self.file).st_mode)
        self.assertEqual(0, mode & 0o007, oct(mode))
        with self.assertRaises(errors.TraconError):
            repository.Storage.open('sqlite:////no/such/folder/x.db', max_retries=1)
