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

"""An audit of a synthetic cloud whose hosts are of a type that has drifted."""

import dataclasses
import math

from tests import synthetic
from tests.watcher import audits
from tests.watcher import clouds
from tracon_watcher.placement import limits
from tracon_watcher.placement import queues

LOGGER = 'tracon_watcher.decision_engine.strategy'


class TrustTestCase(audits.AuditCase):

    @staticmethod
    def world(vms, limit=limits.NONE):
        return clouds.world('ab', [clouds.Vm(f'vm-{row}', 'a', (1, 1, 1), 0.5 * synthetic.CAPACITY,
                                             limit) for row in range(vms)])

    def moves(self, coverage):
        return self.audit(self.world(3, limits.Limits(1.4)), learnt={
            synthetic.HOST_TYPE: queues.LearnedParameters(
                vm_hours=30.0, coverage=coverage)}).execute().actions

    def test_an_audit_says_that_names_of_hosts_match_nothing(self):
        world = self.world(1)
        audit = self.audit(world, dataclasses.replace(clouds.state_of(world),
                                                      hosts=('A', 'b.old')))
        with self.assertLogs(LOGGER, 'WARNING') as logs:
            audit.execute()
        self.assertIn("does not have a and 1 more of Nova's hosts (it has A)", logs.output[0])
        self.assertIn("does not have a and 1 more of Nova's hosts", audit._plan.reason)

    def test_hosts_are_left_alone_whose_type_is_not_trusted(self):
        with self.assertNoLogs(LOGGER, 'WARNING'):
            self.assertTrue(self.moves(math.nan))
            self.assertTrue(self.moves(0.4))
        with self.assertLogs(LOGGER, 'WARNING') as logs:
            self.assertEqual([], self.moves(0.32))
        self.assertIn('Hosts of type synthetic are not judged', logs.output[0])
        self.assertIn('trusted 40 %', logs.output[0])
