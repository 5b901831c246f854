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

"""The files for Ceilometer and Gnocchi, as these read them, against the list of meters."""

import pathlib
import unittest

from ceilometer import agent
from ceilometer import gnocchi_client
from ceilometer.pipeline import sample as pipeline
from ceilometer.polling import manager
from ceilometer.publisher import gnocchi
import yaml

from tests.unit.telemetry import test_ceilometer
from tracon_watcher.telemetry import domain_stats
from tracon_watcher.telemetry import meters

TOP = pathlib.Path(__file__).parents[3]
FILES = TOP / 'etc/ceilometer'
RESOURCES = FILES / 'tracon_gnocchi_resources.yaml'
STOCK = pathlib.Path(gnocchi.__file__).parent / 'data/gnocchi_resources.yaml'


def load(path):
    return yaml.safe_load(path.read_text())


def definitions(path):
    found, _policies = gnocchi.GnocchiPublisher._load_definitions(
        test_ceilometer.configuration(), None, str(path))
    return {one.cfg['resource_type']: one for one in found}


class TestPolling(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.sources = {source['name']: manager.PollingSource(source)
                        for source in load(FILES / 'polling.yaml')['sources']}

    def test_both_pollsters_every_minute(self):
        ours = self.sources['tracon']
        self.assertEqual(60, ours.get_interval())
        self.assertTrue(ours.support_meter('tracon.vm') and ours.support_meter('tracon.host'))
        self.assertFalse(ours.support_meter('cpu'))

    def test_probes_are_asked_of_their_service(self):
        source, = load(FILES / 'probe_polling.yaml')['sources']
        probes = manager.PollingSource(source)
        self.assertTrue(probes.support_meter('tracon.probe'))
        self.assertFalse(probes.support_meter('tracon.host'))
        self.assertEqual(['http://127.0.0.1:8641'], probes.resources)

    def test_ceilometers_own_are_polled_as_ever(self):
        import sys
        stock = pathlib.Path(sys.prefix) / 'etc/ceilometer/polling.yaml'
        if not stock.exists():
            self.skipTest(f'needs {stock}')
        wanted = load(stock)['sources'][0]
        self.assertEqual(wanted, next(source.cfg for source in self.sources.values()
                                      if source.name == wanted['name']))
        self.assertFalse(self.sources[wanted['name']].support_meter('tracon.vm'))


class TestPipeline(unittest.TestCase):

    def setUp(self):
        super().setUp()
        content = load(FILES / 'pipeline.yaml')
        self.sources = [pipeline.SampleSource(source) for source in content['sources']]
        self.sinks = {sink['name']: sink['publishers'] for sink in content['sinks']}

    def publishers(self, meter):
        return [publisher for source in self.sources if source.support_meter(meter)
                for sink in source.sinks for publisher in self.sinks[sink]]

    def test_each_meter_goes_one_way(self):
        for meter in meters.METERS:
            self.assertEqual([f'gnocchi://?resources_definition_file={RESOURCES.name}'],
                             self.publishers(meter.name))
        for name in ('cpu', 'disk.device.read.requests', 'volume.size'):
            self.assertEqual(['gnocchi://'], self.publishers(name))

    def test_sources_are_as_ceilometer_wants_them(self):
        for source in self.sources:
            source.check_sinks(self.sinks)
        with self.assertRaises(agent.SourceException):
            self.sources[0].check_source_filtering(['cpu', '!tracon.*'], 'meters')


class TestResources(unittest.TestCase):

    def test_every_meter_is_kept_under_its_type_of_resource(self):
        found = definitions(RESOURCES)
        for kind, wanted in (('instance', meters.VM_METERS),
                             ('nova_compute', meters.HOST_METERS + meters.PROBE_METERS)):
            self.assertEqual({meter.name for meter in wanted}, set(found[kind].metrics))
            self.assertEqual({'tracon'}, {metric['archive_policy_name']
                                          for metric in found[kind].metrics.values()})
        self.assertEqual(2, len(found))

    def test_attributes_are_ceilometers_own(self):
        ours, theirs = definitions(RESOURCES), definitions(STOCK)
        for kind in ours:
            self.assertEqual(theirs[kind].cfg['attributes'], ours[kind].cfg['attributes'])
            self.assertFalse(set(ours[kind].metrics) & {
                name for other in theirs.values() for name in other.metrics})

    def test_both_types_are_made_by_ceilometer_upgrade(self):
        made = {*gnocchi_client.resources_initial, *(
            change['resource_type'] for change in gnocchi_client.resources_update_operations
            if change['type'] == 'create_resource_type')}
        self.assertLessEqual({'instance', 'nova_compute'}, made)

    def test_a_host_has_a_name(self):
        from tracon_watcher.telemetry import ceilometer
        pollster = ceilometer.HostPollster(test_ceilometer.configuration())
        sample = next(pollster.get_samples(None, {}, ['compute-7']))
        self.assertEqual({'host_name': 'compute-7'},
                         definitions(RESOURCES)['nova_compute'].sample_attributes(sample))

    def test_the_policy_keeps_a_day_by_minutes(self):
        policy, = load(RESOURCES)['archive_policies']
        self.assertEqual(('tracon', ['last']), (policy['name'], policy['aggregation_methods']))
        self.assertGreater(policy['back_window'], 0)
        self.assertEqual(['1 minute', '5 minutes'],
                         [one['granularity'] for one in policy['definition']])
        self.assertEqual(['1 day', '30 days'], [one['timespan'] for one in policy['definition']])


class TestDocumentation(unittest.TestCase):

    def test_every_meter_and_every_field_that_is_read(self):
        text = (TOP / 'doc/source/admin/telemetry.rst').read_text()
        for meter in meters.METERS:
            self.assertIn(f'``{meter.name}``', text)
        fields = text[text.index('What is read of a VM'):text.index('The connection is read-only')]
        listed = fields.partition('::')[2].replace(',', ' ').split()
        self.assertEqual(sorted(domain_stats.FIELDS), sorted(listed))
