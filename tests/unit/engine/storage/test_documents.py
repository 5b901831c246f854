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

import json
import math

from tests import synthetic
from tests.unit.engine.storage import base
from tracon_watcher.engine.storage import errors as storage_errors
from tracon_watcher.engine.storage import plain
from tracon_watcher import errors
from tracon_watcher.prediction import store


def text(response='slowdown', host_type='synthetic', **options):
    """Return a model as a file has it."""
    made = synthetic.model(response, host_type, **options)
    return json.dumps(made.to_document(), indent=1, allow_nan=False) + '\n'


class TestModels(base.StorageCase):

    def setUp(self):
        super().setUp()
        self.models = self.storage.models

    def add(self, *options, origin='lab', **named):
        return self.models.add(text(*options, **named), origin, base.NOW)

    def test_comes_back_as_it_was(self):
        given = text()
        stored = self.models.add(given, 'refit', base.NOW, {'pairs': 0.12, 'noise': math.nan})
        self.assertEqual(('synthetic', 'slowdown', 1, given, 'refit', False),
                         (stored.host_type, stored.response, stored.version, stored.text,
                          stored.origin, stored.active))
        self.assertEqual({'pairs': 0.12, 'noise': None}, stored.errors)
        again = store.from_content(stored.content, 'the database')
        self.assertEqual(synthetic.model().to_document(), again.to_document())
        self.assertEqual(stored, self.models.get(stored.id))

    def test_versions_count_by_host_type_and_response(self):
        found = [self.add(response, host_type).version for response, host_type in (
            ('slowdown', 'a'), ('slowdown', 'a'), ('iops_ratio', 'a'), ('slowdown', 'b'),
            ('slowdown', 'A'), ('slowdown', 'a'))]
        self.assertEqual([1, 2, 1, 1, 1, 3], found)
        self.assertEqual([3, 2], [one.version for one in self.models.versions(
            'a', 'slowdown', limit=2)])

    def test_invalid_ones_are_refused(self):
        edited = json.loads(text())
        edited['coefficients'][0][2] = 0.31
        other = json.loads(text())
        other['form'] = 'polynomial'
        for given, origin, expected in (
                (json.dumps(edited), 'lab', 'checksum'), (text()[:-200], 'lab', 'no valid JSON'),
                ('[]', 'lab', 'expected a JSON object'), (json.dumps(other), 'lab', 'form is'),
                (text().replace('"slope": 0.05', '"slope": NaN'), 'lab', 'finite'),
                (text(), 'guesswork', 'origin is'),
                (text() + ' ' * plain.LONGEST, 'lab', 'the length'),
                (text().replace('synthetic', '\ud800'), 'lab', 'expected UTF-8'),
                (text(host_type='a\0b'), 'lab', 'host_type'),
                (text(host_type='x' * 256), 'lab', 'host_type')):
            with self.subTest(expected), self.assertRaisesRegex(errors.InvalidDocument, expected):
                self.models.add(given, origin, base.NOW)
        self.assertEqual([], self.models.versions('synthetic', 'slowdown'))

    def test_longer_than_64_kib_and_beyond_the_basic_plane(self):
        made = synthetic.model(host_type='größer 🖥 𝔸')
        made.training['note'] = '🖥' * 300000
        given = json.dumps(made.to_document(), ensure_ascii=False)
        self.assertGreater(len(given.encode()), 2**20)
        stored = self.models.add(given, 'lab', base.NOW)
        self.assertEqual(given, self.models.get(stored.id).text)
        self.assertEqual('größer 🖥 𝔸', self.models.get(stored.id).host_type)

    def test_activated_together(self):
        term = self.lead()
        first = [self.add('slowdown').id, self.add('iops_ratio').id]
        second = [self.add('slowdown').id, self.add('iops_ratio').id]
        other = self.add('slowdown', 'other').id
        self.assertEqual([], self.models.active())
        for chosen in (first, second, [other], [first[0]]):
            self.models.activate(term, chosen)
        self.assertEqual([other, second[1], first[0]], [one.id for one in sorted(
            self.models.active(), key=lambda one: (one.host_type, one.response))])
        self.assertTrue(all(one.active for one in self.models.active()))

    def test_one_that_is_not_there_activates_none(self):
        term = self.lead()
        old, new = self.add().id, self.add().id
        self.models.activate(term, [old])
        with self.assertRaisesRegex(errors.InvalidOption, '4711'):
            self.models.activate(term, [new, 4711])
        self.assertEqual([old], [one.id for one in self.models.active()])
        with self.assertRaisesRegex(errors.InvalidOption, '4711'):
            self.models.get(4711)

    def test_only_the_leader_activates(self):
        old = self.lead('a')
        number = self.add().id
        self.lead('b')
        with self.assertRaises(storage_errors.NoLongerLeader):
            self.models.activate(old, [number])
        self.assertEqual([], self.models.active())

    def test_the_database_itself_allows_one_active_version(self):
        first, second = self.add().id, self.add().id
        self.models.activate(self.lead(), [first])
        with self.assertLogs('oslo_db.api', 'ERROR'):
            with self.assertRaises(storage_errors.StorageFailed):
                self.execute(f'UPDATE models SET active = TRUE WHERE id = {second}')
