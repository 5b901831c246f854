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

"""A measurement from beginning to end, in a synthetic cloud."""

from unittest import mock

import numpy as np

from tests.unit import folder
from tests.unit.tracon_lab.profiling import synthetic
from tracon_lab.models import dataset
from tracon_lab.models import naming
from tracon_lab.profiling import errors
from tracon_lab.profiling import record
from tracon_lab.profiling import run
from tracon_lab.profiling import sampling
from tracon_lab.profiling import schedule
from tracon_lab.profiling import site
from tracon_lab.testbed import interruption

HEADER = {'schema': dataset.SCHEMA, 'host_type': 'synthetic', 'seed': '1', 'plan': 'cloud',
          'accelerator': 'none', 'guests': 'synthetic'}


def busy(setting):
    """Return the share of its time that a setting of the generator is busy alone."""
    cpu, reads, writes = naming.setting(str(setting))
    return cpu / 100 + reads / synthetic.READS + writes / synthetic.WRITES


class RunTestCase(folder.OwnFolderCase):

    def setUp(self):
        super().setUp()
        self.path = self.folder / 'synthetic.csv'
        self.cloud = synthetic.Cloud()
        self.lines = []

    def measure(self, points, limit_seconds=None):
        cloud = self.cloud
        timing = schedule.Timing(synthetic.POLLING)
        with site.Site(cloud, 'cmp1', site.Size(), synthetic.built(self.folder),
                       clock=cloud.clock, sleep=cloud.sleep) as made:
            journal = record.Journal(self.path, timing.length - timing.settle, cloud.clock)
            worker = run.Run(made, sampling.Sampler(cloud, synthetic.POLLING), journal, timing,
                             self.lines.append, cloud.clock, cloud.sleep)
            speed = journal.speed or worker.calibrate()
            journal.begin(HEADER, speed)
            return worker.work(speed, points, limit_seconds)

    def assert_nothing_is_left(self):
        self.assertEqual({}, self.cloud.servers)
        self.assertEqual({}, self.cloud.images)
        self.assertEqual({'small'}, set(self.cloud.flavors))


