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

"""Single values put together to samples (made up)."""

import unittest

import hypothesis
from hypothesis import strategies as st
import numpy as np

from tracon_watcher.telemetry import samples

NAN = float('nan')


class TestSamples(unittest.TestCase):

    def test_values_of_a_resource_and_time_are_one_sample(self):
        found = samples.Samples(('a', 'b'))
        found.add('y', 1, [10.0, 20.0], [1.0, 2.0])
        found.add('x', 0, [20.0], [3.0])
        found.add('y', 0, [20.0, 15.0], [4.0, 5.0])
        result = found.readings(0.0, 100.0)
        self.assertEqual(('y', 'x'), result.resources)
        np.testing.assert_array_equal([0, 0, 0, 1], result.row)
        np.testing.assert_array_equal([10, 15, 20, 20], result.at)
        np.testing.assert_array_equal([[NAN, 1], [5, NAN], [4, 2], [3, NAN]], result.values)

    def test_who_has_nothing_in_time_is_not_there(self):
        found = samples.Samples(('a',))
        found.add('early', 0, [9.0], [1.0])
        found.add('in', 0, [10.0], [1.0])
        found.add('late', 0, [20.0], [1.0])
        found.add('nothing', 0, [], [])
        found.add('unknown', 0, [11.0], [NAN])
        result = found.readings(10.0, 20.0)
        self.assertEqual(('in',), result.resources)
        np.testing.assert_array_equal([0], result.row)

    def test_of_two_values_the_larger_counts(self):
        found = samples.Samples(('a',))
        for value in (4.0, 7.0, NAN, 5.0):
            found.add('x', 0, [1.0], [value])
        np.testing.assert_array_equal([[7.0]], found.readings(0, 9).values)

    def test_parts_with_other_resources_and_other_meters(self):
        one, two = samples.Samples(('b',)), samples.Samples(('c', 'a'))
        one.add('x', 0, [1.0], [2.0])
        two.add('y', 0, [1.0], [3.0])
        two.add('x', 1, [5.0], [4.0])
        result = samples.join([one.readings(0, 9), two.readings(0, 9)], ['a', 'b', 'c'])
        self.assertEqual((('x', 'y'), ('a', 'b', 'c')), (result.resources, result.meters))
        np.testing.assert_array_equal([0, 1, 0], result.row)
        np.testing.assert_array_equal([[NAN, 2, NAN], [NAN, NAN, 3], [4, NAN, NAN]],
                                      result.values)

    def test_nothing(self):
        result = samples.join([], ('a', 'b'))
        self.assertEqual(((), (0,), (0, 2)), (result.resources, result.at.shape,
                                              result.values.shape))
        empty = samples.Samples(('a', 'b')).readings(0, 9)
        self.assertEqual((0, 2), samples.join([empty, empty], ('a', 'b')).values.shape)

    @hypothesis.given(st.lists(st.tuples(
        st.sampled_from('xyz'), st.integers(0, 1), st.integers(0, 5), st.integers(0, 99)),
        unique_by=lambda value: value[:3]), st.randoms(use_true_random=False))
    def test_every_value_is_where_it_belongs(self, values, random):
        random.shuffle(values)
        found = samples.Samples(('a', 'b'))
        for resource, column, at, value in values:
            found.add(resource, column, [float(at)], [float(value)])
        result = found.readings(1.0, 5.0)
        there = {(result.resources[row], column, at, line[column])
                 for row, at, line in zip(result.row, result.at, result.values)
                 for column in range(2) if not np.isnan(line[column])}
        self.assertEqual({value for value in values if 1 <= value[2] < 5}, there)
        times = {(resource, at) for resource, column, at, value in values if 1 <= at < 5}
        self.assertEqual(len(times), len(result.row))
