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
import unittest

import hypothesis
from hypothesis import strategies
from nova import objects
import numpy as np

from nova_filters import policy
from nova_filters import scheduling_result
from tests.unit.nova_filters import base
from tracon_watcher.placement import limits


class TestLargest(unittest.TestCase):

    @hypothesis.given(strategies.lists(strategies.integers(0, 9), max_size=60))
    @hypothesis.settings(deadline=None)
    def test_they_are_those_of_a_stable_sort(self, values):
        values = np.array(values, dtype=float)
        np.testing.assert_array_equal(
            np.argsort(-values, kind='stable')[:scheduling_result.WORST],
            scheduling_result._largest(values))

    @hypothesis.given(strategies.lists(strategies.tuples(
        strategies.integers(1, 9), strategies.floats(-1e-13, 1e-13)), max_size=60))
    @hypothesis.settings(deadline=None)
    def test_rounding_does_not_order_them(self, values):
        exact = np.array([value for value, _change in values], dtype=float)
        changed = exact * (1 + np.array([change for _value, change in values]))
        np.testing.assert_array_equal(scheduling_result._largest(exact),
                                      scheduling_result._largest(changed))


class AggregatesTest(base.JudgeCase):
    """The log record names the aggregates that the limit and the mode come from."""

    def setUp(self):
        super().setUp()
        self.write({'a': {'vm-a': None}, 'b': {'vm-b': None}, 'c': {'vm-c': 1.1}, 'd': {}})
        gold, silver, strict = (objects.Aggregate(name=name, metadata=metadata)
                                for name, metadata in (
            ('gold', {limits.MAX_SLOWDOWN: '1.5', policy.MODE_KEY: 'enforce'}),
            ('silver', {limits.MAX_SLOWDOWN: '3'}), ('strict', {policy.MODE_KEY: 'enforce'})))
        self.states = [base.host_state('a', ['vm-a'], [gold, silver]),
                       base.host_state('b', ['vm-b'], [strict]),
                       base.host_state('c', ['vm-c'], [gold]), base.host_state('d')]

    def logged(self, extra_specs=None, **options):
        """Return the aggregates of limit and mode by host of the record of one request."""
        judge = self.judge(**options)
        judge.passing(self.states, base.request_spec(extra_specs))
        record = self.log.output.splitlines()[-1]
        self.assertIn('Interference of instance', record)
        return {one['host']: (one['vm'], one['limit_aggregates'], one['mode_aggregates'])
                for one in json.loads(record[record.index('{'):])['worst']}

    def test_of_an_aggregate_and_of_options(self):
        self.assertEqual(
            {'a': ('newcomer', ['gold'], ['gold']), 'b': ('newcomer', [], ['strict']),
             'c': ('vm-c', None, ['gold'])},
            self.logged(mode='advise', limits=limits.Limits(1.5)))

    def test_the_flavor_comes_first(self):
        self.assertEqual(('newcomer', [], ['gold']),
                         self.logged({limits.MAX_SLOWDOWN: '1.5'}, mode='advise')['a'])

    def test_the_mode_of_options(self):
        self.states[1].aggregates = []
        self.assertEqual(('newcomer', [], []), self.logged(limits=limits.Limits(1.5))['b'])
