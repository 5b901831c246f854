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

import numpy as np

from tracon_watcher import errors
from tracon_watcher.prediction import anchored
from tracon_watcher.prediction import interval
from tracon_watcher.prediction import store


def invented():
    """Return a small invented model; nothing of it was measured."""
    quadratic = np.zeros((4, 4))
    quadratic[2, 2] = 0.2
    hinges = anchored.Hinges(np.array([[0.0, 0, 1, 1]]), np.array([[0.0, 0, 1, 1]]),
                             np.array([1.0]), np.array([0.5]), np.array([[0.0, 0, 0.3, 0]]))
    hull = anchored.Hull(np.zeros(4), np.array([3000.0, 1500, 1, 0.6]),
                         np.array([2500.0, 1200, 1, 0.6]))
    width = interval.Interval(0.05, 0.1, np.array([0.2, 0.5, 0.8]), np.array([-1.0, 0.0, 1.2]))
    return anchored.AnchoredModel(
        'slowdown', 'invented', np.array([3000.0, 1500, 1, 0.6]),
        np.array([0.1, 0.1, 0.3, 0.2]), quadratic, np.full((4, 4), 0.05), hinges, hull, width,
        {'points': 0}, {})


class TestStore(unittest.TestCase):

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, 'model.json')
        self.model = invented()
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
                ('negative slope', lambda c: c['linear'].__setitem__(2, -0.9),
                 r'linear is .*less interference \(guest_cpu\)'),
                ('lopsided', lambda c: c['quadratic'][0].__setitem__(1, 0.5),
                 'quadratic is .*symmetric'),
                ('text', lambda c: c['capacity'].__setitem__(1, 'many'),
                 r"capacity\[1\] is 'many': expected a finite number"),
                ('zero capacity', lambda c: c['capacity'].__setitem__(0, 0),
                 r'capacity\[0\] is 0'),
                ('short', lambda c: c['linear'].pop(), 'linear is .*list of 4 entries'),
                ('hull', lambda c: c['hull']['target_minimum'].__setitem__(0, 9e9),
                 'hull.target_minimum is .*above target_maximum'),
                ('hinges', lambda c: c['hinges']['weight'].append(1.0),
                 'hinges.weight is .*list of 1 entries'),
                ('quantiles', lambda c: c['interval']['quantiles'].reverse(),
                 'interval.quantiles is .*rise'),
                ('response', lambda c: c.update(response='speed'), "response is 'speed'"),
                ('schema', lambda c: c.update(schema='tracon-model/9'), 'schema is'),
                ('missing', lambda c: c.pop('capacity'), 'capacity is None: the field is missing'),
                ('misspelt', lambda c: c.update(hinge=[]), r'hinge is \[\]: unknown field'),
                ('order', lambda c: c['characteristics'].reverse(), 'characteristics is'),
                ('only the seal', lambda c: c['linear'].__setitem__(2, 0.31),
                 'checksum is .*changed after it was written')):
            with self.subTest(name):
                store.save(self.model, self.path)
                self.edit(change)
                self.refused(expected)

    def test_not_a_number(self):
        with open(self.path, encoding='utf-8') as stream:
            text = stream.read()
        with open(self.path, 'w', encoding='utf-8') as stream:
            stream.write(text.replace('"slope": 0.1', '"slope": NaN'))
        self.refused("a number is 'NaN'")
