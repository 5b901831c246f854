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

import numpy as np

from tests.unit import folder
from tracon_lab.models import application
from tracon_lab.models import polynomial
from tracon_lab.models import store
from tracon_watcher import errors


class TestStore(folder.FolderCase):

    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.folder, 'model.json')
        hull = application.Hull(np.zeros(4), np.ones(4), np.full(4, 2.0))
        self.model = polynomial.PolynomialModel(
            application.Head('slowdown', 'synthetic', 'web', hull, {'points': 9}, {}),
            np.ones(8), np.eye(8)[:2], np.array([0.5, 0.25]), 1.0)
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
        self.assertFalse([name for name in os.listdir(self.folder) if name.startswith('.')])

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
                ('text', lambda c: c['scale'].__setitem__(1, 'many'),
                 r"scale\[1\] is 'many': expected a finite number"),
                ('zero scale', lambda c: c['scale'].__setitem__(0, 0), r'scale\[0\] is 0'),
                ('short', lambda c: c['powers'].pop(), 'powers is .*list of 2 entries'),
                ('hull', lambda c: c['hull']['target_minimum'].__setitem__(0, 9e9),
                 'hull.target_minimum is .*above target_maximum'),
                ('response', lambda c: c.update(response='speed'), "response is 'speed'"),
                ('schema', lambda c: c.update(schema='tracon-model/9'), 'schema is'),
                ('form', lambda c: c.update(form='pairwise'), "form is 'pairwise'"),
                ('missing', lambda c: c.pop('scale'), 'scale is None: the field is missing'),
                ('misspelt', lambda c: c.update(power=[]), r'power is \[\]: unknown field'),
                ('misspelt in the hull', lambda c: c['hull'].update(minimum=[]),
                 r'hull.minimum is \[\]: unknown field'),
                ('order', lambda c: c['characteristics'].reverse(), 'characteristics is'),
                ('only the seal', lambda c: c.update(intercept=1.5),
                 'checksum is .*changed after it was written')):
            with self.subTest(name):
                store.save(self.model, self.path)
                self.edit(change)
                self.refused(expected)

    def test_not_a_number(self):
        with open(self.path, encoding='utf-8') as stream:
            text = stream.read()
        with open(self.path, 'w', encoding='utf-8') as stream:
            stream.write(text.replace('"intercept": 1.0', '"intercept": NaN'))
        self.refused("a number is 'NaN'")
