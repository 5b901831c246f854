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
from tests.unit.tracon_lab.models import synthetic
from tracon_lab.models import dataset
from tracon_lab.models import fit
from tracon_lab.models import per_application
from tracon_lab.models import store
from tracon_watcher.characteristics import RESPONSES
from tracon_watcher import errors


class TestStoredForms(folder.FolderCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.points = synthetic.build()
        path = cls.folder / 'synthetic.csv'
        synthetic.write(path, cls.points)
        cls.models = fit.application_models([dataset.read(path)])

    def written(self, model, **changes):
        path = os.path.join(self.folder, 'model.json')
        content = {**model.to_document(), **changes}
        with open(path, 'w', encoding='utf-8') as stream:
            json.dump(content, stream)
        return path

    def one(self, form):
        return next(model for model in self.models if model.form == form)

    def test_every_application_response_and_model(self):
        found = {(m.head.application, m.head.response, m.head.training['model'])
                 for m in self.models}
        self.assertEqual(len(found), len(self.models))
        self.assertEqual(3 * (7 + 6), len(found))  # the CPU burner has no IOPS

    def test_stored_forms_predict_what_the_estimators_do(self):
        for model in self.models:
            head = model.head
            with self.subTest(head.application, response=head.response, form=model.form):
                own = per_application.of_application(self.points, head.response,
                                                     head.application)
                estimator = per_application.fit(own, head.response, head.training['model'])
                again = store.load(self.written(model))
                for other in (own, self.points):
                    target, background = other.target_alone, other.background_alone
                    np.testing.assert_allclose(again.predict(target, background),
                                               estimator.predict(target, background), rtol=1e-9)

    def test_outside_the_hull_it_is_clamped(self):
        model = self.one('polynomial')
        target = model.head.hull.target_maximum[None]
        top = model.head.hull.background_maximum[None]
        np.testing.assert_array_equal(model.predict(target, top), model.predict(target, 9 * top))

    def test_rank_and_criterion_are_reported(self):
        model = self.one('polynomial')
        self.assertEqual(5, model.head.training['rank'])
        self.assertEqual(8, model.head.training['terms'])
        self.assertIsInstance(model.head.training['aic'], float)

    def test_edited_documents(self):
        polynomial, mean = self.one('polynomial'), self.one('weighted_mean')
        powers = polynomial.to_document()['powers']
        points = mean.to_document()['points']
        for model, field, value, expected in (
                (polynomial, 'intercept', 7.0, 'checksum'),
                (polynomial, 'intercept', None, 'intercept'),
                (polynomial, 'response', 'speed', "response is 'speed'"),
                (polynomial, 'form', 'spline', "form is 'spline'"),
                (polynomial, 'powers', [[3] + [0] * 7, *powers[1:]], r'powers\[0\]'),
                (polynomial, 'powers', [[1.5] + [0] * 7, *powers[1:]], r'powers\[0\]'),
                (polynomial, 'scale', [0.0] * 8, r'scale\[0\]'),
                (polynomial, 'units', ['1/s'], 'units'),
                (polynomial, 'extra', 1, 'extra is 1: unknown field'),
                (mean, 'neighbours', 0, 'neighbours'),
                (mean, 'neighbours', 1.5, 'neighbours'),
                (mean, 'points', points[1:], 'points'),
                (mean, 'responses', ['x', *[1.0] * (len(points) - 1)], r'responses\[0\]')):
            with self.subTest(field=field, value=str(value)[:20]):
                path = self.written(model, **{field: value})
                with self.assertRaisesRegex(errors.InvalidDocument, expected) as caught:
                    store.load(path)
                self.assertIn(path, str(caught.exception))

    def test_truncated(self):
        path = self.written(self.one('polynomial'))
        with open(path, encoding='utf-8') as stream:
            text = stream.read()
        with open(path, 'w', encoding='utf-8') as stream:
            stream.write(text[:len(text) // 2])
        with self.assertRaisesRegex(errors.InvalidDocument, 'truncated or edited'):
            store.load(path)

    def test_too_few_points(self):
        own = per_application.of_application(self.points, 'slowdown', 'cpu')
        with self.assertRaisesRegex(errors.NotEnoughData, 'NLM of one application'):
            per_application.fit(own.take(np.arange(5)), 'slowdown', 'NLM')

    def test_alone_is_near_one(self):
        for model in self.models:
            if model.form == 'weighted_mean':
                predicted = model.predict(model.head.hull.target_maximum[None], np.zeros((1, 4)))
                self.assertAlmostEqual(1.0, predicted[0], places=6)
        self.assertEqual(2, len({m.head.response for m in self.models} & set(RESPONSES)))
