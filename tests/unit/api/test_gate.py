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

import threading
import unittest
from unittest import mock

from tests.unit.api import base
from tracon_watcher.api import explanations
from tracon_watcher.api import faults
from tracon_watcher.placement import attribution


class TestGate(unittest.TestCase):

    def test_one_works_one_waits_and_the_others_are_refused(self):
        one, may_end, worked = explanations.ConcurrencyLimit(at_once=1,
                                                             patience=120.0), threading.Event(), []
        working = threading.Event()

        def work(name):
            with one.turn():
                working.set()
                may_end.wait(120)
                worked.append(name)

        first = threading.Thread(target=work, args=('first',))
        first.start()
        self.assertTrue(working.wait(120))
        second = threading.Thread(target=work, args=('second',))
        second.start()
        # It has taken the one place there is to wait.
        while one._places._value:
            second.join(0.01)
        with self.assertRaises(faults.Unavailable):
            with one.turn():
                self.fail('a third one has its turn')
        may_end.set()
        first.join(120)
        second.join(120)
        self.assertEqual(['first', 'second'], worked)
        with one.turn():
            worked.append('third')
        self.assertEqual(3, len(worked))

    def test_who_waits_too_long_is_refused_and_leaves_its_place(self):
        one = explanations.ConcurrencyLimit(at_once=1, patience=0.01)
        with one.turn():
            for _again in range(3):
                with self.assertRaises(faults.Unavailable):
                    with one.turn():
                        self.fail('a second one has its turn')
        with one.turn():
            self.assertEqual(0, one._room._value)


FULL = faults.Unavailable('full', 5)


class Neighbours(base.ApiCase):
    """Culprits and victims of one VM, which take long to work out on a large pool."""

    def setUp(self):
        super().setUp()
        self.worked = self.useFixture(base.fixtures.MockPatchObject(
            attribution, 'victims', side_effect=attribution.victims)).mock

    def show(self, name):
        return self.ask(f'/v1/vms/{base.identity(name)}')

    def test_they_are_worked_out_once_a_view(self):
        first = self.show('web').json
        self.assertEqual(first, self.show('web').json)
        self.assertEqual(1, self.worked.call_count)
        self.view = base.cloud(self.now)
        self.show('web')
        self.assertEqual(2, self.worked.call_count)

    def test_only_a_few_are_kept(self):
        with mock.patch('tracon_watcher.api.state._NEIGHBOURS', 2):
            for name in ('web', 'db', 'web', 'cron', 'web', 'db'):
                self.assertEqual(200, self.show(name).status_int)
        # The one that was not asked for longest went.
        self.assertEqual(4, self.worked.call_count)

    def test_where_there_is_no_turn_it_is_refused_at_once(self):
        with mock.patch.object(explanations.ConcurrencyLimit, 'turn', autospec=True,
                               side_effect=FULL):
            self.assertEqual(503, self.show('web').status_int)
        self.assertEqual(200, self.show('web').status_int)
        with mock.patch.object(explanations.ConcurrencyLimit, 'turn', autospec=True,
                               side_effect=FULL):
            # What is known needs none.
            self.assertEqual(200, self.show('web').status_int)
