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

"""Placements are forgotten, whatever the clock does."""

import unittest

import numpy as np

from nova_filters import assumed_placements
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles


def placement(uuid, at, host='host'):
    return assumed_placements.Placement(uuid, host, 'node', newcomer_profiles.own(np.ones(4)),
                                        limits.NONE, at)


class TestRecord(unittest.TestCase):

    def test_a_sibling_hears_that_one_is_on_a_volume(self):
        for profile in (newcomer_profiles.own(np.ones(4)),
                        newcomer_profiles.own(np.ones(4)).set_apart()):
            record = assumed_placements.Placement('x', 'host', 'node', profile, limits.NONE,
                                                  0.0).to_record()
            self.assertEqual(profile.apart,
                             assumed_placements.Placement.from_record(record).profile.apart)
            # One of an earlier release does not say.
            del record['apart']
            self.assertFalse(assumed_placements.Placement.from_record(record).profile.apart)

    def test_a_sibling_hears_how_long_one_waits_for_its_own_limits(self):
        record = assumed_placements.Placement('x', 'host', 'node',
                                              newcomer_profiles.own(np.ones(4), 0.4),
                                              limits.NONE, 0.0).to_record()
        self.assertEqual(0.4, assumed_placements.Placement.from_record(record).profile.own_wait)
        # One of an earlier release does not say.
        del record['own_wait']
        self.assertEqual(0.0, assumed_placements.Placement.from_record(record).profile.own_wait)


class TestExpiry(unittest.TestCase):

    def setUp(self):
        self.pending = assumed_placements.AssumedPlacements(300.0)
        self.pending.add([placement('old', 0.0), placement('new', 200.0)])
        self.pending.expect(placement('expected', 200.0))

    def kept(self):
        return [one.uuid for one in self.pending.all()] + sorted(self.pending._expected)

    def test_they_are_kept_for_their_time(self):
        self.pending.expire(300.0)
        self.assertEqual(['old', 'new'], self.kept())
        self.pending.expire(301.0)
        self.assertEqual(['new'], self.kept())

    def test_a_clock_that_is_set_back_keeps_none(self):
        self.pending.expire(-86400.0)
        self.assertEqual([], self.kept())

    def test_they_are_forgotten_though_the_background_does_not_work(self):
        self.assertEqual(['new'], [one.uuid for one in self.pending.all(301.0)])
        self.assertEqual([], self.pending.all(-86400.0))

    def test_there_are_so_many_at_most_and_the_newest_are_kept(self):
        self.pending.add([placement('old', 250.0)])
        self.pending.add([placement(f'vm-{index}',
                                    250.0) for index in range(assumed_placements.MOST - 1)])
        self.assertEqual(['old', 'vm-0'], [one.uuid for one in self.pending.all()][:2])
        self.assertEqual(assumed_placements.MOST, len(self.pending.all()))

    def test_what_is_expected_is_forgotten_though_it_is_not_asked_for(self):
        self.pending.expire(210.0)
        self.assertEqual(['old', 'new', 'expected'], self.kept())
        self.pending.expire(211.0)
        self.assertNotIn('expected', self.kept())


class TestCame(unittest.TestCase):

    def test_only_what_came_to_another_host_since_is_forgotten(self):
        found = assumed_placements.AssumedPlacements(300.0)
        found.add([placement('failed', 0.0, 'a'), placement('done', 0.0, 'a'),
                   placement('later', 20.0, 'a')])
        self.assertEqual(['failed'], found.came(
            [('failed', 'b'), ('done', 'a'), ('later', 'b'), ('unknown', 'b')], 10.0))
        self.assertEqual(['done', 'later'], [one.uuid for one in found.all()])
