#  Licensed under the Apache License, Version 2.0 (the "License"); you may
#  not use this file except in compliance with the License. You may obtain
#  a copy of the License at
#
#       http://www.apache.org/licenses/LICENSE-2.0
#
#  Unless required by applicable law or agreed to in writing, software
#  distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#  WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#  License for the specific language governing permissions and limitations
#  under the License.

"""The program: one line and exit code 2 for what is wrong, whatever else is missing."""

import importlib.metadata
import unittest

from cliff import command
from cliff import lister

from tests.unit import command_line
from tracon_watcher import errors


class Refuse(command.Command):
    """Refuses its input."""

    def take_action(self, parsed_args):
        raise errors.InvalidOption('tracon:max_slowdown', 'banana', 'a number from 1 on')


class Break(command.Command):
    """Has a fault."""

    def take_action(self, parsed_args):
        raise KeyError('hull')


class Lack(command.Command):
    """Needs a package that does not exist."""

    def take_action(self, parsed_args):
        import no_such_package  # noqa: F401


class Write(command.Command):
    """Writes where it may not."""

    def take_action(self, parsed_args):
        open('no/such/folder/picture.svg', 'w')


class Table(lister.Lister):
    """Show a table."""

    def take_action(self, parsed_args):
        return ('response', 'error'), [('slowdown', 0.1)]


class Program(unittest.TestCase):

    def test_expected_error_is_one_line(self):
        code, _out, err = command_line.run('refuse', refuse=Refuse)
        self.assertEqual(2, code)
        self.assertEqual("tracon:max_slowdown='banana': a number from 1 on\n", err)

    def test_debug_shows_where_it_came_from(self):
        code, _out, err = command_line.run('--debug', 'refuse', refuse=Refuse)
        self.assertEqual(2, code)
        self.assertIn('Traceback', err)

    def test_a_fault_is_not_dressed_up_as_bad_input(self):
        code, _out, err = command_line.run('break', **{'break': Break})
        self.assertEqual(1, code)
        self.assertIn('KeyError was not expected', err)

    def test_a_file_that_cannot_be_used_is_an_expected_error(self):
        code, _out, err = command_line.run('write', write=Write)
        self.assertEqual(2, code)
        self.assertEqual("no/such/folder/picture.svg: the file is 'No such file or directory': "
                         'cannot be read or written; name another, or change permissions\n',
                         err)

    def test_missing_package_names_the_extras(self):
        code, _out, err = command_line.run('lack', lack=Lack)
        self.assertEqual(2, code)
        self.assertIn('no_such_package', err)
        self.assertIn('models', err)

    def test_unknown_option(self):
        code, _out, err = command_line.run('refuse', '--banana', refuse=Refuse)
        self.assertEqual(2, code)
        self.assertIn('--banana', err)

    def test_unknown_command(self):
        code, out, _err = command_line.run('place')
        self.assertEqual(2, code)
        self.assertIn("'place' is not a tracon command", out)

    def test_no_command_shows_the_help(self):
        code, out, _err = command_line.run()
        self.assertEqual(1, code)
        self.assertIn('model fit', out)

    def test_tables_in_the_format_asked_for(self):
        code, out, _err = command_line.run('table', '-f', 'csv', table=Table)
        self.assertEqual(0, code)
        self.assertEqual(['"response","error"', '"slowdown",0.1'], out.split())

    def test_every_declared_command_can_be_loaded(self):
        for entry_point in importlib.metadata.entry_points(group='tracon.command'):
            with self.subTest(command=entry_point.name):
                self.assertTrue(issubclass(entry_point.load(), command.Command))
