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

import json
import pathlib
import tempfile
import unittest

from tests.unit.tracon_lab.profiling import test_run
from tests.unit.tracon_lab.testbed import test_rows
from tracon_lab.models import dataset
from tracon_lab.profiling import plan
from tracon_lab.profiling import record
from tracon_lab.testbed import plan as plans

SPEED = plan.Speed(2e8, 1500.0, 900.0)
WINDOW = plans.Window(plans.BACKGROUND, 'calc', 'gen-c100-r0-w0', back=plans.REVERSE)
POINT = plan.Slot(WINDOW, 'calc', 'gen-c100-r0-w0')


class TestJournal(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), 'synthetic.csv')

    def journal(self, at=1000.0):
        found = record.Journal(self.path, 30.0, lambda: at)
        found.begin(test_run.HEADER, SPEED)
        return found

    def keep(self, journal, slot):
        journal.keep(slot, {role: test_rows.side(name) for role, name in (
            ('target', slot.target), ('background', slot.background)) if name}, 900.0)

    def test_what_was_measured_is_known_again(self):
        first = self.journal()
        self.keep(first, plan.alone('target', 'calc'))
        self.keep(first, plan.alone('background', 'gen-c100-r0-w0'))
        self.keep(first, POINT)
        again = self.journal()
        self.assertEqual(SPEED, again.speed)
        self.assertEqual({'calc', 'gen-c100-r0-w0'}, again.solos)
        self.assertEqual([], again.left([WINDOW]))
        self.assertEqual(4, again.rows)
        # A point is compared with what an earlier run has measured alone.
        other = plans.Window(plans.BACKGROUND, 'calc', 'gen-c100-r0-w0', 1, plans.REVERSE)
        self.keep(again, plan.Slot(other, other.target, other.background))
        self.assertEqual(6, len(dataset.read(self.path).text['kind']))
        alone = test_rows.side('calc')
        row = self.journal().file.rows[-2]
        self.assertAlmostEqual(alone.time_per_unit, float(row['solo_time_per_unit']), places=6)
        self.assertAlmostEqual(alone.seen.guest_cpu, float(row['target_alone_guest_cpu']),
                               places=6)

    def test_a_point_waits_for_what_it_is_compared_with(self):
        journal = self.journal()
        self.keep(journal, plan.alone('target', 'calc'))
        self.keep(journal, POINT)
        self.assertEqual(1, journal.rows)
        self.assertEqual([], journal.left([WINDOW]))
        self.assertEqual([WINDOW], journal.missing([WINDOW]))
        self.assertEqual([plan.alone('background', 'gen-c100-r0-w0')], journal.awaited)
        self.keep(journal, journal.awaited[0])
        self.assertEqual(([], []), (journal.awaited, journal.missing([WINDOW])))
        # Who ends before that has to measure the point again.
        self.assertEqual(4, self.journal().rows)

    def test_what_is_given_up_is_named_and_what_was_not_tried_is_not(self):
        journal = self.journal()
        self.keep(journal, plan.alone('target', 'calc'))
        journal.reject(POINT, ['no samples', 'no report'])
        self.assertIn('no samples; no report', journal.last)
        journal.complete([WINDOW.point, 'background/calc/gen-c050-r0-w0'])
        self.assertEqual('1: ' + WINDOW.point, dataset.read(self.path).header['given_up'])
        noted = [json.loads(line) for line in journal.path.read_text().splitlines()]
        self.assertEqual([True, False], [one['kept'] for one in noted])
        self.assertEqual(['no samples', 'no report'], noted[1]['reasons'])

    def test_what_goes_on_plans_by_the_same_speed(self):
        # Of 0.4 and 1.0 of these, rounded before or after, come other settings.
        exact = plan.Speed(2e8, 1233.4996, 906.2507)
        found = record.Journal(self.path, 30.0)
        speed = found.begin(test_run.HEADER, exact)
        self.assertEqual(speed, record.Journal(self.path, 30.0).speed)
        self.assertEqual(speed, record.Journal(self.path, 30.0).begin(test_run.HEADER, exact))
        self.assertNotEqual(plan.settings(exact), plan.settings(speed))

    def test_a_file_without_rows(self):
        self.journal().complete([WINDOW.point])
        self.assertEqual(0, self.journal().rows)
        self.assertIsNone(record.Journal(self.path.with_name('new.csv'), 30.0).speed)
