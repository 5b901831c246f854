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

"""Learnt values survive engines; what cannot be read does not cost the rest."""

import dataclasses

import sqlalchemy as sa

from tests.unit.engine.storage import base
from tracon_watcher.engine.storage import repository
from tracon_watcher.engine.storage import tables
from tracon_watcher.placement import queues

KNOWN = queues.LearnedParameters(1.1, 4.0, 0.2, 50.0, 0.1, 0.3, 0.75)
POOL = queues.Pool(0.004, 8.0)


class TestLearntValues(base.StorageCase):

    def test_nothing_was_saved(self):
        self.assertEqual(({}, {}, 0.0), self.storage.learnt.load())

    def test_survives_a_restart(self):
        self.storage.learnt.save({'old': KNOWN}, {}, base.NOW - 300)
        self.storage.learnt.save({'': KNOWN, 'a': queues.UNCHECKED}, {'a': POOL}, base.NOW)
        self.storage.close()
        learnt, pools, saved_at = repository.Storage(self.connect()).learnt.load()
        self.assertEqual({'', 'a'}, set(learnt))
        self.assertEqual(KNOWN, learnt[''])
        self.assertEqual(str(queues.UNCHECKED), str(learnt['a']))
        self.assertEqual(({'a': POOL}, base.NOW), (pools, saved_at))

    def test_a_row_that_somebody_edited(self):
        self.storage.learnt.save(
            {'a': KNOWN, 'b': KNOWN, 'c': dataclasses.replace(KNOWN, gain=2.0)}, {'p': POOL},
            base.NOW)
        for name, text in (('a', '{"gain": 1e9}'), ('b', '{')):
            self.database.write(lambda connection, name=name, text=text: connection.execute(
                sa.update(tables.LEARNT).where(tables.LEARNT.c.name == name).values(
                    document=text)))
        with self.assertLogs('tracon_watcher.engine.storage.records', 'WARNING') as logs:
            learnt, pools, _saved_at = self.storage.learnt.load()
        self.assertEqual((['c'], ['p']), (sorted(learnt), sorted(pools)))
        self.assertIn("'a'", logs.output[0])
        self.assertIn('gain', logs.output[0])
