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

"""The pollsters beside Ceilometer's own parts, with recorded statistics below."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

from ceilometer.compute import discovery
from ceilometer import opts
from ceilometer.polling import prom_exporter
from oslo_config import cfg

from tests.unit.telemetry import replay
from tracon_watcher.telemetry import ceilometer
from tracon_watcher.telemetry import libvirt
from tracon_watcher.telemetry import meters


def configuration(**overrides):
    """Return Ceilometer's options with their defaults, of host "compute-7"."""
    conf = cfg.ConfigOpts()
    for group, options in opts.list_opts():
        conf.register_opts(list(options), group=None if group == 'DEFAULT' else group)
    conf([], project='ceilometer', default_config_files=[], default_config_dirs=[])
    conf.set_override('host', 'compute-7')
    for name, value in overrides.items():
        conf.set_override(name, value, 'polling')
    return conf


def instance(uuid, **changed):
    """Return an instance as Ceilometer's discovery through libvirt makes it."""
    found = {
        'id': uuid, 'name': 'web-1', 'flavor': {
            'id': '42', 'name': 'm1.small', 'vcpus': 1, 'ram': 512, 'disk': 1, 'ephemeral': 0,
            'swap': 0, 'extra_specs': {'tracon:max_slowdown': '2'}},
        'image': {'id': 'ad1e54a6'}, 'os_type': 'hvm', 'architecture': 'x86_64',
        'OS-EXT-SRV-ATTR:instance_name': 'instance-0001',
        'OS-EXT-SRV-ATTR:host': 'compute-7', 'OS-EXT-STS:vm_state': 'running',
        'tenant_id': 'a-project', 'user_id': 'a-user', 'hostId': 'abc', 'status': 'active',
        'metadata': {'metering.server_group': 'a-group', 'secret': 'x'}}
    return discovery.NovaLikeServer(**{**found, **changed})


class TestImport(unittest.TestCase):

    def test_an_agent_gets_no_numpy_from_it(self):
        code = ('import sys, ceilometer.compute.discovery, ceilometer.polling.manager; '
                'before = "numpy" in sys.modules; import tracon_watcher.telemetry.ceilometer; '
                'print(before, "numpy" in sys.modules)')
        answer = subprocess.run([sys.executable, '-W', 'ignore', '-c', code], check=True,
                                capture_output=True, text=True).stdout.split()
        self.assertEqual(answer[0], answer[1])


