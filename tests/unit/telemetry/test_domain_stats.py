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

import re
import unittest

from tests.unit.telemetry import replay
from tracon_lab.testbed import observation
from tracon_watcher.telemetry import domain_stats
from tracon_watcher.telemetry import meters

GUESTS = ('several', 'reads', 'paused')


def listed(key):
    """Return whether a field that libvirt reports is one of those that may be read."""
    return re.sub(r'\.\d+\.', '.N.', key) in domain_stats.FIELDS


class Watched(dict):
    """A record that knows what was read of it."""

    def __init__(self, *given):
        super().__init__(*given)
        self.asked = set()

    def get(self, key, default=None):
        self.asked.add(key)
        return super().get(key, default)

    def __getitem__(self, key):
        self.asked.add(key)
        return super().__getitem__(key)

    def __contains__(self, key):
        self.asked.add(key)
        return super().__contains__(key)


class TestCounters(unittest.TestCase):

    def test_recorded_domains_have_all_that_is_everywhere(self):
        everywhere = {meter.name for meter in meters.VM_METERS if meter.everywhere}
        for name in GUESTS:
            found = domain_stats.counters(replay.stats(name))
            # The clock is that of the call, and this host counts no perf events.
            self.assertEqual(everywhere - {meters.CLOCK.name}, set(found), name)
            self.assertTrue(all(isinstance(value, int) and value >= 0
                                for value in found.values()), found)

    def test_as_the_lab_counts(self):
        for name in GUESTS:
            stats = replay.stats(name)
            found, theirs = domain_stats.counters(stats), observation.sample(stats)
            for meter, value in (
                    (meters.READ_REQUESTS, theirs.read_requests),
                    (meters.WRITE_REQUESTS, theirs.write_requests),
                    (meters.READ_TIME, theirs.read_time * 1e9),
                    (meters.WRITE_TIME, theirs.write_time * 1e9),
                    (meters.CPU_GUEST, theirs.vcpu * 1e9),
                    (meters.CPU_HOST, (theirs.cpu - theirs.vcpu) * 1e9),
                    (meters.CPU_DELAY, theirs.vcpu_delay * 1e9)):
                self.assertAlmostEqual(value, found[meter.name], delta=2, msg=meter.name)

    def test_sums_over_virtual_cpus_and_disks(self):
        stats = replay.stats('several')
        self.assertEqual((2, 4, 3),
                         tuple(stats[key] for key in ('vcpu.current', 'vcpu.maximum',
                                                      'block.count')))
        found = domain_stats.counters(stats)
        self.assertEqual(stats['vcpu.0.time'] + stats['vcpu.1.time'],
                         found[meters.CPU_GUEST.name])
        self.assertEqual(stats['block.0.rd.reqs'] + stats['block.1.rd.reqs']
                         + stats['block.2.rd.reqs'], found[meters.READ_REQUESTS.name])
        self.assertEqual(stats['cpu.time'] - found[meters.CPU_GUEST.name],
                         found[meters.CPU_HOST.name])

    def test_a_hole_in_the_numbers_of_virtual_cpus(self):
        stats = replay.stats('several')
        expected = domain_stats.counters(stats)
        for field in ('state', 'time', 'wait', 'delay'):
            stats[f'vcpu.3.{field}'] = stats.pop(f'vcpu.1.{field}')
        self.assertEqual(expected, domain_stats.counters(stats))

    def test_a_missing_part_makes_the_sum_unknown_and_nothing_else(self):
        whole = domain_stats.counters(replay.stats('several'))
        for key, gone in (
                ('vcpu.1.time', {meters.CPU_GUEST, meters.CPU_HOST}),
                ('vcpu.0.delay', {meters.CPU_DELAY}), ('cpu.time', {meters.CPU_HOST}),
                ('block.1.rd.reqs', {meters.READ_REQUESTS}),
                ('block.2.wr.times', {meters.WRITE_TIME}),
                ('vcpu.current', {meters.CPU_GUEST, meters.CPU_HOST, meters.CPU_DELAY}),
                ('block.count', {meters.READ_REQUESTS, meters.WRITE_REQUESTS,
                                 meters.READ_TIME, meters.WRITE_TIME, meters.READ_BYTES,
                                 meters.WRITE_BYTES})):
            stats = replay.stats('several')
            del stats[key]
            found = domain_stats.counters(stats)
            names = {meter.name for meter in gone}
            self.assertEqual({name: value for name, value in whole.items() if name not in names},
                             found, key)

    def test_a_vm_without_disks_has_made_no_requests(self):
        stats = {key: value for key, value in replay.stats('reads').items()
                 if not key.startswith('block.')}
        found = domain_stats.counters({**stats, 'block.count': 0})
        self.assertEqual(0, found[meters.READ_REQUESTS.name])
        self.assertNotIn(meters.READ_REQUESTS.name, domain_stats.counters(stats))

    def test_perf_events_where_there_are(self):
        stats = {**replay.stats('reads'), 'perf.instructions': 7, 'perf.cpu_cycles': 9}
        found = domain_stats.counters(stats)
        self.assertEqual((7, 9), (found[meters.INSTRUCTIONS.name], found[meters.CYCLES.name]))
        self.assertNotIn(meters.CACHE_MISSES.name, found)

    def test_an_empty_record(self):
        self.assertEqual({}, domain_stats.counters({}))

    def test_nothing_is_read_beside_the_list(self):
        for poll in (0, 1, 'occupied'):
            stats = Watched(replay.stats('several', poll))
            domain_stats.Domains().counted([('a', 1, stats)])
            self.assertTrue(stats.asked)
            self.assertEqual([], [key for key in stats.asked if not listed(key)])
        self.assertFalse(listed('block.0.path'))
        self.assertTrue(listed('block.12.rd.reqs'))


