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

"""Numbers in the arguments of every command are read by one grammar, each within a range."""

import argparse
import contextlib
import functools
import importlib.metadata
import io
import unittest

from tracon_lab.cmd import arguments
from tracon_lab.cmd import bench_engine
from tracon_lab.cmd import bench_snapshot
from tracon_lab.cmd import simulate
from tracon_lab.cmd import simulate_hosts
from tracon_watcher import numerals


def commands():
    """Yield (name, parser) of every command of tracon and of OpenStackClient."""
    for group in ('tracon.command', 'openstack.interference.v1'):
        for entry_point in importlib.metadata.entry_points(group=group):
            command = entry_point.load()(None, None)
            yield entry_point.name, command.get_parser(entry_point.name)


def actions(parser):
    """Yield the arguments that are numbers, but cliff's own."""
    for action in parser._actions:
        if action.dest != 'max_width' and (
                isinstance(action.type, functools.partial) or action.type in (int, float)):
            yield action


def said(parser, *given):
    """Return what argparse says of arguments that it refuses."""
    told = io.StringIO()
    with contextlib.redirect_stderr(told):
        try:
            parser.parse_args(given)
        except SystemExit as end:
            return end.code, told.getvalue().splitlines()[-1]
    raise AssertionError(f'{given} was taken')


class EveryCommand(unittest.TestCase):

    def test_only_numbers_of_the_one_grammar_are_taken(self):
        count = 0
        for name, parser in commands():
            for action in actions(parser):
                count += 1
                with self.subTest(f'{name} {action.dest}'):
                    self.assertIn(getattr(action.type, 'func', None),
                                  (numerals.parse, numerals.parse_whole))
                    for text in ('nan', 'inf', '-inf', '1e400', '1_5', '１５', '', '0x10'):
                        with self.assertRaisesRegex(numerals.InvalidNumber, 'expected a'):
                            action.type(text)
                    # A range has a lower end: what is negative has no meaning anywhere.
                    with self.assertRaisesRegex(numerals.InvalidNumber, 'expected a'):
                        action.type('-1')
                    if action.default is not None:
                        self.assertEqual(action.default, action.type(str(action.default)))
        self.assertGreater(count, 90)

    def test_the_error_names_argument_value_and_range(self):
        for (command, *given), expected in (
                ((simulate.Dynamic, '--pause', 'nan'),
                 "argument --pause: 'nan': expected a finite number from 0 to 86400"),
                ((simulate.Dynamic, '--sigma', '1,inf'),
                 "argument --sigma: 'inf': expected a finite number from 0 to 1000000"),
                ((simulate.Static, '--solo-minutes', '1e300'),
                 "argument --solo-minutes: '1e300': expected a finite number from 0.001 to "
                 '1000000'),
                ((simulate.Static, '--machines', '10,,20'),
                 "argument --machines: '': expected a whole number of at least 1"),
                ((bench_engine.Engine, '--cycles', '0'),
                 "argument --cycles: '0': expected a whole number of at least 1"),
                ((bench_snapshot.Snapshot, '--changed', '2'),
                 "argument --changed: '2': expected a finite number from 0 to 1")):
            code, told = said(command(None, None).get_parser('tracon'), *given)
            self.assertEqual(2, code)
            self.assertIn(expected, told)

    def test_a_picture_has_an_ending_that_can_be_drawn(self):
        code, told = said(simulate_hosts.Hosts(None, None).get_parser('tracon'), '--plot', 'x.xyz')
        self.assertEqual(2, code)
        self.assertIn("argument --plot: 'x.xyz': expected a file name that ends in .png or .svg",
                      told)

    def test_the_size_of_a_cloud(self):
        parser = argparse.ArgumentParser()
        arguments.add_cloud_size(parser, least_hosts=2, least_vms=1)
        self.assertIn('of at least 2', said(parser, '--hosts', '1')[1])
        self.assertIn('of at least 1', said(parser, '--vms-per-host', '0')[1])
