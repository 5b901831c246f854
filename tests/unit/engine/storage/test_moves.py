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

import dataclasses
import math

from tests.unit.engine.storage import base
from tracon_watcher.engine.storage import moves
from tracon_watcher import errors


class TestMoves(base.StorageCase):

    def setUp(self):
        super().setUp()
        self.moves = self.storage.moves

    def test_comes_back_as_it_was(self):
        given = base.move(audit='audit-1', reason='𝔸 breach of 🖥 ends')
        self.assertEqual(1, self.moves.add([given]))
        self.assertEqual(repr(given), repr(self.moves.get(given.id)))
        self.assertEqual(['vm-1', 'vm-2', 'vm-3'], [one.vm for one in given.effects])
        self.assertIsNone(self.moves.get('no such'))

    def test_told_twice(self):
        given = base.move()
        self.moves.add([given])
        self.assertEqual(1, self.moves.add([given, base.move()]))

    def test_carried_out(self):
        given = base.move()
        self.moves.add([given])
        self.assertTrue(self.moves.started(given.id, base.NOW + 10, 'action-1'))
        self.assertFalse(self.moves.started(given.id, base.NOW + 11))
        self.assertEqual(given.id, self.moves.of_action('action-1').id)
        self.assertIsNone(self.moves.of_action('action-2'))
        cooling = self.storage.cooldowns.get('vm-1')
        self.assertEqual((1, base.NOW + 10, base.NOW + 3610),
                         (cooling.moves, cooling.moved_at, cooling.until))
        self.assertTrue(self.moves.ended(given.id, base.NOW + 700, True))
        self.assertFalse(self.moves.ended(given.id, base.NOW + 701, False))
        found = self.moves.get(given.id)
        self.assertEqual((moves.SUCCEEDED, base.NOW + 10, base.NOW + 700),
                         (found.state, found.started_at, found.ended_at))
        self.assertEqual(cooling, self.storage.cooldowns.get('vm-1'))
        self.assertEqual([(300, base.NOW + 1000), (86400, base.NOW + 87100)], [
            (one.delay, one.due_at) for one in self.storage.outcomes.of_move(given.id)])

    def test_end_without_a_beginning(self):
        """As when the engine was away while it began."""
        given = base.move()
        self.moves.add([given])
        self.assertTrue(self.moves.ended(given.id, base.NOW + 60, True))
        self.assertEqual(base.NOW + 60, self.storage.cooldowns.get('vm-1').moved_at)
        self.assertTrue(math.isnan(self.moves.get(given.id).started_at))

    def test_failed(self):
        """Nothing is to be measured; yet the VM was touched, and is left alone."""
        given = base.move()
        self.moves.add([given])
        self.moves.started(given.id, base.NOW)
        self.assertTrue(self.moves.ended(given.id, base.NOW + 60, False))
        self.assertEqual(moves.FAILED, self.moves.get(given.id).state)
        self.assertEqual([], self.storage.outcomes.of_move(given.id))
        self.assertIsNotNone(self.storage.cooldowns.get('vm-1'))

    def test_of_nothing(self):
        self.assertFalse(self.moves.started('no such', base.NOW))
        self.assertFalse(self.moves.ended('no such', base.NOW, True))

    def test_found(self):
        given = [base.move(f'move-{turn}', f'vm-{turn % 2}', decided_at=base.NOW + turn)
                 for turn in range(4)]
        self.moves.add(given)
        self.moves.started('move-2', base.NOW)
        for options, expected in (({}, '3210'), ({'vm': 'vm-1'}, '31'), ({'limit': 2}, '32'),
                                  ({'state': moves.STARTED}, '2'),
                                  ({'since': base.NOW + 2}, '32')):
            with self.subTest(options):
                self.assertEqual(expected, ''.join(
                    one.id[-1] for one in self.moves.find(**options)))
        with self.assertRaises(errors.InvalidOption):
            self.moves.find(limit=0)

    def test_what_does_not_fit(self):
        for changes in ({'number': 'x' * 65}, {'kind': ''}, {'source': 'a\nb'}, {'state': 'gone'},
                        {'audit': 'x' * 65}, {'destination': None}):
            with self.subTest(changes), self.assertRaises(errors.InvalidDocument):
                made = base.move(**{key: value for key, value in changes.items()
                                    if value is not None})
                if None in changes.values():
                    made = dataclasses.replace(made, destination='\0')
                self.moves.add([base.move(), made])
        self.assertEqual([], self.moves.find())
        long = base.move(reason='é\n' * 4000)
        self.moves.add([long])
        self.assertEqual(1000, len(self.moves.get(long.id).reason))
