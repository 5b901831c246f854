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

"""A boot through the real scheduler: what is refused, what is preferred, what is only said."""

from tests.functional.nova import base


class EnforceTest(base.InterferenceTestCase):

    def test_a_host_whose_resident_would_suffer_is_refused(self):
        self.write_snapshot(base.host('host1', base.resident('vm-a', max_slowdown=1.5)),
                            base.host('host2', base.resident('vm-b', max_slowdown=1.5)),
                            base.host('host3'))
        server = self.boot()
        self.assertEqual('host3', self.host_of(server))
        record, = self.records()
        self.assertEqual('refused', record['outcome'])
        self.assertEqual(server['id'], record['instance'])
        self.assertEqual({'resident slowdown': 2}, record['reasons'])
        self.assertEqual({('host1', 'vm-a'), ('host2', 'vm-b')},
                         {(one['host'], one['vm']) for one in record['worst']})
        for one in record['worst']:
            self.assertAlmostEqual(1.5, one['limit'])
            self.assertGreater(one['predicted_bound'], 1.5)

    def test_a_host_on_which_the_newcomer_would_suffer_is_refused(self):
        self.write_snapshot(base.host('host1', base.resident('vm-a')), base.host('host2'),
                            base.host('host3', base.resident('vm-b')))
        server = self.boot(flavor_id=self.limited_flavor(max_slowdown='1.5', min_iops_ratio='0.7'))
        self.assertEqual('host2', self.host_of(server))
        record, = self.records()
        self.assertEqual({'newcomer iops_ratio': 2}, record['reasons'])
        self.assertEqual({'newcomer'}, {one['vm'] for one in record['worst']})

    def test_where_nothing_is_limited_nothing_is_refused(self):
        self.write_snapshot(*(base.host(name, base.resident(f'vm-{name}'))
                              for name in self.hosts))
        self.boot()
        self.assertEqual([], self.records())

    def test_hosts_of_which_nothing_is_known_pass(self):
        self.write_snapshot(base.host('host1', base.resident('vm-a', max_slowdown=1.5)))
        server = self.boot()
        self.assertIn(self.host_of(server), ('host2', 'host3'))
        record, = self.records()
        self.assertEqual({'unknown_host': 2}, record['unknown'])

    def test_without_history_nothing_is_refused(self):
        self.write_snapshot(*(base.host(name, base.resident(f'vm-{name}', max_slowdown=1.01))
                              for name in self.hosts), expected=None)
        self.boot()
        self.assertEqual([], self.records())


class AllRefusedTest(base.InterferenceTestCase):
    """host3 has least harm to fear, and least free memory, which the stock weighers hold dear."""

    def setUp(self):
        super().setUp()
        self.write_snapshot(*(base.host(name) for name in self.hosts))
        first = self.boot(host='host3')
        self.write_snapshot(
            base.host('host1', base.resident('vm-a', max_slowdown=1.5),
                      base.resident('vm-b', max_slowdown=1.5)),
            base.host('host2', base.resident('vm-c', max_slowdown=1.5),
                      base.resident('vm-d', max_slowdown=1.5)),
            base.host('host3', base.resident(first['id'], base.QUIET, max_slowdown=1.02)))

    def test_least_harm(self):
        self.flags(group='tracon', weight_multiplier=0.1)
        server = self.boot()
        self.assertEqual('host3', self.host_of(server))
        record, = self.records()
        self.assertEqual('all would be refused, least harm first', record['outcome'])
        self.assertEqual(3, record['breached'])


class AllRefusedMayFailTest(base.InterferenceTestCase):
    options = {'on_all_refused': 'refuse'}

    def test_refuse(self):
        self.write_snapshot(*(base.host(name, base.resident(f'vm-{name}', max_slowdown=1.5))
                              for name in self.hosts))
        server = self.boot('ERROR')
        self.assertIn('No valid host', server['fault']['message'])
        record, = self.records()
        self.assertEqual(('refused', 3), (record['outcome'], record['breached']))


class RankedCase(base.InterferenceTestCase):
    """The stock weighers would not take host3, which has least free memory; ours would."""

    def setUp(self):
        super().setUp()
        self.write_snapshot(*(base.host(name) for name in self.hosts))
        first = self.boot(host='host3')
        self.busy = [base.host('host1', base.resident('vm-a', max_slowdown=1.5)),
                     base.host('host2', base.resident('vm-b', max_slowdown=1.5))]
        self.write_snapshot(*self.busy,
                            base.host('host3', base.resident(first['id'], base.QUIET)))


class WeighTest(RankedCase):
    mode = 'weigh'

    def test_the_host_with_least_harm_is_preferred(self):
        self.assertEqual('host3', self.host_of(self.boot()))
        record, = self.records()
        self.assertEqual('nothing refused in this mode', record['outcome'])

    def test_nothing_is_refused(self):
        self.write_snapshot(*self.busy)
        self.assertIn(self.host_of(self.boot()), self.hosts)


class AdviseTest(RankedCase):
    mode = 'advise'

    def test_nothing_changes_and_it_is_said_what_would(self):
        server = self.boot()
        self.assertIn(self.host_of(server), ('host1', 'host2'))
        record, = self.records()
        self.assertEqual(('nothing refused in this mode', 2),
                         (record['outcome'], record['breached']))

    def test_an_aggregate_may_enforce(self):
        self.aggregate('strict', {'tracon:mode': 'enforce'}, 'host1')
        self.assertEqual('host2', self.host_of(self.boot()))
        record, = self.records()
        self.assertEqual({'host1'}, {one['host'] for one in record['worst']})


class AggregateTest(base.InterferenceTestCase):

    def test_an_aggregate_may_be_left_out(self):
        self.write_snapshot(*(base.host(name, base.resident(f'vm-{name}', max_slowdown=1.5))
                              for name in self.hosts))
        self.aggregate('out', {'tracon:mode': 'off'}, 'host2')
        self.aggregate('strict', {'tracon:mode': 'enforce'}, *self.hosts)
        self.assertEqual('host2', self.host_of(self.boot()))

    def test_the_strictest_limit_wins_and_an_invalid_one_counts_as_unset(self):
        self.write_snapshot(*(base.host(name, base.resident(f'vm-{name}'))
                              for name in self.hosts))
        self.aggregate('lenient', {'tracon:max_slowdown': '100'}, *self.hosts)
        self.aggregate('strict', {'tracon:max_slowdown': '1.5'}, 'host1', 'host3')
        self.aggregate('wrong', {'tracon:max_slowdown': 'banana'}, *self.hosts)
        for _again in range(2):
            self.assertEqual('host2', self.host_of(self.boot(
                flavor_id=self.flavor_id)))
            self.write_snapshot(*(base.host(name, base.resident(f'vm-{name}'))
                                  for name in self.hosts))
        lines = [line for line in self.log.output.splitlines() if 'banana' in line]
        self.assertEqual(1, len(lines), lines)
        self.assertIn('aggregate wrong', lines[0])

    def test_a_flavors_limit_comes_before_an_aggregates(self):
        self.write_snapshot(base.host('host1', base.resident('vm-a')),
                            base.host('host2', base.resident('vm-b')))
        self.aggregate('strict', {'tracon:max_slowdown': '1.5'}, *self.hosts)
        self.aggregate('small', {'tracon:mode': 'off'}, 'host3')
        self.flags(group='tracon', on_all_refused='refuse')
        server = self.boot(flavor_id=self.limited_flavor(max_slowdown='100'))
        self.assertIn(self.host_of(server), self.hosts)
        self.assertEqual([], self.records())