class TestVMs(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.uuids = [replay.uuid(name) for name in ('several', 'reads', 'paused')]

    def pollster(self, *answers, **overrides):
        pollster = ceilometer.VMPollster(configuration(**overrides))
        self.connection = replay.Connection(*(answers or replay.polls()))
        pollster.source = libvirt.Source(lambda: self.connection)
        return pollster

    def poll(self, pollster, uuids=None, cache=None):
        return list(pollster.get_samples(
            None, {} if cache is None else cache,
            [instance(uuid) for uuid in (self.uuids if uuids is None else uuids)]))

    def test_all_meters_of_all_vms_vm_by_vm(self):
        samples = self.poll(self.pollster())
        everywhere = {meter.name for meter in meters.VM_METERS if meter.everywhere}
        self.assertEqual(len(everywhere) * 3, len(samples))
        for number, uuid in enumerate(self.uuids):
            part = samples[number * len(everywhere):][:len(everywhere)]
            self.assertEqual({uuid}, {sample.resource_id for sample in part})
            self.assertEqual(everywhere, {sample.name for sample in part})

    def test_the_fields_of_a_sample(self):
        samples = {sample.name: sample for sample in self.poll(self.pollster(), self.uuids[1:2])}
        for name, sample in samples.items():
            meter = meters.BY_NAME[name]
            self.assertEqual((meter.unit, 'cumulative', 'a-project', 'a-user'),
                             (sample.unit, sample.type, sample.project_id, sample.user_id))
            self.assertEqual(samples[meters.CLOCK.name].volume * 1e-9, sample.monotonic_time)
        stats = replay.stats('reads')
        self.assertEqual(stats['block.0.rd.reqs'] + stats['block.1.rd.reqs'],
                         samples[meters.READ_REQUESTS.name].volume)

    def test_the_metadata_of_ceilometers_own_meters(self):
        sample = self.poll(self.pollster(), self.uuids[:1])[0]
        metadata = sample.resource_metadata
        self.assertEqual(('web-1', 'compute-7', 'ad1e54a6', '42', 'm1.small'), (
            metadata['display_name'], metadata['instance_host'], metadata['image_ref'],
            metadata['flavor']['id'], metadata['flavor']['name']))
        self.assertEqual({'server_group': 'a-group'}, metadata['user_metadata'])

    def test_one_call_a_cycle_whatever_asks(self):
        pollster, cache = self.pollster(), {}
        self.poll(pollster, self.uuids[:1], cache)
        self.poll(pollster, self.uuids[1:], cache)
        self.assertEqual(1, len(self.connection.calls))
        self.poll(pollster)
        self.assertEqual(2, len(self.connection.calls))

    def test_only_who_is_discovered_and_reported(self):
        samples = self.poll(self.pollster(), [self.uuids[0], 'elsewhere'])
        self.assertEqual({self.uuids[0]}, {sample.resource_id for sample in samples})
        self.assertEqual([], self.poll(self.pollster(), []))

    def test_that_nothing_discovered_runs_here_is_one_line(self):
        pollster = self.pollster()
        with self.assertLogs('tracon_watcher.telemetry.ceilometer', 'WARNING') as logged:
            for _poll in range(3):
                self.assertEqual([], self.poll(pollster, ['instance-00000001']))
        (line,) = logged.output
        self.assertRegex(line, f'such as instance-00000001, is a .*, such as {min(self.uuids)}')
        with self.assertNoLogs('tracon_watcher.telemetry.ceilometer', 'WARNING'):
            self.poll(pollster, [*self.uuids, 'instance-00000001'])
            self.poll(pollster, [])

    def test_an_instance_that_is_not_whole_spoils_no_other(self):
        pollster = self.pollster()
        with self.assertLogs('tracon_watcher.telemetry.ceilometer', 'WARNING') as logged:
            samples = list(pollster.get_samples(None, {}, [
                instance(self.uuids[0], flavor=None), instance(self.uuids[1])]))
        self.assertEqual({self.uuids[1]}, {sample.resource_id for sample in samples})
        self.assertEqual(1, len(logged.output))
        self.assertIn(self.uuids[0], logged.output[0])

    def test_a_broken_libvirt_is_one_line_and_comes_back(self):
        pollster = self.pollster(*[replay.failure('Connection reset')] * 6,
                                 *replay.polls())
        with self.assertLogs('tracon_watcher.telemetry.ceilometer', 'INFO') as logged:
            found = [self.poll(pollster) for _cycle in range(7)]
        self.assertEqual([[]] * 6, found[:6])
        self.assertTrue(found[6])
        self.assertEqual(2, len(logged.output), logged.output)
        self.assertIn('Connection reset', logged.output[0])
        self.assertIn('answers again', logged.output[1])

    def test_after_a_failure_a_cycle_does_not_ask_again(self):
        pollster, cache = self.pollster(replay.failure('Connection reset')), {}
        for _source in range(2):
            self.assertEqual([], self.poll(pollster, cache=cache))
        self.assertEqual(1, len(self.connection.calls))

    def test_it_is_discovered_where_ceilometers_own_are(self):
        self.assertEqual('local_instances', self.pollster().default_discovery)
        self.assertEqual('local_node', ceilometer.HostPollster(configuration()).default_discovery)


class TestHost(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.pollster = ceilometer.HostPollster(configuration())
        self.pollster.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.pollster.root / 'proc').mkdir()

    def test_samples_of_a_host(self):
        moment = replay.read('host.json')['moments'][0]
        (self.pollster.root / 'proc/stat').write_text('\n'.join(moment['stat']))
        samples = list(self.pollster.get_samples(None, {}, ['compute-7']))
        self.assertEqual({meter.name for meter in meters.HOST_METERS if meter.everywhere},
                         {sample.name for sample in samples})
        for sample in samples:
            self.assertEqual(('compute-7', None, {'host': 'compute-7'}), (
                sample.resource_id, sample.project_id, sample.resource_metadata))
            self.assertEqual(meters.BY_NAME[sample.name].unit, sample.unit)

    def test_without_proc_there_is_the_clock(self):
        samples = list(self.pollster.get_samples(None, {}, ['compute-7']))
        self.assertEqual([meters.HOST_CLOCK.name], [sample.name for sample in samples])


class TestExporter(unittest.TestCase):
    """Ceilometer's own exporter for Prometheus."""

    def setUp(self):
        super().setUp()
        self.uuid = replay.uuid('reads')
        conf = configuration(enable_prometheus_exporter=True)
        self.vms, self.host = ceilometer.VMPollster(conf), ceilometer.HostPollster(conf)
        self.vms.source = libvirt.Source(lambda: replay.Connection(*replay.polls()))
        self.addCleanup(self.cycle, ())

    def cycle(self, uuids, order=('vms', 'host')):
        """Run both pollsters as the polling manager does; without VMs it doesn't ask the one."""
        from ceilometer.publisher import utils
        cache = {}
        for name in order:
            pollster = getattr(self, name)
            resources = [instance(uuid) for uuid in uuids] if name == 'vms' else ['compute-7']
            prom_exporter.purge_stale_metrics(f'tracon.{name}')
            if resources:
                prom_exporter.collect_metrics([
                    utils.meter_message_from_counter(sample, '')
                    for sample in pollster.get_samples(None, cache, resources)])

    def exported(self, meter):
        name = 'ceilometer_' + meter.name.replace('.', '_')
        return {sample.labels['resource']: sample.value
                for metric in prom_exporter.CEILOMETER_REGISTRY.collect()
                if metric.name == name for sample in metric.samples}

    def test_values_are_those_of_one_cycle_whichever_comes_first(self):
        for order in (('vms', 'host'), ('host', 'vms')):
            self.cycle([self.uuid], order)
            self.assertEqual({self.uuid}, set(self.exported(meters.CLOCK)), order)
            self.assertEqual({'compute-7'}, set(self.exported(meters.HOST_CLOCK)), order)

    def test_two_sources_with_vms_of_their_own_are_exported_together(self):
        from ceilometer.publisher import utils
        cache, other = {}, replay.uuid('several')
        for uuid in (self.uuid, other):
            prom_exporter.collect_metrics([
                utils.meter_message_from_counter(sample, '')
                for sample in self.vms.get_samples(None, cache, [instance(uuid)])])
        self.assertEqual({self.uuid, other}, set(self.exported(meters.CLOCK)))

    def test_who_has_left_is_not_exported_any_more(self):
        for order in (('vms', 'host'), ('host', 'vms')):
            self.cycle([self.uuid, replay.uuid('several')], order)
            self.assertEqual(2, len(self.exported(meters.READ_REQUESTS)))
            self.cycle([self.uuid], order)
            self.assertEqual({self.uuid}, set(self.exported(meters.READ_REQUESTS)), order)
            self.cycle([], order)
            self.assertEqual({}, self.exported(meters.READ_REQUESTS), order)
            self.assertTrue(self.exported(meters.HOST_CLOCK))
