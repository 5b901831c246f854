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

"""The package says where OpenStackClient and oslo.policy find what is here."""

import configparser
import importlib
import pathlib
import unittest

from tests.unit.osc import base as osc
from tracon_watcher.api import policies
from tracon_watcher.osc import plugin

_SETUP = pathlib.Path(__file__).parents[3] / 'setup.cfg'


class EntryPoints(unittest.TestCase):

    def entry_points(self, group):
        parser = configparser.ConfigParser(interpolation=None)
        parser.read(_SETUP, encoding='utf-8')
        found = {}
        for line in parser.get('entry_points', group).strip().splitlines():
            name, _equals, target = (part.strip() for part in line.partition('='))
            module, _colon, attribute = target.partition(':')
            loaded = importlib.import_module(module)
            found[name] = getattr(loaded, attribute) if attribute else loaded
        return found

    def test_of_openstackclient(self):
        self.assertEqual({plugin.API_NAME: plugin},
                         self.entry_points('openstack.cli.extension'))
        self.assertEqual(
            osc.COMMANDS, {name.replace('_', ' '): command for name, command in self.entry_points(
                f'openstack.{plugin.API_NAME}.v{plugin.DEFAULT_API_VERSION}').items()})

    def test_of_oslo_policy(self):
        self.assertEqual({'tracon': policies.list_rules},
                         self.entry_points('oslo.policy.policies'))
        self.assertEqual({'tracon': policies.get_enforcer},
                         self.entry_points('oslo.policy.enforcer'))

    def test_every_command_says_what_it_does(self):
        for name, command in osc.COMMANDS.items():
            self.assertTrue((command.__doc__ or '').strip(), name)
