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

"""States of a sensor, and the document of baselines."""

import json
import math
import pathlib
import tempfile
import unittest

import numpy as np

from tracon_watcher import errors
from tracon_watcher.probe import detection
from tracon_watcher.probe import phases
from tracon_watcher.probe import readings

SETTING = phases.Setting(1.0, 25.0, 5_000_000)


def reading(mean, half=0.001, at=0.0):
    """Return a reading of the memory phase."""
    return readings.Reading('memory', SETTING, at, mean, half, (), 25)


def quiet(count=10, seed=1):
    """Return readings of an undisturbed sensor, half a second with 1 % deviation (synthetic)."""
    random = np.random.default_rng(seed)
    return [reading(one, at=float(index))
            for index, one in enumerate(random.normal(0.5, 0.005, count))]


FLAGGED, CALM = detection.RelativeReading(1.5, 1.3, 1.7), detection.RelativeReading(1.0, 0.9, 1.1)


class DetectorTest(unittest.TestCase):

    def states(self, *sequence):
        one = detection.Detector()
        return [(one.update(
            item) if isinstance(item, detection.RelativeReading) else one.lose(item)).value[0]
            for item in sequence]

    def test_two_in_a_row(self):
        self.assertEqual(list('uqqqqcccq'), self.states(
            CALM, CALM, FLAGGED, CALM, FLAGGED, FLAGGED, FLAGGED, CALM, CALM))

    def test_single_bursts_are_nothing(self):
        self.assertEqual({'q'}, set(self.states(CALM, *[CALM, CALM, FLAGGED] * 5)[1:]))

    def test_silence_is_not_quiet(self):
        self.assertEqual(list('uquuq'), self.states(CALM, CALM, 'late', CALM, CALM))
        self.assertEqual(list('ucuuc'), self.states(FLAGGED, FLAGGED, 'late', FLAGGED, FLAGGED))

    def test_a_reason(self):
        one = detection.Detector()
        self.assertIn('no reading', one.reason)
        one.update(CALM)
        self.assertIn('two are needed', one.reason)
        one.update(CALM)
        self.assertEqual('', one.reason)
        one.lose('late: no answer')
        self.assertEqual(('late: no answer', None), (one.reason, one.felt))


class CompareTest(unittest.TestCase):

    def setUp(self):
        self.baseline = detection.learn('small', quiet())

    def test_a_ratio_with_an_interval(self):
        felt = detection.compare(reading(0.75, 0.01), self.baseline)
        self.assertAlmostEqual(1.5, felt.ratio, delta=0.02)
        self.assertLess(felt.low, felt.ratio)
        self.assertGreater(felt.high, felt.ratio)
        self.assertTrue(felt.flagged)

    def test_intervals_that_touch_overlap(self):
        edge = self.baseline.mean + self.baseline.reach
        self.assertFalse(detection.compare(reading(edge + 0.0999, 0.1), self.baseline).flagged)
        self.assertTrue(detection.compare(reading(edge + 0.1001, 0.1), self.baseline).flagged)

    def test_a_faster_host_is_another_type(self):
        with self.assertRaisesRegex(readings.NoReading, 'another type'):
            detection.compare(reading(0.3), self.baseline)
        # A little faster is no fault.
        self.assertFalse(detection.compare(reading(0.48), self.baseline).flagged)

    def test_one_value_has_no_interval_of_its_own(self):
        self.assertTrue(detection.compare(reading(0.75, math.nan), self.baseline).flagged)


class BaselineTest(unittest.TestCase):

    def test_of_a_hundred_quiet_readings_five_are_flagged_and_no_more(self):
        # Whatever number of readings made the baseline; with the interval of its mean most were.
        for count in (5, 100):
            flagged = alarms = total = 0
            for seed in range(200):
                base = detection.learn('small', quiet(count, seed))
                for one in quiet(10, 1000 + seed):
                    total += 1
                    flagged += one.mean > base.mean + base.reach
                    alarms += one.mean > base.mean + base.half
            self.assertAlmostEqual(0.025, flagged / total, delta=0.012)
            self.assertGreater(alarms / total, 0.15)

    def test_too_few_readings(self):
        with self.assertRaises(errors.NotEnoughData):
            detection.learn('small', quiet(4))

    def test_it_is_stored(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'baselines.json'
            one = detection.learn('small', quiet())
            detection.save({('small', 'memory'): one}, path)
            self.assertEqual({('small', 'memory'): one}, detection.load(path))

    def test_what_is_no_document_is_refused_by_field(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'baselines.json'
            with self.assertRaisesRegex(errors.InvalidDocument, 'cannot be read'):
                detection.load(path)
            detection.save({('small', 'memory'): detection.learn('small', quiet())}, path)
            good = json.loads(path.read_text())
            for field, value in (('phase', 'network'), ('mean', 0), ('mean', 'x'), ('half', -1),
                                 ('rate', 0), ('amount', 0), ('readings', 1), ('other', 1)):
                content = json.loads(path.read_text())
                content['baselines'][0][field] = value
                (bad := pathlib.Path(folder) / 'bad.json').write_text(json.dumps(content))
                with self.assertRaisesRegex(errors.InvalidDocument, field):
                    detection.load(bad)
            content = json.loads(path.read_text())
            content['baselines'][0]['mean'] *= 2
            bad.write_text(json.dumps(content))
            with self.assertRaisesRegex(errors.InvalidDocument, 'checksum'):
                detection.load(bad)
            bad.write_text(json.dumps(good | {'baselines': good['baselines'] * 2}))
            with self.assertRaisesRegex(errors.InvalidDocument, 'has two'):
                detection.load(bad)
