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

"""The product's own files, with this cloud's interval and paths."""

import importlib.util
import unittest
from urllib import parse

import yaml

from tests.unit import folder
from tracon_lab.testcloud.configuration import telemetry
from tracon_lab.testcloud import settings as settings_module

OURS = {
    'polling.yaml': {'sources': [{'name': 'tracon', 'interval': 60, 'meters': ['tracon.vm']}]},
    'pipeline.yaml': {
        'sources': [{'name': 'tracon', 'meters': ['tracon.*'], 'sinks': ['tracon', 'bus']}],
        'sinks': [{'name': 'tracon', 'publishers': [
            'gnocchi://?resources_definition_file=tracon_gnocchi_resources.yaml']},
            {'name': 'bus', 'publishers': ['notifier://?topic=x']}]},
    'tracon_gnocchi_resources.yaml': {
        'archive_policy_default': 'tracon',
        'archive_policies': [{'name': 'tracon', 'aggregation_methods': ['last'], 'definition': [
            {'granularity': '1 minute', 'timespan': '1 day'},
            {'granularity': '5 minutes', 'timespan': '30 days'}]}],
        'resources': [{'resource_type': 'instance', 'metrics': {'tracon.clock': None}}]},
}


class TestTelemetry(folder.OwnFolderCase):

    def setUp(self):
        super().setUp()
        self.settings = settings_module.Settings(
            directory=self.folder / 'cloud', telemetry=self.folder, polling_seconds=7)

    def test_all_sources_are_polled_at_this_clouds_interval(self):
        for content in (None, OURS['polling.yaml']):
            found = telemetry.polling(self.settings, content)
            self.assertEqual({7}, {source['interval'] for source in found['sources']})
        self.assertEqual(['tracon.vm'], found['sources'][0]['meters'])

    def test_tracon_probe_is_asked_by_an_agent_of_its_own(self):
        source = {'name': 'probe', 'interval': 60, 'meters': ['tracon.probe'],
                  'resources': ['http://127.0.0.1:8641']}
        (self.folder / 'probe_polling.yaml').write_text(yaml.safe_dump({'sources': [source]}))
        found = telemetry.definitions(self.settings)
        self.assertNotIn('probe_polling.yaml', found)
        self.assertEqual(
            [{**source, 'interval': 7, 'resources': [self.settings.url('probe')]}],
            found['central_polling.yaml']['sources'])

    def test_publishers_find_their_files(self):
        found = telemetry.pipeline(self.settings, OURS['pipeline.yaml'])
        ours, bus = (sink['publishers'][0] for sink in found['sinks'])
        self.assertEqual('notifier://?topic=x', bus)
        options = parse.parse_qs(parse.urlsplit(ours).query)
        self.assertEqual({'resources_definition_file': [
            str(self.settings.configuration / 'ceilometer/tracon_gnocchi_resources.yaml')]},
            options)
        stock = telemetry.pipeline(self.settings, None)['sinks'][0]['publishers'][0]
        options = parse.parse_qs(parse.urlsplit(stock).query)
        self.assertEqual([telemetry.POLICY], options['archive_policy'])

    def test_only_the_finest_granularity_is_changed(self):
        name = 'tracon_gnocchi_resources.yaml'
        found = telemetry.resources(self.settings, OURS[name])
        policy = found['archive_policies'][0]
        self.assertEqual(['7 seconds', '5 minutes'],
                         [one['granularity'] for one in policy['definition']])
        self.assertEqual(['last'], policy['aggregation_methods'])
        self.assertEqual(OURS[name]['resources'], found['resources'])
        self.assertEqual('1 minute', OURS[name]['archive_policies'][0]['definition'][0][
            'granularity'])

    @unittest.skipUnless(importlib.util.find_spec('ceilometer'), 'needs ceilometer')
    def test_stock_files_stand_beside_the_products(self):
        for name, content in OURS.items():
            (self.folder / name).write_text(yaml.safe_dump(content))
        found = telemetry.definitions(self.settings)
        self.assertEqual({*OURS, 'gnocchi_resources.yaml', 'event_pipeline.yaml'}, set(found))
        stock = found['gnocchi_resources.yaml']
        self.assertEqual(telemetry.POLICY, stock['archive_policies'][0]['name'])
        self.assertIn('instance', {one['resource_type'] for one in stock['resources']})

    def test_files_of_a_folder_that_is_not_there_are_none(self):
        made = settings_module.Settings(telemetry=self.folder / 'nowhere')
        self.assertEqual([], telemetry.files(made))
