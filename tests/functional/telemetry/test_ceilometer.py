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

"""Ceilometer's agents as they are, over real guests: entry points, files, discovery, pipeline."""

import json
import os
import pathlib
import signal
import tempfile
import time
import unittest
import uuid

import psutil

from tests.functional.telemetry import guests
from tracon_watcher.telemetry import meters

FILES = pathlib.Path(__file__).parents[3] / 'etc/ceilometer'
CONFIGURATION = '''
[DEFAULT]
host = compute-7
libvirt_type = qemu
transport_url = fake://
pipeline_cfg_file = {folder}/pipeline.yaml
[compute]
instance_discovery_method = libvirt_metadata
[polling]
cfg_file = {polling}
'''


def configuration(folder):
    """Return Ceilometer's configuration; samples go to files instead of Gnocchi."""
    from ceilometer import keystone_client
    from ceilometer import opts
    from oslo_config import cfg
    text = (FILES / 'pipeline.yaml').read_text()
    for target, name in (('gnocchi://?resources_definition_file=tracon_gnocchi_resources.yaml',
                          'ours'), ('gnocchi://', 'others')):
        assert target in text
        text = text.replace(target, f'file://{folder}/{name}?json=1')
    (folder / 'pipeline.yaml').write_text(text)
    (folder / 'ceilometer.conf').write_text(CONFIGURATION.format(
        folder=folder, polling=FILES / 'polling.yaml'))
    conf = cfg.ConfigOpts()
    for group, options in opts.list_opts():
        conf.register_opts(list(options), group=None if group == 'DEFAULT' else group)
    keystone_client.register_keystoneauth_opts(conf)
    conf(['--config-file', str(folder / 'ceilometer.conf')], project='ceilometer')
    keystone_client.post_register_keystoneauth_opts(conf)
    return conf


class Notifier:
    """In the place of the message bus: what polling sends is given to the notification agent."""

    def __init__(self, conf):
        from ceilometer.pipeline import sample
        from ceilometer.telemetry import notifications
        self.sizes = []
        self._endpoint = notifications.TelemetryIpc(
            conf, sample.SamplePipelineManager(conf).publisher())

    def sample(self, _context, event_type, payload):
        assert event_type == 'telemetry.polling'
        self.sizes.append(len(payload['samples']))
        message = json.loads(json.dumps({'payload': payload}))
        self._endpoint.process_notifications('sample', [message])


class Agents:
    """ceilometer-polling and ceilometer-agent-notification, cycle by cycle."""

    def __init__(self, folder):
        from ceilometer.polling import manager
        conf = configuration(folder)
        self._folder = folder
        self.manager = manager.AgentManager(0, conf, namespaces=['compute'])
        self.manager.notifier = self.notifier = Notifier(conf)
        self.manager.polling_manager = manager.PollingManager(conf)
        self.tasks = self.manager.setup_polling_tasks()

    def pollster(self, name):
        return next(one.obj for one in self.manager.extensions if one.name == name)

    def cycle(self):
        """Poll once; return the values that were published, by resource and meter."""
        for name in ('ours', 'others'):
            path = self._folder / name
            if path.exists():
                os.truncate(path, 0)
        self.manager.interval_task(self.tasks[60])
        return self.published('ours')

    def samples(self, name='ours'):
        return [json.loads(line) for line in (self._folder / name).read_text().splitlines()]

    def published(self, name):
        found = {}
        for sample in self.samples(name):
            assert sample['name'] not in found.setdefault(sample['resource_id'], {})
            found[sample['resource_id']][sample['name']] = sample['volume']
        return found


