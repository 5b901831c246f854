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

"""The published readings of a probe (Mukherjee, chapters 4 and 5), and what its text flags.

The tables' bold marks are lost; what is flagged comes from the prose around each table. Probe
readings are published as means alone: each is given the interval of its baseline here.
"""

import json
import pathlib
import tempfile
import unittest

from tracon_watcher import errors
from tracon_watcher.probe import detection
from tracon_watcher.probe import phases
from tracon_watcher.probe import readings
from tracon_watcher.probe import tuning

FEW = phases.Setting(16.0, 100.0, 20_000)
TUNED = phases.Setting(24.0, 15.0, 20_000)
TRAVERSAL = phases.Setting(1.0, 25.0, 5_000_000)
LONG_TRAVERSAL = phases.Setting(1.0, 1200.0, 5_000_000)


def baseline(phase, setting, mean, half):
    """Return a baseline in milliseconds, of which no more than an interval is published."""
    return detection.SensorBaseline('AMD Shanghai', phase, setting, mean * 1e-3, half * 1e-3, 0.0,
                                    5,
                                    0.0)


# 3.7 ± 0.1 ms is that of c = 24; with c = 16 the sensor alone takes 3.8 ms.
CONNECTION_16 = baseline('connection', FEW, 3.8, 0.1)
CONNECTION_24 = baseline('connection', TUNED, 3.7, 0.1)
MEMORY = baseline('memory', TRAVERSAL, 525.0, 3.0)
MEMORY_1200 = baseline('memory', LONG_TRAVERSAL, 520.0, 6.0)


def felt(base, milliseconds):
    """Return what a sensor felt whose mean was published."""
    return detection.compare(readings.Reading(
        base.phase, base.setting, 0.0, milliseconds * 1e-3, base.reach, (), 100), base)


# Table 4.3: connections a second of each VM, then the sensor beside 1, 2, 3 and 4 VMs.
TABLE_4_3 = {100: (3.80, 3.80, 3.90, 3.90), 140: (3.90, 3.90, 3.90, 4.00),
             155: (3.80, 3.80, 3.90, 3.80), 160: (3.80, 3.80, 3.90, 3.80),
             165: (3.90, 3.80, 4.00, 924.50)}
# Table 4.4: the sensor beside 1 to 4 memory-hungry VMs.
TABLE_4_4 = (545, 630, 742, 869)
# Table 5.2: likewise beside 1 to 4 Jython VMs.
TABLE_5_2 = (527, 563, 601, 721)
# Tables 4.1 and 4.2: the VMs themselves.
TABLE_4_1 = {100: (9.18, 9.50, 9.56, 9.70), 140: (11.10, 11.50, 11.80, 12.10),
             155: (13.30, 14.40, 14.90, 15.40), 160: (14.90, 15.30, 15.40, 19.30),
             165: (15.20, 15.80, 16.30, 323.60)}
TABLE_4_2 = {100: (9.20, 9.60, 9.70, 10.10), 140: (11.20, 11.80, 11.60, 12.20),
             155: (14.00, 14.50, 14.80, 15.70), 160: (15.20, 15.50, 16.70, 18.50),
             165: (15.40, 15.70, 17.40, 1363.80)}
# Tables 5.4, 5.6 and 5.8: phases in their order, memory and connection in turn.
TABLE_5_4 = {180: 'NN NN NN NN NN', 225: 'NN NN NN NY NY'}
TABLE_5_6 = {180: 'YN YN YN YN YN', 225: 'YN YN YN YN YN'}
TABLE_5_8 = {180: 'YN YN YN YN YN', 225: 'YN YN YN YY YY'}
# Table 5.1: whether the connection phase flags, beside 1 to 4 Web VMs; the trouble begins after
# 120 of 200 seconds, so that it is the last two phases of five that can.
TABLE_5_1 = {100: 'NNNN', 125: 'NNNN', 150: 'NNNN', 180: 'NNNY', 225: 'NNYY'}
# Table 4.5: connections a second of each VM, c, t1, whether VMs have a problem, whether it shows.
TABLE_4_5 = ((150, 150, 100, 'Y', 'Y'), (150, 100, 100, 'Y', 'Y'), (150, 60, 100, 'Y', 'Y'),
             (150, 24, 100, 'N', 'N'), (165, 24, 100, 'Y', 'Y'), (165, 24, 15, 'Y', 'Y'),
             (165, 24, 10, 'Y', 'N'))


