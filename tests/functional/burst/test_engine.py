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

"""A hundred creates spread while an engine publishes, and it hears of each of them."""

import collections

from tests.functional.burst import base
from tests.functional.publication import engine_case


class BurstTest(engine_case.EngineCase, base.BurstCase):
    """No stock weigher helps, as in the same test with a file."""

    weight_classes = ['nova_filters.interference_weigher.InterferenceWeigher']

    def test_single_creates(self):
        found = self.burst()
        self.assert_both_workers_took_part()
        self.assert_spread(found, most=8, least=2)
        self.wait_for(lambda: len(self.settled) >= self.creates, 60)
        chosen = {one['vm']: one['chosen'] for one in self.settled}
        self.assertEqual(self.creates, len(chosen))
        self.assertEqual(found, collections.Counter(chosen.values()))
        self.assertEqual(set(chosen), {one['vm'] for one in self.decisions})
