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

import unittest

import numpy as np

from tracon_lab.profiling import console
from tracon_lab.profiling import sampling
from tracon_watcher.engine import collector
from tracon_watcher.telemetry import samples

METERS = tuple(one.name for one in collector.METERS)


class Reader:
    """Samples every ten seconds of a VM that begins to read at 100; synthetic."""

    resolution = 10.0

    def __init__(self, missing=(), gap=()):
        self.missing, self.gap = missing, gap

    def read(self, since, until, meters):
        at = np.array([t for t in np.arange(0.0, 200.0, 10.0)
                       if since <= t < until and t not in self.gap])
        taken = at + 4
        reads = np.maximum(taken - 100, 0) * 50
        running = taken * 0.5
        values = np.column_stack([taken * 1e9, running * 1e9, 0.1 * running * 1e9, taken * 0.2e9,
                                  reads, 0 * reads, reads * 2e6, 0 * reads])
        values[np.isin(at, self.missing), 3] = np.nan
        return samples.Readings(('other', 'vm'), tuple(meters), np.ones(len(at), dtype=np.intp),
                                at, values)


class TestSampling(unittest.TestCase):

    def seen(self, begin, end, reader=None, **more):
        sampler = sampling.Sampler(reader or Reader(), 10.0, **more)
        return sampler.read(0.0, 300.0).seen('vm', begin, end)

    def test_what_was_seen(self):
        found = self.seen(110.0, 150.0)
        self.assertEqual(3, found.intervals)
        np.testing.assert_allclose([50.0, 0.0, 0.5, 0.2], found.observation.characteristics)
        self.assertAlmostEqual(0.05, found.observation.vcpu_delay)
        self.assertAlmostEqual(0.002, found.observation.read_latency)
        self.assertTrue(np.isnan(found.observation.write_latency))
        self.assertEqual(1500, found.observation.operations)

    def test_a_sample_counts_that_was_surely_taken_within(self):
        # The bucket of 100 might be from before, that of 140 from after.
        self.assertEqual(2, self.seen(103.3, 140.0).intervals)
        # Samples of an exporter are older than they seem, and never younger.
        self.assertEqual(2, self.seen(113.3, 150.0, before=10.0, after=0.0).intervals)

    def test_nothing_is_not_zero(self):
        self.assertIsNone(self.seen(103.0, 120.0))
        self.assertIsNone(self.seen(500.0, 900.0))
        samples = sampling.Sampler(Reader(), 10.0).read(0.0, 50.0)
        self.assertIsNone(samples.seen('missing', 0.0, 50.0))
        self.assertEqual((0, 5), (samples.count('missing'), samples.count('vm')))

    def test_half_a_sample_is_none(self):
        found = self.seen(110.0, 150.0, Reader(missing=(120.0,)))
        self.assertEqual(2, found.intervals)
        np.testing.assert_allclose(50.0, found.observation.read_requests_per_second)

    def test_what_the_vm_itself_says_has_to_agree(self):
        seen = self.seen(110.0, 150.0)
        for reads, right in ((1500, True), (1300, True), (0, False), (3000, False)):
            report = console.Report(110.0, 30.0, 10, 20.0, reads, 0)
            self.assertEqual(right, not seen.objections(report), reads)
        report = console.Report(110.0, 30.0, 10, 20.0, 1500, 900)
        self.assertRegex(' '.join(seen.objections(report)),
                         'the VM did 30 writes a second, telemetry has 0')
