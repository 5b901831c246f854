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
import os
import tempfile
import unittest

from tests.unit.models import pairs
from tracon_watcher import errors
from tracon_watcher.prediction import store


class TestStore(unittest.TestCase):

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, 'model.json')
        self.model = pairs.model()
        store.save(self.model, self.path)

    def edit(self, change):
        with open(self.path, encoding='utf-8') as stream:
            content = json.load(stream)
        change(content)
        with open(self.path, 'w', encoding='utf-8') as stream:
            json.dump(content, stream)

    def refused(self, expected):
        with self.assertRaisesRegex(errors.InvalidDocument, expected) as caught:
            store.load(self.path)
        self.assertIn(self.path, str(caught.exception))

    def test_round_trip(self):
        again = store.load(self.path)
        self.assertEqual(self.model.to_document(), again.to_document())
        self.assertEqual(['model.json'], os.listdir(os.path.dirname(self.path)))
        self.assertEqual(again.to_document(), store.load_any(self.path).to_document())

    def test_truncated(self):
        with open(self.path, 'r+', encoding='utf-8') as stream:
            stream.truncate(200)
        self.refused('no valid JSON .*truncated')

    def test_no_text(self):
        with open(self.path, 'wb') as stream:
            stream.write(b'\xff\xfe\x00')
        self.refused('cannot be read')
        self.path += '.nowhere'
        self.refused('cannot be read')

    def test_edited_values_are_named(self):
        for name, change, expected in (
                ('crowding', lambda c: c.update(crowding=1.5), r'crowding is 1\.5'),
                ('ceiling', lambda c: c.update(ceiling=-0.1), r'ceiling is -0\.1'),
                ('text', lambda c: c['capacity'].__setitem__(1, 'many'),
                 r"capacity\[1\] is 'many': expected a finite number"),
                ('zero capacity', lambda c: c['capacity'].__setitem__(0, 0),
                 r'capacity\[0\] is 0'),
                ('short', lambda c: c['coefficients'].pop(),
                 'coefficients is .*list of 15 entries'),
                ('hull', lambda c: c['hull']['target_minimum'].__setitem__(0, 9e9),
                 'hull.target_minimum is .*above target_maximum'),
                ('quantiles', lambda c: c['interval']['quantiles'].reverse(),
                 'interval.quantiles is .*rise'),
                ('response', lambda c: c.update(response='speed'), "response is 'speed'"),
                ('schema', lambda c: c.update(schema='tracon-model/9'), 'schema is'),
                ('missing', lambda c: c.pop('capacity'), 'capacity is None: the field is missing'),
                ('misspelt', lambda c: c.update(crowd=[]), r'crowd is \[\]: unknown field'),
                ('misspelt in the hull', lambda c: c['hull'].update(minimum=[]),
                 r'hull.minimum is \[\]: unknown field'),
                ('misspelt in the interval', lambda c: c['interval'].update(level=[]),
                 r'interval.level is \[\]: unknown field'),
                ('order', lambda c: c['characteristics'].reverse(), 'characteristics is'),
                ('only the seal', lambda c: c['coefficients'][0].__setitem__(2, 0.31),
                 'checksum is .*changed after it was written')):
            with self.subTest(name):
                store.save(self.model, self.path)
                self.edit(change)
                self.refused(expected)

    def test_not_a_number(self):
        with open(self.path, encoding='utf-8') as stream:
            text = stream.read()
        with open(self.path, 'w', encoding='utf-8') as stream:
            stream.write(text.replace('"slope": 0.05', '"slope": NaN'))
        self.refused("a number is 'NaN'")