class TablesTest(unittest.TestCase):

    def test_the_connection_phase_flags_the_discontinuity_alone(self):
        flagged = {(rate, index + 1) for rate, row in TABLE_4_3.items()
                   for index, one in enumerate(row) if felt(CONNECTION_16, one).flagged}
        self.assertEqual({(165, 4)}, flagged)
        # "by approximately a factor of 240"
        self.assertAlmostEqual(240, felt(CONNECTION_16, 924.5).ratio, delta=5)

    def test_the_memory_phase_flags_each_number_of_memory_hungry_vms(self):
        self.assertEqual([True] * 4, [felt(MEMORY_1200, one).flagged for one in TABLE_4_4])

    def test_one_jython_vm_alone_is_not_flagged(self):
        self.assertEqual([False, True, True, True],
                         [felt(MEMORY, one).flagged for one in TABLE_5_2])

    def test_the_vms_themselves_break_down_where_the_sensor_says(self):
        # Intervals of the VMs are not published, and the text calls increases significant that
        # are smaller than others it does not name. With 8 % for each, what is left is what it
        # calls dramatic, and the fourth VM at 160 ("21 % higher, and significant").
        for table in (TABLE_4_1, TABLE_4_2):
            flagged = {(rate, count) for rate, row in table.items()
                       for count, one in enumerate(row, 1)
                       if felt(baseline('connection', FEW, row[0], 0.08 * row[0]), one).flagged}
            self.assertEqual({(160, 4), (165, 4)}, flagged)

    def test_a_baseline_is_of_one_setting(self):
        reading = readings.Reading('connection', FEW, 0.0, 3.8e-3, 1e-4, (), 100)
        with self.assertRaisesRegex(readings.NoReading, 'is for'):
            detection.compare(reading, CONNECTION_24)


class SequencesTest(unittest.TestCase):
    """Phases in turn: flags as published, and what two in a row make of them."""

    def play(self, row):
        """Return the flags, and the states of memory and connection after each round."""
        detectors = {'M': detection.Detector(), 'C': detection.Detector()}
        flags, states = [], []
        for memory, connection in row.split():
            found = {'M': felt(MEMORY, 601.0 if memory == 'Y' else 525.0),
                     'C': felt(CONNECTION_24, 924.5 if connection == 'Y' else 3.7)}
            flags.append(''.join('NY'[found[one].flagged] for one in 'MC'))
            states.append(tuple(detectors[one].update(found[one]).value for one in 'MC'))
        return ' '.join(flags), states

    def test_heterogeneous_vms(self):
        for table in (TABLE_5_4, TABLE_5_6, TABLE_5_8):
            for row in table.values():
                self.assertEqual(row, self.play(row)[0])

    def test_the_last_of_two_flagged_phases_makes_contention(self):
        for table, memory in ((TABLE_5_4, 'quiet'), (TABLE_5_8, 'contended')):
            states = self.play(table[225])[1]
            self.assertEqual(('unknown', 'unknown'), states[0])
            self.assertEqual([(memory, 'quiet')] * 3 + [(memory, 'contended')], states[1:])

    def test_no_false_alarm_in_any_published_row(self):
        for table in (TABLE_5_4, TABLE_5_8):
            self.assertNotIn('contended', {connection for _, connection in
                                           self.play(table[180])[1]})
        for states in map(self.play, TABLE_5_6.values()):
            self.assertNotIn('contended', {connection for _, connection in states[1]})

    def test_homogeneous_web_vms(self):
        for rate, row in TABLE_5_1.items():
            for count, flag in enumerate(row, 1):
                states = self.play('NN NN NN ' + ' '.join([f'N{flag}'] * 2))[1]
                self.assertEqual('contended' if (rate, count) in {(180, 4), (225, 3), (225, 4)}
                                 else 'quiet', states[-1][1])
                self.assertEqual('quiet', states[-1][0])


class PublishedScene:
    """Answers as Table 4.5 has it."""

    def __init__(self):
        self.asked = []

    def trial(self, setting, troubled):
        """Look up one row."""
        row = TABLE_4_5[len(self.asked)]
        self.asked.append((165 if troubled else 150, setting.rate, setting.seconds))
        assert row[:3] == self.asked[-1], f'{row} instead of {self.asked[-1]}'
        return tuning.Trial(row[3] == 'Y', row[4] == 'Y')


class TuningTest(unittest.TestCase):

    def test_table_4_5(self):
        scene, steps = PublishedScene(), []
        found = tuning.tune(phases.Setting(150, 100, 20_000), 'rate', (150, 100, 60, 24),
                            (15, 10, 5), scene, steps.append)
        self.assertEqual((24, 15), (found.rate, found.seconds))
        self.assertEqual(len(TABLE_4_5), len(scene.asked))
        self.assertEqual([False, False, False, True, True, True, False],
                         [step.kept for step in steps])

    def test_a_probe_that_always_harms(self):
        class Harmed:
            def trial(self, setting, troubled):
                return tuning.Trial(True, True)
        with self.assertRaisesRegex(tuning.TuningFailed, 'down to a rate of 24'):
            tuning.tune(phases.Setting(150, 100, 1), 'rate', (150, 24), (15,), Harmed())

    def test_a_probe_that_never_feels_anything(self):
        class Numb:
            def trial(self, setting, troubled):
                return tuning.Trial(False, False)
        with self.assertRaisesRegex(tuning.TuningFailed, 'does not feel'):
            tuning.tune(phases.Setting(1, 25, 10), 'amount', (10, 5), (15,), Numb())

    def test_what_was_found_is_read_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'tuning.json'
            path.write_text(json.dumps({'schema': tuning.SCHEMA, 'phase': 'connection',
                                        'rate': 24.0, 'seconds': 15.0, 'amount': 20_000,
                                        'steps': []}))
            self.assertEqual(('connection', TUNED), tuning.load(path))
            path.write_text(json.dumps({'schema': tuning.SCHEMA, 'phase': 'x', 'rate': 1.0,
                                        'seconds': 1.0, 'amount': 1}))
            with self.assertRaisesRegex(errors.InvalidDocument, 'phase'):
                tuning.load(path)