class TestDomains(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.domains = domain_stats.Domains()

    def poll(self, stats, clock=5):
        return self.domains.counted([('a', clock, stats)]).get('a')

    def test_a_record_has_its_clock(self):
        self.assertEqual(77, self.poll(replay.stats('reads'), 77)[meters.CLOCK.name])

    def test_throttled_time_comes_with_the_delay_it_is_part_of(self):
        stats = replay.stats('reads')
        found = self.domains.counted([('a', 1, stats), ('b', 1, stats)], {'a': 7})
        self.assertEqual(7, found['a'][meters.CPU_THROTTLED.name])
        self.assertNotIn(meters.CPU_THROTTLED.name, found['b'])
        without = {name: value for name, value in stats.items() if 'delay' not in name}
        found = self.domains.counted([('a', 1, without)], {'a': 7})
        self.assertNotIn(meters.CPU_THROTTLED.name, found['a'])

    def test_counters_rise_from_poll_to_poll(self):
        first, second = (self.poll(replay.stats('several', poll)) for poll in (0, 1))
        for name in first:
            self.assertGreaterEqual(second[name], first[name], name)
        self.assertGreater(second[meters.READ_REQUESTS.name], first[meters.READ_REQUESTS.name])

    def test_a_paused_vm_is_reported_as_it_is(self):
        first, second = (self.poll(replay.stats('paused', poll)) for poll in (0, 1))
        # QEMU itself does a little, and ticks that were begun are counted.
        for name in first:
            self.assertLess(second[name] - first[name], 50_000_000, name)
        self.assertEqual(first[meters.READ_REQUESTS.name], second[meters.READ_REQUESTS.name])

    def test_a_vm_that_migrates_is_reported_by_the_host_it_runs_on(self):
        stats = replay.stats('reads')
        for reason in (2, 11, 12, 13):
            self.assertIsNone(self.poll({**stats, 'state.state': 3, 'state.reason': reason}))
        for state, reason in ((3, 1), (3, 5), (1, 2), (1, 12)):
            self.assertIsNotNone(
                self.poll({**stats, 'state.state': state, 'state.reason': reason}))

    def test_a_vm_that_ends_during_the_call_is_not_there(self):
        off = replay.read()['off']
        self.assertEqual(5, off['state.state'])
        self.assertIn('cpu.time', off)
        self.assertIsNone(self.poll(off))
        self.assertIsNone(self.poll({**replay.stats('reads'), 'state.state': 6}))

    def test_host_cpu_does_not_fall_by_the_ticks_of_the_sum(self):
        stats = {'cpu.time': 1_000_000_000, 'vcpu.current': 1, 'vcpu.maximum': 1,
                 'vcpu.0.time': 990_000_000, 'block.count': 0}
        seen = [self.poll({**stats, 'cpu.time': cpu, 'vcpu.0.time': vcpu})[meters.CPU_HOST.name]
                for cpu, vcpu in ((1_000_000_000, 990_000_000), (1_010_000_000, 1_005_000_000),
                                  (1_060_000_000, 1_040_000_000))]
        self.assertEqual([10_000_000, 10_000_000, 20_000_000], seen)

    def test_host_cpu_starts_from_zero_with_the_process(self):
        stats = {'cpu.time': 9_000_000_000, 'vcpu.current': 1, 'vcpu.maximum': 1,
                 'vcpu.0.time': 4_000_000_000, 'block.count': 0}
        self.poll(stats)
        found = self.poll({**stats, 'cpu.time': 80_000_000, 'vcpu.0.time': 50_000_000})
        self.assertEqual(30_000_000, found[meters.CPU_HOST.name])

    def test_an_occupied_monitor_leaves_out_the_whole_vm(self):
        self.assertIsNotNone(self.poll(replay.stats('reads', 1)))
        occupied = replay.stats('reads', 'occupied')
        self.assertIn('vcpu.0.time', occupied)
        self.assertNotIn('block.0.rd.reqs', occupied)
        for _poll in range(3):
            self.assertIsNone(self.poll(occupied))
        again = self.poll(replay.stats('reads', 1))
        self.assertIn(meters.READ_REQUESTS.name, again)

    def test_a_vm_whose_disks_never_answer_is_reported_without(self):
        found = self.poll(replay.stats('reads', 'occupied'))
        self.assertIn(meters.CPU_GUEST.name, found)
        self.assertNotIn(meters.READ_REQUESTS.name, found)

    def test_who_has_gone_is_forgotten(self):
        self.poll(replay.stats('reads', 1))
        self.assertEqual({}, self.domains.counted([]))
        self.assertIsNotNone(self.poll(replay.stats('reads', 'occupied')))

    def test_a_record_of_nothing_is_none(self):
        self.assertIsNone(self.poll({'state.state': 1, 'state.reason': 1}))
