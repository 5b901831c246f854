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
import multiprocessing
import random
from unittest import mock

from tests.unit.engine.storage import base
from tracon_watcher.engine.storage import decisions
from tracon_watcher.engine.storage import tables
from tracon_watcher import errors


class TestDecisions(base.StorageCase):

    def setUp(self):
        super().setUp()
        self.decisions = self.storage.decisions

    def add(self, *contents):
        return self.decisions.add([decisions.Decision.of(one) for one in contents])

    def test_comes_back_as_it_was(self):
        content = base.decision(request=None)
        self.assertEqual(1, self.add(content))
        found = self.decisions.get(content['id'])
        self.assertEqual(content, found.document)
        self.assertEqual((content['vm'], None, content['at'], 'create', 'placed', None),
                         (found.vm, found.request, found.at, found.operation, found.outcome,
                          found.chosen))
        self.assertTrue(math.isnan(found.settled_at))
        self.assertIsNone(self.decisions.get('no such'))

    def test_told_twice(self):
        first, second = base.decision(), base.decision()
        self.assertEqual(1, self.add(first))
        self.assertEqual(1, self.add(first, second, {**second, 'outcome': 'other'}))
        self.assertEqual('placed', self.decisions.get(second['id']).outcome)
        self.assertEqual(0, self.add())

    def test_two_processes_are_told_the_same(self):
        contents = [base.decision() for _turn in range(200)]
        context = multiprocessing.get_context('fork')
        results = context.Queue()

        def tell(seed):
            mine = list(contents)
            random.Random(seed).shuffle(mine)
            results.put(sum(self.add(*mine[start:start + 10]) for start in range(0, 200, 10)))

        processes = [context.Process(target=tell, args=(seed,)) for seed in range(2)]
        for process in processes:
            process.start()
        self.assertEqual(200, sum(results.get(timeout=120) for _process in processes))
        for process in processes:
            process.join()
        self.assertEqual(200, len(self.decisions.find(limit=1000)))

    def test_found_by_request_and_vm(self):
        mine = [base.decision(base.NOW + turn, vm='vm-1', request=f'req-{turn % 2}')
                for turn in range(4)]
        self.add(*mine, base.decision(vm='vm-2', request='req-0'))
        self.assertEqual([mine[3]['id'], mine[1]['id']],
                         [one.id for one in self.decisions.find(request='req-1')])
        self.assertEqual([mine[place]['id'] for place in (3, 2, 1, 0)],
                         [one.id for one in self.decisions.find(vm='vm-1')])
        self.assertEqual([mine[2]['id']], [one.id for one in self.decisions.find(
            vm='vm-1', request='req-0', limit=1)])
        self.assertEqual([mine[3]['id']], [one.id for one in self.decisions.find(
            limit=2, naming='req-1')])

    def test_pages(self):
        """Each decision is on one page, also where many were taken at the same time."""
        # Of thirds of a second: numbers whose digits a database might shorten.
        contents = [base.decision(base.NOW + (turn // 7) / 3) for turn in range(50)]
        random.Random(1).shuffle(contents)
        self.add(*contents)
        expected = sorted(((one['at'], one['id']) for one in contents), reverse=True)
        found, marker = [], None
        while page := self.decisions.find(limit=4, marker=marker):
            found += [(one.at, one.id) for one in page]
            marker = page[-1].id
        self.assertEqual(expected, found)
        for options in ({'limit': 0}, {'limit': 1001}, {'marker': 'purged'}):
            with self.assertRaises(errors.InvalidOption):
                self.decisions.find(**options)

    def test_settled(self):
        contents = [base.decision(base.NOW + turn, vm='vm-1') for turn in range(3)]
        self.add(*contents)
        by_vm = base.settled(base.NOW + 1.5, vm='vm-1')
        self.assertEqual(contents[1]['id'], self.decisions.settle(by_vm))
        found = self.decisions.get(contents[1]['id'])
        self.assertEqual(('compute-1', base.NOW + 1.5), (found.chosen, found.settled_at))
        self.assertIsNone(self.decisions.get(contents[2]['id']).chosen)
        by_id = base.settled(base.NOW + 9, None, id=contents[1]['id'])
        self.assertEqual(contents[1]['id'], self.decisions.settle(by_id))
        self.assertIsNone(self.decisions.get(contents[1]['id']).chosen)
        with self.subTest('an older message comes later'):
            self.assertIsNone(self.decisions.settle(by_vm))
            self.assertIsNone(self.decisions.get(contents[1]['id']).chosen)
        with self.subTest('of nothing'):
            self.assertIsNone(self.decisions.settle(base.settled(base.NOW, vm='vm-9')))
            self.assertIsNone(self.decisions.settle(base.settled(base.NOW, id='x')))
            self.assertIsNone(self.decisions.settle(base.settled(base.NOW - 1, vm='vm-1')))

    def test_many_are_settled_in_one_transaction(self):
        contents = [base.decision(vm=f'vm-{number}') for number in range(100)]
        self.add(*contents)
        begun, refused = [], []
        write = self.database.write

        def counted(work):
            begun.append(1)
            return write(work)

        told = [base.settled(base.NOW + 1, id=one['id']) for one in contents]
        with mock.patch.object(self.database, 'write', counted):
            self.assertEqual(100, self.decisions.settle_all(
                [*told[:50], {'schema': 'nonsense'}, *told[50:]], refused.append))
            # What is told again, since the answer came too late, changes nothing.
            self.assertEqual(100, self.decisions.settle_all(told, refused.append))
        self.assertEqual((2, 1), (len(begun), len(refused)))
        self.assertIn('nonsense', str(refused[0]))
        found = self.decisions.find(limit=1000)
        self.assertEqual({('compute-1', base.NOW + 1)},
                         {(one.chosen, one.settled_at) for one in found})

    def test_invalid_ones_are_refused(self):
        for changes, expected in (
                ({'schema': 'tracon-decision/2'}, 'schema is'), ({'id': ''}, 'id is'),
                ({'id': 'x' * 65}, 'id is'), ({'vm': None}, 'vm is None'),
                ({'vm': 'a\0b'}, 'vm is'), ({'at': 'now'}, 'at is'), ({'at': math.nan}, 'at is'),
                ({'at': -1}, 'at is'), ({'at': True}, 'at is True'),
                ({'request': 7}, 'request is 7'), ({'chosen': '\ud800'}, 'chosen is'),
                ({'operation': 'x' * 33}, 'operation is')):
            with self.subTest(changes), self.assertRaisesRegex(errors.InvalidDocument, expected):
                decisions.Decision.of({**base.decision(), **changes})
        for content in (None, [], 'text', {}):
            with self.assertRaises(errors.InvalidDocument):
                decisions.Decision.of(content)
            with self.assertRaises(errors.InvalidDocument):
                self.decisions.settle(content)
        with self.assertRaisesRegex(errors.InvalidDocument, 'vm is None'):
            self.decisions.settle(base.settled(base.NOW))

    def test_numbers_that_json_does_not_have_become_null(self):
        content = base.decision(hosts=[{'host': 'compute-1', 'score': math.nan,
                                        'slowdown': [1.0, math.inf, 2.0]}])
        self.add(content)
        self.assertEqual([{'host': 'compute-1', 'score': None, 'slowdown': [1.0, None, 2.0]}],
                         self.decisions.get(content['id']).document['hosts'])

    def test_texts_of_tenants(self):
        content = base.decision(reasons={'𝔸🖥': 'ß\0\ud800\u2028'}, chosen='compute-🖥')
        self.add(content)
        found = self.decisions.get(content['id'])
        self.assertEqual(content, found.document)
        self.assertEqual('compute-🖥', found.chosen)

    def test_very_long(self):
        content = base.decision(hosts=[{'host': f'compute-{turn}', 'reasons': {'"\\' * 40: turn}}
                                       for turn in range(9000)])
        self.add(content)
        self.assertEqual(content, self.decisions.get(content['id']).document)
        content = base.decision(hosts=['x' * tables.LONGEST])
        with self.assertRaisesRegex(errors.InvalidDocument, 'the length'):
            self.add(base.decision(), content)
        self.assertEqual(1, len(self.decisions.find()))

    def test_deep_ones_do_not_end_the_process(self):
        deep = []
        for _turn in range(100000):
            deep = [deep]
        with self.assertRaises(errors.InvalidDocument):
            self.add(base.decision(hosts=deep))

    def test_nothing_is_read_as_sql(self):
        evil = "x'; DROP TABLE decisions; --"
        self.add(base.decision(vm=evil, request=evil))
        self.assertEqual([evil], [one.vm for one in self.decisions.find(vm=evil, request=evil)])
        self.assertEqual([], self.decisions.find(vm="' OR ''='"))

    def test_edited_by_hand(self):
        content = base.decision()
        self.add(content)
        self.execute("UPDATE decisions SET document = '{'")
        with self.assertRaisesRegex(errors.InvalidDocument, content['id']):
            self.decisions.find()

    def test_are_no_leader_s(self):
        """Each engine takes down what it is told."""
        self.lead('a')
        self.assertEqual(1, self.add(base.decision()))
        self.lead('b')
        self.assertEqual(1, self.add(base.decision()))
