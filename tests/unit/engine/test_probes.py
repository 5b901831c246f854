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

"""What the engine makes of the meters of probes."""

import math
import unittest

import numpy as np

from tracon_watcher.engine import probes
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.telemetry import meters
from tracon_watcher.telemetry import samples

NOW = 1e9
NOTHING = (math.nan,) * 6


class Reader:
    """Telemetry that is in memory."""

    resolution = 60.0
    ahead = 3600.0

    def __init__(self):
        self.samples = []
        self.fails = False
        self.asked = []

    def read(self, since, until, names):
        """Return what there is."""
        self.asked.append((since, until, names))
        if self.fails:
            raise samples.TelemetryUnavailable('Gnocchi is away')
        hosts = sorted({host for host, _, _ in self.samples})
        return samples.Readings(
            tuple(hosts), tuple(names),
            np.array([hosts.index(host) for host, _, _ in self.samples], dtype=np.intp),
            np.array([at for _, at, _ in self.samples]),
            np.array([values for _, _, values in self.samples]).reshape(-1, 6))


class ProbesTest(unittest.TestCase):

    def setUp(self):
        self.reader = Reader()
        self.probes = probes.Probes(self.reader, 900.0)

    def collect(self, now=NOW):
        return self.probes.collect(['a', 'b'], now)

    def test_the_last_reading_counts(self):
        self.reader.samples = [('a', NOW - 60, (1.1, 1.0, 1.8, 1.5, 1.0, math.nan)),
                               ('a', NOW - 400, (2.0, 1.7, 1.0, 1.0, 1.0, 1.0))]
        found = self.collect()['a']
        self.assertEqual(probes.RelativeReading(probes.QUIET, NOW - 60, 1.1, 1.0),
                         found['connection'])
        self.assertEqual(probes.RelativeReading(probes.CONTENDED, NOW - 60, 1.8, 1.5),
                         found['memory'])
        # One reading after a gap is no state.
        self.assertEqual(probes.RelativeReading(probes.UNKNOWN, NOW - 60, 1.0, None),
                         found['storage'])
        self.assertEqual([one.name for one in meters.PROBE_METERS], self.reader.asked[0][2])

    def test_phases_have_times_of_their_own(self):
        self.reader.samples = [
            ('a', NOW - 200, (1.1, 1.0, *NOTHING[2:])),
            ('a', NOW - 100, (*NOTHING[:2], 1.8, 1.5, *NOTHING[4:]))]
        found = self.collect()['a']
        self.assertEqual([NOW - 200, NOW - 100, None],
                         [found[phase].at for phase in meters.PHASES])
        self.assertEqual(probes.UNKNOWN, found['storage'].state)

    def test_silence_is_unknown(self):
        self.assertEqual({}, self.collect())
        self.reader.samples = [('a', NOW, (1.0,) * 6)]
        self.assertEqual({'a'}, set(self.collect()))
        self.reader.samples = []
        self.assertEqual({'a'}, set(self.collect(NOW + 800)))
        self.assertEqual({}, self.collect(NOW + 1000))

    def test_other_hosts_are_forgotten(self):
        self.reader.samples = [('gone', NOW, (1.0,) * 6)]
        self.assertEqual({}, self.collect())

    def test_sensors_of_hosts_that_there_are_not_are_told_of(self):
        self.reader.samples = [('A.example.org', NOW, (1.0,) * 6)]
        self.collect()
        (text,) = self.probes.troubles
        self.assertRegex(text, r'host A.example.org, and Nova lists no compute .* \(but a\)')

    def test_that_no_sensor_is_heard_of_is_told_after_a_while(self):
        for seconds in range(0, 900, 60):
            self.collect(NOW + seconds)
            self.assertEqual((), self.probes.troubles)
        self.collect(NOW + 960)
        (text,) = self.probes.troubles
        self.assertIn('no sensor has been heard of for more than 900 s', text)
        self.reader.samples = [('a', NOW + 960, (1.0,) * 6)]
        self.collect(NOW + 1020)
        self.assertEqual((), self.probes.troubles)

    def test_garbage_and_the_future_are_unknown(self):
        self.reader.samples = [('a', NOW + 3600, (1.0,) * 6), ('b', NOW, (-1.0, 1.0, 0.0, 1.0,
                                                                          math.nan, 1.0)),
                               ('a', NOW, (math.inf, 1.5, -math.inf, 1.5, 1.8, math.inf))]
        self.assertEqual({}, self.collect())

    def test_a_clock_may_be_as_much_ahead_as_for_samples_of_vms(self):
        self.reader.samples = [('a', NOW + 110, (1.0,) * 6), ('b', NOW + 130, (1.0,) * 6)]
        self.assertEqual({'a'}, set(self.collect()))

    def test_times_are_corrected_by_what_is_known_of_a_hosts_clock(self):
        self.reader.samples = [('a', NOW + 1140, (1.0,) * 6), ('b', NOW - 2060, (1.0,) * 6)]
        self.assertEqual({}, self.collect())
        found = self.probes.collect(['a', 'b'], NOW, {'a': 1200.0, 'b': -2000.0})
        self.assertEqual([NOW - 60] * 2, [found[host]['memory'].at for host in 'ab'])
        since, until, _names = self.reader.asked[-1]
        self.assertLessEqual(since, NOW - 2060)
        self.assertGreater(until, NOW + 1140)

    def test_telemetry_that_is_away(self):
        self.reader.samples = [('a', NOW, (1.0,) * 6)]
        before = self.collect()
        self.reader.fails = True
        with self.assertLogs(probes.LOG, 'WARNING') as logs:
            self.assertEqual(before, self.collect(NOW + 60))
            self.collect(NOW + 120)
        self.assertEqual(1, len(logs.output))
        self.assertEqual({}, self.collect(NOW + 901))


