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

"""What the story of the test cloud says, and draws, of what was seen (invented sights)."""

import dataclasses
import math
import unittest

from tracon_lab.cmd import cloud_plot
from tracon_lab.testcloud import choice
from tracon_lab.testcloud import hidden
from tracon_lab.testcloud import operations
from tracon_lab.testcloud import story

SEEN = story.Sight(12.0, story.VICTIM, 'cmp1', 1.9, 1.8, 1.7, story.CULPRIT, 97.0)
OUTCOME = story.Outcome(
    [SEEN], 10.0, 12.0, choice.Choice('cmp1', {'cmp2': 0.75, 'cmp1': 0.8125}),
    choice.Choice('cmp2', {'cmp1': 0.25, 'cmp2': None}, ('cmp1',)), [('shop', 'cmp1', 'cmp2')])


class TestOutcome(unittest.TestCase):

    def test_what_came_of_it(self):
        self.assertEqual(
            ['batch was named as the culprit of shop after 12 s, which is 1.2 polling intervals',
             'a new VM got cmp1 (weights: cmp1 0.81, cmp2 0.75) before, and '
             'cmp2 (weights: cmp1 refused, cmp2 unknown) afterwards',
             'the audit recommends to move shop from cmp1 to cmp2'], OUTCOME.told())

    def test_what_did_not_come_about_is_said(self):
        told = dataclasses.replace(OUTCOME, named_after=None, moves=[]).told()
        self.assertEqual('batch was not named', told[0])
        self.assertEqual('the audit recommends no move', told[-1])

    def test_no_culprit_is_named_for_next_to_nothing(self):
        self.assertTrue(story._named(SEEN))
        for change in ({'observed': 1.1}, {'predicted': 1.1}, {'observed': None},
                       {'predicted': None}, {'culprit': 'archive'}, {'culprit': ''}):
            with self.subTest(change):
                self.assertFalse(story._named(dataclasses.replace(SEEN, **change)))

    def test_the_cast_is_the_same_to_nova(self):
        places = [place for place, _unit in story.CAST.values()]
        self.assertEqual(places.count(0), places.count(1))
        self.assertEqual(story.CAST[story.CULPRIT][0], story.CAST[story.VICTIM][0])


class TestChoice(unittest.TestCase):

    ROWS = [{'Host': 'cmp1', 'Weight': 0.25, 'Verdict': 'refused', 'Decision': 'one'},
            {'Host': 'cmp2', 'Weight': 0.75, 'Verdict': 'chosen', 'Decision': 'one'}]

    def test_what_was_decided(self):
        self.assertEqual(choice.Choice('cmp2', {'cmp1': 0.25, 'cmp2': 0.75}, ('cmp1',)),
                         choice.read('cmp2', self.ROWS))

    def test_what_would_be_decided_now_is_no_decision(self):
        self.assertIsNone(choice.read('cmp2', [{**row, 'Decision': None} for row in self.ROWS]))
        self.assertIsNone(choice.read('cmp2', []))


class TestPlot(unittest.TestCase):

    def test_a_panel_for_each_vm_and_a_gap_for_what_is_unknown(self):
        other = dataclasses.replace(SEEN, name='batch', measured=None)
        figure = cloud_plot.draw(dataclasses.replace(OUTCOME, sights=[SEEN, other]))
        axes = figure.axes
        self.assertEqual(['shop on cmp1', 'batch on cmp1'],
                         [one.get_title(loc='left') for one in axes])
        measured = [list(one.lines[0].get_ydata()) for one in axes]
        self.assertEqual([1.9], measured[0])
        self.assertTrue(math.isnan(measured[1][0]))


class TestPlayers(unittest.TestCase):

    def test_each_play_may_delete_what_the_other_has_left(self):
        self.assertLessEqual({*story.CAST, *hidden.CAST}, set(operations.PLAYERS))


class TestHidden(unittest.TestCase):

    OUTCOME = hidden.Outcome(
        [hidden.Look(after, host, 'quiet', ratio, 1.0, 1.0, 1.0, 1.1) for after, host, ratio in (
            (-5.0, 'cmp1', 1.0), (-5.0, 'cmp2', None), (30.0, 'cmp1', 8.0))],
        'cmp1', 30.4, choice.Choice('cmp1', {'cmp1': 0.9}), choice.Choice('cmp2', {'cmp2': 0.9}))

    def test_what_came_of_it(self):
        self.assertEqual(
            ['the contention of cmp1 was found after 30 s',
             'a new VM got cmp1 (weights: cmp1 0.90) before, and cmp2 (weights: cmp2 0.90) '
             'afterwards'], self.OUTCOME.told())
        missed = dataclasses.replace(self.OUTCOME, found_after=None)
        self.assertEqual('the contention of cmp1 was not found', missed.told()[0])

    def test_a_panel_for_each_host_and_a_gap_for_what_is_unknown(self):
        axes = cloud_plot.draw_hidden(self.OUTCOME).axes
        self.assertEqual(['cmp1, whose memory is taken', 'cmp2'],
                         [one.get_title(loc='left') for one in axes])
        felt = [list(one.lines[0].get_ydata()) for one in axes]
        self.assertEqual([1.0, 8.0], felt[0])
        self.assertTrue(math.isnan(felt[1][0]))
