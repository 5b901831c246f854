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

"""The soak's synthetic truth: what a move brings, at each moment."""

import dataclasses
import time
import unittest
from unittest import mock

from tests.soak import world

#: Of which five on a host need a little more than all of its cores.
KIND = dataclasses.replace(world.BIG, share=0.2)


class TestGains(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.now = 1000.0
        self.enterContext(mock.patch.object(
            world, 'time', mock.Mock(wraps=time, time=lambda: self.now)))
        self.world = world.World(4, 0, hot=0.0)
        for host, count in ((0, 5), (1, 4)):
            for number in range(count):
                self.world.create(f'{host}-{number}', KIND, host)

    def gains(self):
        return [round(self.world.gains([('0-0', 0, 1)], at)[0], 3)
                for at in self.world.moments((0, 1), 1010.0, 1030.0)]

    def test_what_lasted_for_a_moment_is_a_moment(self):
        self.now = 1020.0
        self.world.delete('1-0')
        self.now = 1020.1
        self.world.create('1-4', KIND, 1)
        self.world.create('2-0', KIND, 2)
        # From 5 and 4 to 4 and 5 is nothing; from 5 and 3 to 4 and 4 is something.
        before, between, after = self.gains()
        self.assertEqual((0.0, 0.0), (before, after))
        self.assertGreater(between, 0.1)

    def test_what_changed_before_or_after_is_none(self):
        for self.now in (1005.0, 1035.0):
            self.world.create(f'1-{self.now}', KIND, 1)
        self.assertEqual(1, len(self.gains()))
        self.assertLess(self.gains()[0], 0)
