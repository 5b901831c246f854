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

"""What the scheduler records of a decision can be explained, and judged again as it was."""

from tests.unit.nova_filters import base
from tests.unit.nova_filters import test_decision_record
from tracon_watcher.placement import explanation


class Explained(test_decision_record.DecisionCase):

    def explained(self, spec, *names, **instances):
        judge = self.judge()
        self.ask(judge, spec, *names, **instances)
        said, = self.documents()
        found = explanation.explain({**said, 'chosen': 'b'}, judge.snapshots.current.assessor,
                                    tuple(said['snapshot']))
        self.assertEqual('yes', found['judged_again'])
        return {one['host']: one for one in found['hosts']}

    def test_on_its_snapshot(self):
        self.write({'a': {'vm-a': 1.5}, 'b': {}, 'c': {'vm-c': None, 'vm-d': None}})
        hosts = self.explained(base.request_spec(), 'a', 'b', 'c', 'elsewhere')
        self.assertEqual(['vm-a'], hosts['a']['would_pass']['without'])
        self.assertTrue(hosts['a']['would_pass']['judged_again'])
        self.assertIn('refused: the slowdown of vm-a', explanation.why(hosts['a']))
        self.assertIn('expected: ', explanation.why(hosts['a']))
        self.assertTrue(hosts['b']['chosen'])
        self.assertIn(hosts['c']['most']['vm'], ('vm-c', 'vm-d'))
        self.assertIn('more than on the chosen host', explanation.why(hosts['c']))
        self.assertIn('no telemetry', explanation.why(hosts['elsewhere']))

    def test_one_that_boots_from_a_volume(self):
        self.write({'a': {'vm-a': None}, 'b': {}})
        host = self.explained(base.request_spec(is_bfv=True), 'a', 'b')['a']
        self.assertIn('residents', host)

    def test_with_limits_of_its_own(self):
        self.write({'a': {'vm-a': None}, 'b': {}})
        hosts = self.explained(base.request_spec({'tracon:max_slowdown': '1.5'}), 'a', 'b')
        (needed,) = hosts['a']['would_pass']['limits']
        self.assertEqual('newcomer', needed['vm'])
        self.assertAlmostEqual(hosts['a']['worst']['bound'], needed['needed'], places=5)
        self.assertEqual(['vm-a'], hosts['a']['would_pass']['without'])

    def test_placements_that_no_snapshot_shows_are_left_as_recorded(self):
        self.write({'a': {'vm-a': 1.5}, 'b': {}})
        judge = self.judge()
        states = [base.host_state(name) for name in 'ab']
        for _again in range(2):
            judge.weights(judge.passing(states, spec := base.request_spec()), spec, [0.0])
            base.consume(states[1])
        first, second = self.documents(2)
        for said, empty in ((first, True), (second, False)):
            found = explanation.explain(said, judge.snapshots.current.assessor,
                                        tuple(said['snapshot']))
            host = next(one for one in found['hosts'] if one['host'] == 'b')
            # The second found the first there, which no snapshot shows yet.
            self.assertEqual(empty, host['score'] == 0)
            self.assertEqual(empty, 'residents' in host)
