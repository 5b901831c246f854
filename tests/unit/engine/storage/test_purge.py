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

import math

import sqlalchemy as sa

from tests.unit.engine.storage import base
from tracon_watcher.engine.storage import decisions
from tracon_watcher.engine.storage import repository
from tracon_watcher.engine.storage import tables

DAY = 86400.0
KEEP = repository.Retention(decisions=14, moves=30)


class TestPurge(base.StorageCase):

    def add(self, *days):
        self.storage.decisions.add([decisions.Decision.of(base.decision(base.NOW - day * DAY))
                                    for day in days])

    def test_by_age(self):
        self.add(0, 13.9, 14.1, 100)
        moves = [base.move(f'move-{day}', f'vm-{day}', decided_at=base.NOW - day * DAY)
                 for day in (0, 29, 31)]
        self.storage.moves.add(moves)
        for move in moves:
            self.storage.moves.ended(move.id, move.decided_at, True)
        for day in (0, 15):
            self.storage.audits.put({'audit': f'audit-{day}', 'at': base.NOW - day * DAY})
            self.storage.episodes.put(f'episode-{day}', {
                'host': 'h1', 'vm': 'a', 'began_at': base.NOW - day * DAY,
                'slowdowns_before': {'a': None}})
        for day in (0, 62):
            self.storage.breaches.add(['vm'], 60.0, base.NOW - day * DAY)
        gone = self.storage.purge(KEEP, base.NOW)
        self.assertEqual({'decisions': 2, 'audits': 1, 'episodes': 1, 'moves': 1, 'breaches': 1,
                          'cooldowns': 2}, gone)
        self.assertEqual([base.NOW], [
            one['began_at'] for one in self.storage.episodes.of_vm('a', 'h1')])
        self.assertEqual('audit-0', self.storage.audits.get()['audit'])
        self.assertEqual(2, len(self.storage.decisions.find()))
        self.assertEqual(['move-0', 'move-29'], [one.id for one in self.storage.moves.find()])
        outcomes = self.database.read(lambda connection: connection.scalar(
            sa.select(sa.func.count()).select_from(tables.OUTCOMES)))
        self.assertEqual(4, outcomes)
        self.assertEqual(set(), set(self.storage.purge(KEEP, base.NOW).values()) - {0})

    def test_in_bounded_transactions(self):
        self.add(0, *range(20, 65))
        seen = []
        whole = self.database.write

        def write(work):
            seen.append(whole(work))
            return seen[-1]

        self.database.write = write
        gone = repository.purge(self.database, KEEP, base.NOW, batch=10)
        self.assertEqual([45, [10, 10, 10, 10, 5]], [gone['decisions'], seen[:5]])
        self.add(*range(20, 65))
        with self.subTest('no more than it should in one go'):
            gone = repository.purge(self.database, KEEP, base.NOW, batch=10, batches=2)
            self.assertEqual(20, gone['decisions'])
            self.assertEqual(26, len(self.storage.decisions.find()))

    def test_a_clock_that_was_put_forward(self):
        self.add(0, 1, 20)
        future = base.NOW + 1000 * DAY
        self.assertEqual(1, self.storage.purge(KEEP, future)['decisions'])
        with self.subTest('unless an operator means it'):
            self.assertEqual(2, self.storage.purge(KEEP, future, trusted=True)['decisions'])

    def test_a_scheduler_whose_clock_is_ahead(self):
        self.add(-1000, 0, 1, 20)
        self.assertEqual(1, self.storage.purge(KEEP, base.NOW)['decisions'])

    def test_of_nothing(self):
        self.assertEqual({0}, set(self.storage.purge(KEEP, base.NOW).values()))
        self.assertFalse(math.isnan(KEEP.moves))
