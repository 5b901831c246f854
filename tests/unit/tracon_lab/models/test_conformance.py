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

"""One suite over all stored models."""

import json
import os
import tempfile
import unittest

import numpy as np

from tests.unit.tracon_lab.models import synthetic
from tracon_lab.models import dataset
from tracon_lab.models import fit
from tracon_lab.models import store


class TestStoredModels(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.points = synthetic.build(generator=6, backgrounds=24,
                                     names=('cpu', 'randread', 'mixed'))
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'synthetic.csv')
            synthetic.write(path, cls.points)
            datasets = [dataset.read(path)]
            cls.models = fit.application_models(datasets)
            cls.again = []
            for model in cls.models:
                store.save(model, os.path.join(folder, 'model.json'))
                cls.again.append(store.load(os.path.join(folder, 'model.json')))

    def each(self):
        """Return each model, what was read again of it, and its name."""
        return [(model, again, f'{index}, {type(model).__name__}')
                for index, (model, again) in enumerate(zip(self.models, self.again, strict=True))]

    def test_there_are_all_of_them(self):
        self.assertEqual(3 * 5, len(self.models))

    def test_finite_positive_one_for_each_row(self):
        for model, _, name in self.each():
            with self.subTest(name):
                predicted = model.predict(self.points.target_alone, self.points.background_alone)
                self.assertEqual((len(self.points),), predicted.shape)
                self.assertTrue(np.isfinite(predicted).all())

    def test_reading_gives_the_same_predictions(self):
        for model, again, name in self.each():
            with self.subTest(name):
                np.testing.assert_array_equal(
                    again.predict(self.points.target_alone, self.points.background_alone),
                    model.predict(self.points.target_alone, self.points.background_alone))
                self.assertEqual(model.to_document(), again.to_document())

    def test_a_row_alone_equals_the_batch(self):
        for model, _, name in self.each():
            with self.subTest(name):
                batch = model.predict(self.points.target_alone[:20],
                                      self.points.background_alone[:20])
                alone = [model.predict(self.points.target_alone[i:i + 1],
                                       self.points.background_alone[i:i + 1])[0]
                         for i in range(20)]
                np.testing.assert_allclose(batch, alone, rtol=1e-12)

    def test_no_rows(self):
        for model, _, name in self.each():
            with self.subTest(name):
                self.assertEqual((0,), model.predict(np.empty((0, 4)), np.empty((0, 4))).shape)

    def test_arguments_are_left_alone(self):
        for model, _, name in self.each():
            with self.subTest(name):
                target, background = self.points.target_alone[:5] * 9, np.full((5, 4), 1e9)
                before = target.copy(), background.copy()
                model.predict(target, background)
                np.testing.assert_array_equal(before, (target, background))

    def test_document_tells_where_it_came_from(self):
        for model, _, name in self.each():
            with self.subTest(name):
                content = model.to_document()
                self.assertEqual('synthetic', content['host_type'])
                one, = content['training']['files']
                self.assertEqual('synthetic.csv', one['name'])
                self.assertRegex(one['sha256'], '^[0-9a-f]{64}$')
                self.assertGreater(content['training']['points'], 0)
                self.assertNotIn('NaN', json.dumps(content))
