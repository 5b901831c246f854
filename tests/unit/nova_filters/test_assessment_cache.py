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

"""Assessments that are remembered (synthetic hosts)."""

import dataclasses
import unittest
from unittest import mock

import numpy as np

from nova_filters import reassessment
from tests import synthetic
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import queues

PROFILES = np.outer(np.arange(1.0, 31.0), [10.0, 5.0, 0.02, 0.005])
LIMITS = limits.Limits(1.5)


class TestRecall(unittest.TestCase):

    def setUp(self):
        self.recall = reassessment.AssessmentCache()
        self.judged = 0

    def assessor(self, most='small', count=2):
        """Two hosts, and a history of which ``most`` is the most common kind."""
        kinds = [('shop', 'large', 'linux'), *[('shop', most, 'linux')] * count,
                 *[('shop', f'rare{number}', 'linux') for number in range(9)]]
        history = newcomer_profiles.learn(PROFILES[:len(kinds)], kinds)
        made = assessment.Assessor(cluster.build([
            cluster.Host('a', (cluster.Resident('vm', PROFILES[0], storage_wait=0.5),),
                         synthetic.HOST_TYPE, updated_at=0.0, cores=1),
            cluster.Host('b', (), synthetic.HOST_TYPE, updated_at=0.0, cores=1)], history),
            assessment.Settings(maximum_age=600.0, learnt={
                synthetic.HOST_TYPE: queues.LearnedParameters(disk=1.0)}))
        whole = made.assess

        def counted(*arguments):
            self.judged += 1
            return whole(*arguments)

        self.enterContext(mock.patch.object(made, 'assess', counted))
        return made

    def ask(self, assessor, flavor, now=0.0, tolerated=LIMITS):
        profile = newcomer_profiles.expected(assessor.cluster.history, 'shop', flavor, 'linux')
        return self.recall.assess(assessor, profile, tolerated, now)

    def test_the_second_one_of_a_kind_is_not_judged_again(self):
        assessor = self.assessor()
        first = self.ask(assessor, 'small')
        first.score[:] = 7.0
        second = self.ask(assessor, 'small')
        self.assertEqual(1, self.judged)
        # What one request does to its answer does not reach the next.
        self.assertFalse((second.score == 7.0).any())
        self.ask(assessor, 'small', tolerated=limits.NONE)
        self.ask(assessor, 'large')
        self.assertEqual(3, self.judged)

    def test_one_that_is_set_apart_is_another_kind(self):
        assessor = self.assessor()
        own = newcomer_profiles.expected(assessor.cluster.history, 'shop', 'small', 'linux')
        found = [self.recall.assess(assessor, profile, LIMITS, 0.0).score[0]
                 for profile in (own, own.set_apart(), own.set_apart())]
        self.assertEqual(2, self.judged)
        self.assertGreater(found[0], found[1])
        self.assertEqual(found[1], found[2])

    def test_one_that_waits_for_its_own_limits_is_another_kind(self):
        assessor = self.assessor()
        own = newcomer_profiles.expected(assessor.cluster.history, 'shop', 'small', 'linux')
        waits = dataclasses.replace(own, own_wait=0.9)
        found = [self.recall.assess(assessor, profile, LIMITS, 0.0).log_response[0, 0]
                 for profile in (own, waits, waits)]
        self.assertEqual(2, self.judged)
        self.assertGreater(found[0], found[1])
        self.assertEqual(found[1], found[2])

    def test_another_snapshot_forgets(self):
        self.ask(self.assessor(), 'small')
        self.ask(self.assessor(), 'small')
        self.assertEqual(2, self.judged)

    def test_one_that_has_become_stale_meanwhile_is_judged_again(self):
        assessor = self.assessor()
        late = assessor.settings.maximum_age + 1.0
        self.assertFalse(
            (self.ask(assessor, 'small').status == assessment.Status.STALE).any())
        self.assertTrue(
            (self.ask(assessor, 'small', late).status == assessment.Status.STALE).all())
        self.assertEqual(2, self.judged)

    def test_the_most_common_kinds_are_judged_beforehand(self):
        assessor = self.assessor()
        self.recall.prepare(assessor, LIMITS, 0.0)
        self.assertEqual(8, self.judged)
        self.ask(assessor, 'small')
        self.assertEqual(8, self.judged)
        # Of eleven, the last three by name among those of which there is one VM each.
        self.ask(assessor, 'rare8')
        self.assertEqual(9, self.judged)

    def test_those_asked_for_are_judged_beforehand_by_the_next_snapshot(self):
        assessor = self.assessor()
        self.recall.prepare(assessor, LIMITS, 0.0)
        self.ask(assessor, 'rare8')
        newer = self.assessor('medium')
        self.judged = 0
        self.recall.prepare(newer, LIMITS, 0.0)
        self.assertEqual(9, self.judged)
        self.ask(newer, 'rare8')
        self.ask(newer, 'medium')
        self.assertEqual(9, self.judged)

    def test_a_request_on_the_former_snapshot_undoes_nothing(self):
        former, newer = self.assessor(), self.assessor()
        self.recall.prepare(former, LIMITS, 0.0)
        self.ask(former, 'rare8')
        self.recall.prepare(newer, LIMITS, 0.0)
        self.judged = 0
        found = self.ask(former, 'rare7', tolerated=limits.NONE)
        self.assertTrue(found.known.all())
        self.ask(newer, 'small')
        self.ask(newer, 'rare8')
        self.assertEqual(1, self.judged)
        # What was asked for is still known to be.
        self.recall.prepare(newer, LIMITS, 0.0)
        self.assertIn('rare8', ''.join(one.found.newcomer.source
                                       for one in self.recall._kept.values()))

    def test_memory_is_bounded(self):
        assessor = self.assessor()
        for number in range(100):
            self.ask(assessor, 'small', tolerated=limits.Limits(1.0 + number))
        self.assertEqual(100, self.judged)
        self.ask(assessor, 'small', tolerated=limits.Limits(100.0))
        self.assertEqual(100, self.judged)
        self.ask(assessor, 'small', tolerated=limits.Limits(1.0))
        self.assertEqual(101, self.judged)
        self.judged = 0
        self.recall.prepare(self.assessor(), LIMITS, 0.0)
        self.assertLessEqual(self.judged, 32)