class TestAgents(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        reason = guests.reason_to_skip()
        if reason:
            raise unittest.SkipTest(reason)
        cls.running = guests.Guests().__enter__()
        cls.addClassCleanup(cls.running.__exit__)
        cls.busy, cls.idle, cls.foreign = (cls.running.boot() for _number in range(3))
        cls.busy.run(cpu_seconds=0.004, reads=2, writes=1, period=20_000)
        cls.project, cls.image = uuid.uuid4().hex, str(uuid.uuid4())
        for guest in (cls.busy, cls.idle):
            guests.describe(guest, 'a name', 'm1.tiny', cls.project, uuid.uuid4().hex, cls.image,
                            {'tracon:max_slowdown': '2.0'})

    def setUp(self):
        super().setUp()
        self.agents = Agents(pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())))

    def test_what_arrives_and_what_rates_it_gives(self):
        before = self.agents.cycle()
        time.sleep(4)
        after = self.agents.cycle()
        everywhere = {meter.name for meter in meters.VM_METERS if meter.everywhere}
        # The third guest is none of Nova's.
        self.assertEqual({self.busy.uuid, self.idle.uuid, 'compute-7'}, set(after))
        for guest in (self.busy, self.idle):
            # Control groups can be read where guests can be run.
            self.assertEqual(everywhere | {meters.CPU_THROTTLED.name}, set(after[guest.uuid]))
        self.assertLessEqual({meter.name for meter in meters.HOST_METERS if meter.everywhere},
                             set(after['compute-7']))

        def rate(resource, meter):
            passed = after[resource][meters.CLOCK.name] - before[resource][meters.CLOCK.name]
            return (after[resource][meter.name] - before[resource][meter.name]) / passed
        self.assertAlmostEqual(
            100, rate(self.busy.uuid, meters.READ_REQUESTS) * 1e9, delta=60)
        self.assertGreater(rate(self.busy.uuid, meters.WRITE_TIME), 0)
        self.assertTrue(0.02 < rate(self.busy.uuid, meters.CPU_GUEST) < 1.05)
        self.assertEqual(0, rate(self.idle.uuid, meters.READ_REQUESTS))
        self.assertLess(rate(self.idle.uuid, meters.CPU_GUEST), 0.2)

    def test_what_a_host_counts_is_what_its_kernel_says(self):
        # Which sum they make, is no business of ours: of a CPU that sleeps a kernel takes the
        # time, of one that works it counts the ticks at which it did.
        def counted():
            times = psutil.cpu_times()
            return {meters.HOST_CLOCK: time.monotonic(), meters.HOST_IDLE: times.idle,
                    meters.HOST_IOWAIT: times.iowait, meters.HOST_STEAL: times.steal,
                    meters.HOST_BUSY: times.user + times.nice + times.system + times.irq
                    + times.softirq}
        before = counted()
        found = self.agents.cycle()['compute-7']
        after = counted()
        for meter in before:
            # What it calls idle or waiting may fall by a little.
            self.assertGreaterEqual(1e-9 * found[meter.name], before[meter] - 0.1, meter.name)
            self.assertLessEqual(1e-9 * found[meter.name], after[meter] + 0.1, meter.name)
        self.assertGreater(before[meters.HOST_BUSY], 1.0)

    def test_samples_carry_one_time_a_vm_and_what_gnocchi_wants(self):
        from ceilometer import declarative
        from ceilometer.publisher import gnocchi
        self.agents.cycle()
        samples = self.agents.samples()
        self.assertEqual(1, len({sample['timestamp'] for sample in samples
                                 if sample['resource_id'] == self.busy.uuid}))
        sample = next(one for one in samples if one['resource_id'] == self.busy.uuid)
        self.assertEqual(self.project, sample['project_id'])
        definitions, _policies = gnocchi.GnocchiPublisher._load_definitions(
            None, None, str(FILES / 'tracon_gnocchi_resources.yaml'))
        self.assertEqual('instance', definitions[0].cfg['resource_type'])
        attributes = {name: declarative.Definition(name, path, None).parse(sample)
                      for name, path in definitions[0].cfg['attributes'].items()}
        self.assertEqual(
            {'host': 'compute-7', 'display_name': 'a name', 'flavor_name': 'm1.tiny',
             'flavor_id': '42', 'image_ref': self.image},
            {name: value for name, value in attributes.items() if value is not None})

    def test_vms_are_sent_whole(self):
        self.agents.cycle()
        # 11 meters of each of two VMs in one message, what there is of the host in another
        self.assertEqual([22], [size for size in self.agents.notifier.sizes if size > 9])

    def test_a_guest_that_hangs_costs_one_cycle(self):
        self.agents.cycle()
        source = self.agents.pollster('tracon.vm').source
        source._patience = 2.0
        os.kill(self.idle.pid, signal.SIGSTOP)
        try:
            hanging = self.agents.cycle()
            after = self.agents.cycle()
        finally:
            os.kill(self.idle.pid, signal.SIGCONT)
        self.assertEqual({'compute-7'}, set(hanging))
        # Its monitor is held by the call that was given up, and is not waited for.
        self.assertEqual({'compute-7', self.busy.uuid}, set(after))
        deadline = time.monotonic() + 30
        while self.idle.uuid not in self.agents.cycle():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.5)

    def test_a_guest_that_is_paused_and_one_that_has_gone(self):
        short = self.running.boot(disks=1)
        guests.describe(short, 'short', 'm1.tiny', self.project, uuid.uuid4().hex, self.image)
        first = self.agents.cycle()
        self.assertIn(short.uuid, first)
        short.domain.suspend()
        time.sleep(1)
        paused = self.agents.cycle()[short.uuid]
        self.assertGreater(paused[meters.CLOCK.name], first[short.uuid][meters.CLOCK.name])
        self.assertEqual(first[short.uuid][meters.READ_REQUESTS.name],
                         paused[meters.READ_REQUESTS.name])
        short.domain.destroy()
        self.assertEqual({self.busy.uuid, self.idle.uuid, 'compute-7'},
                         set(self.agents.cycle()))

    def test_libvirt_is_killed_and_comes_back(self):
        # Discovery needs libvirt as well: without it the pollster would not even be asked.
        instances = self.agents.manager.discover(['local_instances'])
        pollster = self.agents.pollster('tracon.vm')

        def poll():
            return {(sample.resource_id, sample.name): sample.volume
                    for sample in pollster.get_samples(self.agents.manager, {}, instances)}
        before = poll()
        self.assertIn((self.busy.uuid, meters.READ_REQUESTS.name), before)
        if not self.running.kill_daemon():
            self.skipTest('libvirtd runs here, and is not for a test to kill')
        try:
            with self.assertLogs('tracon_watcher.telemetry.ceilometer', 'INFO') as logged:
                for _cycle in range(3):
                    self.assertEqual({}, poll())
                self.running.start_daemons()
                after = poll()
            deadline = time.monotonic() + 30
            while set(after) != set(before):    # the new daemon is still busy with the guests
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.2)
                after = poll()
        finally:
            self.running.start_daemons()
        self.assertEqual(2, len(logged.output), logged.output)
        self.assertIn('Failed to connect', logged.output[0])
        self.assertIn('answers again', logged.output[1])
        for key, value in after.items():
            self.assertGreaterEqual(value, before[key], key)

    def test_as_the_lab_counts(self):
        from tracon_lab.testbed import observation
        from tracon_watcher.telemetry import libvirt
        source = self.agents.pollster('tracon.vm').source

        def theirs():
            stats = self.busy.domain.connect().domainListGetStats(
                [self.busy.domain], libvirt.GROUPS)[0][1]
            return observation.sample(stats, observation.vcpu_seconds(self.busy.pid))
        first, own = theirs(), source.poll()[self.busy.uuid]
        begin = time.monotonic()
        time.sleep(4)
        last, own_last = theirs(), source.poll()[self.busy.uuid]
        seen = observation.observe(first, last, time.monotonic() - begin)
        passed = own_last[meters.CLOCK.name] - own[meters.CLOCK.name]
        for meter, expected, scale, delta in (
                (meters.READ_REQUESTS, seen.read_requests_per_second, 1e9, 8),
                (meters.WRITE_REQUESTS, seen.write_requests_per_second, 1e9, 5),
                (meters.CPU_GUEST, seen.guest_cpu, 1, 0.05),
                (meters.CPU_HOST, seen.host_cpu, 1, 0.05),
                (meters.CPU_DELAY, seen.vcpu_delay, 1, 0.1)):
            rate = (own_last[meter.name] - own[meter.name]) / passed * scale
            self.assertAlmostEqual(expected, rate, delta=delta, msg=meter.name)
