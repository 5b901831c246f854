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

"""Nova's scheduler with an engine in place of the snapshot file, through RabbitMQ."""

import time

from tests.functional.nova import base
from tests.functional.publication import engine_case


class PlacementTest(engine_case.EngineCase, base.InterferenceTestCase):

    def refusing(self, *names):
        """Return hosts of which some would be refused."""
        return [base.host(name, *([base.resident(f'vm-{name}', max_slowdown=2)]
                                  if name in names else [])) for name in self.hosts]

    def test_a_boot_is_judged_and_the_engine_hears_of_it(self):
        self.write_snapshot(*self.refusing('host1', 'host2'))
        before = time.time()
        server = self.boot()
        self.assertEqual('host3', self.host_of(server))
        self.wait_for(lambda: self.decisions and self.settled)
        said, = self.decisions
        self.assertEqual((server['id'], [3, 1], 3, 2, 'refused', 'create'), tuple(
            said[key] for key in ('vm', 'snapshot', 'considered', 'refused', 'outcome',
                                  'operation')))
        self.assertRegex(said['request'], '^req-')
        self.assertEqual({'vm-host1', 'vm-host2'}, {
            one['worst']['vm'] for one in said['hosts'] if one['refused']})
        self.assertEqual((said['id'], server['id'], 'host3'), tuple(
            self.settled[0][key] for key in ('id', 'vm', 'chosen')))
        self.assertTrue(before < said['at'] <= self.settled[0]['at'] < time.time())

    def test_what_changes_is_judged_by_too(self):
        self.write_snapshot(*self.refusing('host1', 'host2'))
        self.assertEqual('host3', self.host_of(self.boot()))
        self.write_snapshot(*self.refusing('host1', 'host3'))
        self.assertEqual('host2', self.host_of(self.boot()))

    def test_the_engine_is_lost_and_another_takes_over(self):
        self.write_snapshot(*self.refusing('host1', 'host2'))
        self.assertEqual('host3', self.host_of(self.boot()))
        self.engine.stop()
        self.assertEqual('host3', self.host_of(self.boot()))
        self.wait_for(lambda: 'no tracon-engine has answered' in self.log.output, 60)
        self.assertIn('snapshot 3.1 stays in use', self.log.output)
        self.assertEqual(1, self.log.output.count('no tracon-engine has answered'))
        self.epoch, self.engine, self.version = 4, None, 0
        self.write_snapshot(*self.refusing('host1', 'host3'), wait=False)
        judge, = self.judges()
        self.wait_for(lambda: judge.snapshots.current.content.epoch == 4, 90)
        self.assertEqual('host2', self.host_of(self.boot()))

    def test_without_an_engine_nova_decides_alone(self):
        self.flags(group='tracon', initial_wait_seconds=0.5)
        self.boot()
        self.assertEqual([], self.records())
