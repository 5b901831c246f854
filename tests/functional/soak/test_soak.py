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

"""The soak, made short: what must not be is not, whatever goes wrong meanwhile.

Memory and time need the long one, ``python -m tests.soak``.
"""

import pathlib
import statistics
import tempfile
import unittest

from tests.functional import databases
from tests.functional import messaging
from tests.soak import __main__ as command
from tests.soak import report
from tests.soak import run


class TestSoak(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        missing = messaging.missing() or databases.missing(databases.MariaDB)
        if missing:
            raise unittest.SkipTest(missing)
        cls.plan = run.Plan(hosts=40, vms=4, hours=48.0, warm_up=0.0, creations=15.0, minutes=3.0,
                            candidates=40, polling=3.0, record=3.0, audit=15.0)
        cls.record = command.soak(cls.plan)
        cls.rows = cls.record['rows']

    def test_no_vm_is_refused_or_moved_that_should_not_be(self):
        self.assertEqual([], self.record['wrong'])
        self.assertEqual({}, self.record['failed'])

    def test_it_judged_throughout(self):
        last = self.rows[-1]
        self.assertGreaterEqual(last['created'], self.plan.hours * self.plan.creations)
        judged = [row for row in self.rows if row.get('unjudged') == 0]
        self.assertGreater(len(judged), 0.8 * len(self.rows))
        # The hosts that are too full for anybody who minds, and no others. On a machine that has
        # too much to do, data is late, and predictions may be trusted less for a while.
        trusted = [row for row in judged if row['trust'] == 1.0]
        self.assertGreater(len(trusted), 0.3 * len(self.rows))
        self.assertGreater(max(row['hot'] for row in trusted), 0.0)
        self.assertEqual(0.0, statistics.median(row['missed'] for row in trusted))
        self.assertEqual(0.0, statistics.median(
            abs(row['refused'] - row['hot']) for row in trusted))
        # No VM was placed there but by force, and audits found a way out.
        self.assertEqual(0, last.get('on_hot', 0))
        self.assertGreater(last['forced'], 0)
        self.assertGreater(last['moves'], 0)

    def test_everything_that_can_go_wrong_did_and_was_got_over(self):
        self.assertEqual([fault.name for fault in run.FAULTS],
                         [event['name'] for event in self.record['events']])
        self.assertEqual({'engine-a', 'engine-b'},
                         {row['leader'] for row in self.rows if row['leader']})
        # Somebody leads at the end, trusts predictions, and knows what there is, but for those
        # that came this moment.
        last = next(row for row in reversed(self.rows) if row['leader'])
        self.assertGreater(last['hour'], 0.9 * self.plan.hours)
        self.assertEqual(1.0, last['trust'])
        self.assertLessEqual(abs(last['vms'] - last['vms_known']), 0.1 * last['vms'])

    def test_the_record_can_be_shown_and_drawn(self):
        shown = report.text(self.record)
        self.assertIn('what must not be: 0', shown)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'soak.png'
            report.plot(self.record, path)
            self.assertEqual(b'\x89PNG', path.read_bytes()[:4])