def felt(state=probes.CONTENDED, ratio=1.8, low=1.6):
    """Return what a sensor felt in one phase."""
    return probes.RelativeReading(state, NOW, ratio, low)


class ContentionTest(unittest.TestCase):
    """What is felt beyond what a host's own VMs explain (synthetic)."""

    def assessor(self, busy=0.0, vms=4, contention=None):
        """Return two hosts of two cores, of which VMs keep the second one busy."""
        return assessment.Assessor(cluster.build([
            cluster.Host('idle', cores=2, contention=contention),
            cluster.Host('busy', tuple(
                cluster.Resident(str(index), np.array([0.0, 0.0, busy, 0.0]))
                for index in range(vms)), cores=2),
            cluster.Host('strange', cores=None)]))

    def found(self, assessor=None, host='idle', **phases):
        return probes.contention({host: {**probes.SILENT, **phases}},
                                 assessor or self.assessor()).get(host)

    def test_half_of_what_is_felt(self):
        mean, deviation, *ratio = self.found(memory=felt())
        self.assertAlmostEqual(math.log(1.8) / 2, mean, delta=0.01)
        # Any part of it between none and all is as likely.
        self.assertAlmostEqual(math.log(1.8) / math.sqrt(12), deviation, delta=0.02)
        self.assertEqual([0.0, 0.0], ratio)

    def test_storage_counts_for_requests_as_well(self):
        slow, _, ratio, _ = self.found(storage=felt())
        self.assertEqual(slow, ratio)
        slow, _, ratio, _ = self.found(storage=felt(), memory=felt(ratio=3.0, low=2.8))
        self.assertGreater(slow, ratio)
        self.assertGreater(ratio, 0.0)

    def test_what_the_hosts_own_vms_explain_is_none(self):
        self.assertIsNotNone(self.found(self.assessor(0.9), 'idle', connection=felt()))
        self.assertIsNone(self.found(self.assessor(0.9), 'busy', connection=felt()))
        whole, part = (self.found(self.assessor(busy), 'busy', connection=felt(ratio=8.0, low=7.0))
                       for busy in (0.0, 0.5))
        self.assertLess(part[0], whole[0])

    def test_what_was_told_already_is_not_taken_for_explained(self):
        told = self.found(self.assessor(contention=(0.3, 0.17, 0.0, 0.0)), memory=felt())
        self.assertEqual(self.found(memory=felt()), told)

    def test_quiet_unknown_and_strange_hosts(self):
        self.assertIsNone(self.found(memory=felt(probes.QUIET, 1.02, 1.0)))
        self.assertIsNone(self.found(memory=felt(probes.UNKNOWN, 3.0, None)))
        self.assertIsNone(self.found())
        self.assertIsNone(self.found(host='strange', memory=felt()))
        self.assertIsNone(self.found(host='gone', memory=felt()))
