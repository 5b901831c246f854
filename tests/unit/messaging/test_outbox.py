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

"""What waits to be told keeps its order, fits into messages and is bounded."""

import copy
import tracemalloc
import unittest

from tracon_watcher.messaging import outbox
from tracon_watcher.messaging import protocol


class TestOutbox(unittest.TestCase):

    def told(self, box):
        found = []
        for batch in box.batches():
            found.append((batch.method, batch.documents))
            box.discard(batch)
        return found

    def test_documents_of_one_method_are_told_together_and_in_order(self):
        box = outbox.Outbox()
        for method, document in (('a', {'n': 1}), ('a', {'n': 2}), ('b', {'n': 3}),
                                 ('a', {'n': 4})):
            box.put(method, document)
        self.assertEqual([('a', [{'n': 1}, {'n': 2}, {'n': 4}]), ('b', [{'n': 3}])],
                         self.told(box))
        self.assertFalse(box)

    def test_what_became_of_decisions_comes_after_them(self):
        box = outbox.Outbox()
        for number in range(3):
            box.put(protocol.RECORD_DECISIONS, {'decided': number})
            box.put(protocol.SETTLED, {'settled': number})
        self.assertEqual(
            [(protocol.RECORD_DECISIONS, [{'decided': number} for number in range(3)]),
             (protocol.SETTLED, [{'settled': number} for number in range(3)])], self.told(box))
        box.put(protocol.SETTLED, {'settled': 3})
        box.put(protocol.RECORD_DECISIONS, {'decided': 4})
        box.put(protocol.SETTLED, {'settled': 4})
        self.assertEqual([protocol.SETTLED, protocol.RECORD_DECISIONS, protocol.SETTLED],
                         [method for method, _documents in self.told(box)])

    def test_what_is_not_discarded_waits_on(self):
        box = outbox.Outbox()
        box.put('a', {'n': 1})
        next(box.batches())
        self.assertEqual([('a', [{'n': 1}])], self.told(box))

    def test_the_oldest_are_dropped_and_counted(self):
        box = outbox.Outbox(most=2)
        for number in range(5):
            box.put('a', {'n': number})
        self.assertEqual((3, 0), (box.dropped(), box.dropped()))
        self.assertEqual([('a', [{'n': 3}, {'n': 4}])], self.told(box))

    def test_what_was_dropped_meanwhile_is_not_missed(self):
        box = outbox.Outbox(most=1)
        box.put('a', {'n': 0})
        batch = next(box.batches())
        box.put('a', {'n': 1})
        box.discard(batch)
        self.assertEqual([('a', [{'n': 1}])], self.told(box))

    def test_no_batch_is_more_than_is_done_in_time(self):
        box = outbox.Outbox()
        for number in range(250):
            box.put('settled', {'n': number})
        sizes = []
        for batch in box.batches():
            sizes.append(len(batch.documents))
            box.discard(batch)
        self.assertEqual([100, 100, 50], sizes)

    def test_what_waits_is_kept_small(self):
        document = {'hosts': [{'host': f'compute-{number}', 'weight': number / 7, 'refused': False,
                               'slowdown': 1 + number / 300} for number in range(50)]}
        box = outbox.Outbox()
        tracemalloc.start()
        self.addCleanup(tracemalloc.stop)
        begin = tracemalloc.get_traced_memory()[0]
        for _again in range(200):
            box.put('a', copy.deepcopy(document))
        self.assertLess(tracemalloc.get_traced_memory()[0] - begin, 200 * 3000)
        self.assertEqual([document] * 100, next(box.batches()).documents)

    def test_no_batch_is_larger_than_a_message(self):
        box = outbox.Outbox()
        for _again in range(9):
            box.put('a', {'text': 'x' * (protocol.LARGEST_PAYLOAD // 8)})
        box.put('a', {'text': 'x' * protocol.LARGEST_PAYLOAD})
        self.assertEqual(1, box.dropped())
        self.assertEqual([3, 3, 3], [len(documents) for _method, documents in self.told(box)])
