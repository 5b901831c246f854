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

from tracon_watcher.placement import cooldown

RULE = cooldown.Rule(900.0)


class TestCooldown(unittest.TestCase):

    def chain(self, *moments):
        """Return the cooldown after moves at some moments."""
        found = None
        for at in moments:
            found = RULE.after(found, 'vm', at)
        return found

    def test_first(self):
        found = self.chain(1000.0)
        self.assertEqual(cooldown.Cooldown('vm', 1, 1000.0, 1900.0), found)
        self.assertEqual([900.0, 1.0, 0.0, 0.0],
                         [found.remaining(now) for now in (1000, 1899, 1900, 1e9)])

    def test_doubles_up_to_six_hours(self):
        at, found, lengths = 0.0, None, []
        for _turn in range(2000):
            found = RULE.after(found, 'vm', at)
            lengths.append(found.until - at)
            at = found.until
        self.assertEqual([900, 1800, 3600, 7200, 14400, 21600], lengths[:6])
        self.assertEqual({21600.0}, set(lengths[6:]))

    def test_moved_during_its_cooldown_by_others(self):
        self.assertEqual((2, 1400.0 + 1800), (self.chain(1000.0, 1400.0).moves,
                                              self.chain(1000.0, 1400.0).until))

    def test_the_same_move_told_several_times(self):
        self.assertEqual(self.chain(1000.0), self.chain(1000.0, 1000.0, 1010.0, 1300.0, 400.0))

    def test_left_alone_for_long(self):
        self.assertEqual(2, self.chain(0.0, 900 + 21599.0).moves)
        self.assertEqual(1, self.chain(0.0, 900 + 21600.0).moves)

    def test_a_clock_that_was_put_back(self):
        """A VM does not stay for a year because the clock was a year ahead."""
        found = self.chain(1e9)
        self.assertEqual(900.0, found.remaining(1e9 - 365 * 86400))
