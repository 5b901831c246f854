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

"""More journeys than tests/unit makes."""

import unittest

import hypothesis

from tests.unit.placement import test_prospect


class LongProspectTestCase(unittest.TestCase):

    @hypothesis.given(test_prospect.journeys())
    @hypothesis.settings(deadline=None, max_examples=80)
    def test_after_every_move_it_is_as_if_predicted_again(self, journey):
        test_prospect.ProspectTestCase().check_journey(journey)
