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

"""A thousand audits in which only noise changes: the tests of tests/unit, with more of them."""

from tests.unit.placement import test_steadiness


class LongBalancedTestCase(test_steadiness.BalancedTestCase):
    # On each of two host types.
    hosts, audits = 6, 500


class LongConvergenceTestCase(test_steadiness.ConvergenceTestCase):
    audits, late, seeds = 120, 4, 4