class TestRun(RunTestCase):

    def test_what_is_measured_is_the_law(self):
        self.assertTrue(self.measure(4))
        found = dataset.read(self.path)
        kind, background = found.text['kind'], found.text['background']
        self.assertEqual({'solo': 8, 'background': 4, 'reverse': 4},
                         {one: int((kind == one).sum()) for one in sorted(set(kind))})
        # Rows tell when windows began, not when telemetry had come.
        at = sorted(set(map(float, found.text['started_at'])))
        np.testing.assert_allclose(np.diff(at), 40.0)
        # What is beside a named program is the generator, which may have time to spare; what is
        # beside the generator is a closed loop, but for the last.
        closed = (kind == 'reverse') & (background != 'openread')
        self.assertTrue(closed.any())
        np.testing.assert_allclose(found.numbers['slowdown'][closed], 2.0, rtol=0.02)
        paced = kind == 'background'
        for slowdown, beside in zip(found.numbers['slowdown'][paced], background[paced]):
            self.assertAlmostEqual(1 + min(1.0, busy(beside)), slowdown, delta=0.03)
        ratios = found.numbers['iops_ratio'][closed]
        for ratio, target in zip(ratios, found.text['target'][closed]):
            if np.isfinite(ratio):
                self.assertAlmostEqual(
                    max(1.0, busy(target)) / max(1.0, 2 * busy(target)), ratio, delta=0.03)
        reads = found.numbers['target_alone_read_requests_per_second']
        alone = (found.text['target'] == 'randread') & (kind == 'background')
        np.testing.assert_allclose(reads[alone], synthetic.READS, rtol=0.01)
        self.assert_nothing_is_left()

    def test_windows_without_samples_are_taken_again(self):
        self.cloud.lost = {2, 4}
        self.assertTrue(self.measure(3))
        self.assertEqual(2, self.cloud.rounds)
        self.assertIn('no two samples', self.path.with_suffix('.journal').read_text())
        found = dataset.read(self.path)
        self.assertEqual(3, int((found.text['kind'] == 'background').sum()))
        self.assertNotIn('given_up', found.header)

    def test_a_point_waits_for_its_programs_alone(self):
        # The first window is the target alone; without it the third says nothing yet.
        self.cloud.lost = {0}
        self.assertTrue(self.measure(1))
        found = dataset.read(self.path)
        self.assertEqual(['solo', 'solo', 'background', 'reverse'], list(found.text['kind']))

    def test_a_run_goes_on_where_it_was_cut_short(self):
        self.assertFalse(self.measure(6, limit_seconds=450))
        first = dataset.read(self.path)
        self.assertIn('out of time', ' '.join(self.lines))
        booted = len(self.cloud.guests)
        self.assertTrue(self.measure(6))
        found = dataset.read(self.path)
        self.assertEqual(6, int((found.text['kind'] == 'background').sum()))
        self.assertGreater(int((first.text['kind'] == 'background').sum()), 0)
        # Nothing was calibrated or measured alone again.
        self.assertEqual(2, len(self.cloud.guests) - booted)
        alone = found.text['point'][found.text['kind'] == 'solo']
        self.assertEqual(len(alone), len(set(alone)))
        # What there is already is not even asked of the cloud.
        asked = len(self.cloud.guests)
        self.assertTrue(self.measure(6))
        self.assertEqual(asked, len(self.cloud.guests))

    def test_another_flavor_is_another_measurement(self):
        self.assertTrue(self.measure(1))
        with mock.patch.dict(HEADER, guests='larger'):
            with self.assertRaisesRegex(errors.TraconError, 'guests synthetic, not larger'):
                self.measure(2)

    def test_somebody_else_comes(self):
        tenant = {'id': 'x', 'name': 'db', 'tenant_id': 'theirs', 'metadata': {},
                  'OS-EXT-SRV-ATTR:host': 'cmp1'}
        sleep = self.cloud.sleep

        def later(seconds):
            sleep(seconds)
            if self.cloud.now > 1_000_400:
                self.cloud.servers['x'] = tenant
        self.cloud.sleep = later
        with self.assertRaisesRegex(errors.HostNotEmpty, r'host cmp1 has 1 other VMs: db \(x\)'):
            self.measure(6)
        # It was not touched, and what was measured before is kept.
        self.assertEqual({'x'}, set(self.cloud.servers))
        self.assertTrue(dataset.read(self.path).text['kind'].size)

    def test_an_interruption_removes_everything(self):
        sleep = self.cloud.sleep

        def interrupt(seconds):
            sleep(seconds)
            if self.cloud.now > 1_000_300:
                self.assertTrue(self.cloud.servers)
                interruption.signals.requested = True
        self.cloud.sleep = interrupt
        self.addCleanup(setattr, interruption.signals, 'requested', False)
        with self.assertRaises(KeyboardInterrupt):
            self.measure(6)
        self.assert_nothing_is_left()

    def test_what_does_not_work_is_said_at_once(self):
        for fault, kind, text in (
                ({'mute': True}, errors.GuestSilent, 'empty console after 9'),
                ({'clock_off': 3600.0}, errors.ClocksApart, 'clock of a VM on cmp1 showed'),
                ({'unpolled': True}, errors.NoSamples, 'VM vm-0 on cmp1 has run for .*no two'),
                ({'faults': ['No valid host was found.']}, errors.CloudRefused,
                 'target VM on cmp1 is ERROR: No valid host was found.')):
            with self.subTest(fault):
                self.cloud = synthetic.Cloud()
                vars(self.cloud).update(fault)
                with self.assertRaisesRegex(kind, text):
                    self.measure(1)
                self.assert_nothing_is_left()

    def test_a_point_that_never_comes_out_is_given_up(self):
        self.cloud.lost, self.cloud.lost_later = {2}, {0}
        self.assertFalse(self.measure(2))
        self.assertEqual(3, self.cloud.rounds)
        found = dataset.read(self.path)
        self.assertRegex(found.header['given_up'], '1: background/seqread/gen-')
        self.assertEqual(1, int((found.text['kind'] == 'background').sum()))
        self.assert_nothing_is_left()

    def test_it_ends_when_nothing_comes_out_any_more(self):
        self.cloud.lost = set(range(1, 100))
        with self.assertRaisesRegex(errors.ProfilingError, '8 windows one after the other.*'
                                                           'no two samples'):
            self.measure(12)
        self.assertEqual(1, len(dataset.read(self.path).text['kind']))
        self.assert_nothing_is_left()

    def test_time_is_told(self):
        self.assertEqual('59 s', run.duration(59.4))
        self.assertEqual('3 min', run.duration(185))
        self.assertEqual('2 h 05 min', run.duration(7500))
        self.measure(1)
        self.assertRegex(self.lines[0], '3 windows of 40 s for 1 of 1 points: until .* from now')
        self.assertRegex(self.lines[-1], '3/3 windows, 0 given up, 4 rows in the file, 0 s left')
