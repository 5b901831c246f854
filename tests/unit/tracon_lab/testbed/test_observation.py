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
import math
import pathlib
import unittest

from tracon_lab.testbed import observation

RECORDED = pathlib.Path(__file__).parent / 'recorded'


def domstats(name):
    """What `virsh domstats --cpu-total --vcpu --block` printed for a guest of the testbed."""
    stats = {}
    for line in (RECORDED / name).read_text().splitlines():
        key, equals, value = line.strip().partition('=')
        if equals:
            stats[key] = int(value) if value.isdigit() else value
    return stats


class TestObserve(unittest.TestCase):

    def sample(self, when):
        return observation.sample(
            domstats('domstats-%s.txt' % when),
            observation.vcpu_seconds(100, RECORDED / ('proc-' + when)))

    def test_sample_sums_the_disks(self):
        stats = domstats('domstats-after.txt')
        self.assertEqual(stats['block.0.rd.reqs'] + stats['block.1.rd.reqs'],
                         self.sample('after').read_requests)

    def test_vcpu_time_of_the_threads_is_what_libvirt_counts_in_ticks(self):
        for when in ('before', 'after'):
            exact = self.sample(when).vcpu
            self.assertAlmostEqual(
                domstats('domstats-%s.txt' % when)['vcpu.0.time'] * 1e-9, exact, delta=0.1)

    def test_a_window(self):
        seen = observation.observe(self.sample('before'), self.sample('after'), 2.1)
        self.assertGreater(seen.operations, 0)
        self.assertAlmostEqual(
            seen.operations / 2.1,
            seen.read_requests_per_second + seen.write_requests_per_second)
        self.assertTrue(0 < seen.guest_cpu + seen.host_cpu < 1.1, seen)
        self.assertTrue(0 <= seen.vcpu_delay < 1, seen)

    def test_no_request_has_no_latency(self):
        sample = self.sample('before')
        seen = observation.observe(sample, sample, 2.0)
        self.assertTrue(math.isnan(seen.read_latency))
        self.assertTrue(math.isnan(seen.write_latency))
        self.assertEqual((0, 0, 0, 0), seen.characteristics)


class TestHost(unittest.TestCase):

    def test_ticks(self):
        seen = observation.host_sample(100, RECORDED / 'proc-before')
        self.assertEqual({0, 1}, set(seen.busy))
        self.assertGreater(seen.busy[1], 0)

    def test_exact_counters_agree_with_ticks(self):
        for when in ('before', 'after'):
            ticks = observation.host_sample(100, RECORDED / ('proc-' + when))
            exact = observation.host_sample(100, RECORDED / ('proc-' + when),
                                            RECORDED / ('usage_percpu-' + when))
            self.assertEqual(ticks.steal, exact.steal)
            for core in ticks.busy:
                self.assertLess(abs(exact.busy[core] / ticks.busy[core] - 1), 0.2)

    def test_process(self):
        fields = (RECORDED / 'proc-after/100/stat').read_text().split()
        self.assertAlmostEqual((int(fields[13]) + int(fields[14])) / 100,
                               observation.process_seconds(100, 100, RECORDED / 'proc-after'))
