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

import unittest

import hypothesis
from hypothesis import strategies
import numpy as np

from nova_filters import scheduling_result


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
