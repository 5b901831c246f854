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

"""What was given once need not be given again, and what cannot change is refused."""

import argparse
import contextlib
import io

from tests.unit import folder
from tracon_lab.cmd import cloud
from tracon_lab.testcloud import errors as cloud_errors
from tracon_lab.testcloud import settings
from tracon_watcher import errors


class TestCloud(folder.OwnFolderCase):

    def wanted(self, *arguments):
        parser = cloud.Start(None, None).get_parser('tracon cloud start')
        return cloud._wanted(parser.parse_args(
            ['--directory', str(self.folder), *arguments]))

    def test_without_anything_it_is_the_default(self):
        self.assertEqual(settings.Settings(directory=self.folder), self.wanted())
        parser = argparse.ArgumentParser()
        cloud._add_directory(parser)
        self.assertEqual(settings.DEFAULT_DIRECTORY, parser.parse_args([]).directory)

    def test_what_was_given_before_stays(self):
        self.wanted('--host', 'a', '--host', 'b', '--port-base', '21000',
                    '--polling-seconds', '5', '--debug-services').save()
        found = self.wanted()
        self.assertEqual((('a', 'b'), 21000, 5, True), (
            found.hosts, found.port_base, found.polling_seconds, found.debug))
        found = self.wanted('--polling-seconds', '6', '--host', 'a', '--host', 'b')
        self.assertEqual((21000, 6), (found.port_base, found.polling_seconds))

    def test_what_stored_data_depends_on_does_not_change(self):
        self.wanted().save()
        for arguments in (('--port-base', '21000'), ('--host', 'other')):
            with self.assertRaisesRegex(errors.InvalidOption, '--delete'):
                self.wanted(*arguments)

    def test_variables_are_those_of_the_user(self):
        self.wanted().save()
        command = cloud.Env(None, None)
        shown = io.StringIO()
        with contextlib.redirect_stdout(shown):
            command.take_action(command.get_parser('x').parse_args(
                ['--directory', str(self.folder), '--user', 'reader']))
        self.assertIn('export OS_USERNAME=reader\n', shown.getvalue())
        self.assertIn('export OS_PROJECT_NAME=demo\n', shown.getvalue())

    def test_services_are_listed_as_stopped_and_that_is_no_success(self):
        self.wanted('--host', 'a').save()
        command = cloud.Status(None, None)
        columns, rows = command.take_action(command.get_parser('x').parse_args(
            ['--directory', str(self.folder)]))
        self.assertEqual('service', columns[0])
        self.assertEqual({'stopped'}, {row[1] for row in rows})
        self.assertIn('nova-compute-a', {row[0] for row in rows})
        self.assertFalse(command._running)

    def test_where_there_is_none_every_other_command_says_so(self):
        for name in ('Stop', 'Status', 'Env'):
            command = getattr(cloud, name)(None, None)
            with self.assertRaises(cloud_errors.NoCloud):
                command.take_action(command.get_parser('x').parse_args(
                    ['--directory', str(self.folder)]))
