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

"""What is worked out of a view is worked out once, and goes when the view goes."""

import gc
import threading
import unittest
from unittest import mock
import weakref

import numpy as np

from tests.unit.api import base
from tracon_watcher.api import faults
from tracon_watcher.api import state as states
from tracon_watcher.placement import attribution


class States(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.now = 1e9
        self.view = base.cloud(self.now)
        self.states = states.States(lambda: self.view, lambda: self.now)

    def test_once_for_each_view(self):
        with mock.patch.object(attribution, 'find_culprits', autospec=True,
                               side_effect=attribution.find_culprits) as find:
            threads = [threading.Thread(target=lambda: self.states.now().culprits())
                       for _thread in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(1, find.call_count)
            self.states.prepare()
            self.assertEqual(1, find.call_count)
            self.view = base.cloud(self.now, version=8)
            self.states.prepare()
            self.states.now().culprits()
            self.assertEqual(2, find.call_count)

    def test_view_goes_when_the_engine_lets_it_go(self):
        self.states.prepare()
        self.states.now().projects()
        gone = weakref.ref(self.view)
        self.assertEqual(1, len(self.states._kept))
        self.view = None
        gc.collect()
        self.assertIsNone(gone())
        self.assertEqual({}, self.states._kept)
        self.assertRaises(faults.Unavailable, self.states.now)
        self.states.prepare()

    def test_staleness_is_of_the_request_not_of_the_view(self):
        self.assertTrue(self.states.now().present().known.any())
        self.now += 601
        self.assertFalse(self.states.now().present().known.any())
        self.now -= 601
        self.assertTrue(self.states.now().present().known.any())

    def test_slowdown_now_is_what_is_observed_where_it_is(self):
        state = self.states.now()
        row = state.cluster.resident_index[base.identity('web')]
        self.assertEqual(1.4, state.slowdown()[row])
        predicted = np.exp(state.present().log_response[0])
        np.testing.assert_array_equal(np.delete(predicted, row),
                                      np.delete(state.slowdown(), row))

    def test_times_and_numbers(self):
        self.assertIsNone(states.iso(None))
        self.assertIsNone(states.iso(0.0))
        self.assertEqual('2001-09-09T01:46:40Z', states.iso(1e9))
        self.assertIsNone(states.number(np.inf))
        self.assertEqual(0.3333, states.number(1 / 3))
        self.assertEqual([], states.rank(np.array([], dtype=str)).tolist())
