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

"""Models of applications, fitted to synthetic points."""

import dataclasses

import numpy as np

from tests.unit import folder
from tests.unit.tracon_lab.models import synthetic
from tracon_lab.models import dataset
from tracon_lab.models import fit
from tracon_watcher import errors

FEW = ('cpu', 'randread', 'seqwrite')


class TestFit(folder.FolderCase):

    def read(self, points, name='synthetic'):
        path = self.folder / f'{name}.csv'
        synthetic.write(path, points, name)
        return dataset.read(path)

    def test_only_points_beside_the_generator_are_fitted(self):
        points = synthetic.build(generator=8, backgrounds=24, names=FEW)
        never = np.isin(points.kind, ('pair', 'repeat', 'generator'))
        self.assertGreater(never.sum(), 40)
        corrupted = dataclasses.replace(
            points,
            slowdown=np.where(never, 1e3, points.slowdown),
            iops_ratio=np.where(never, 1e-3, points.iops_ratio),
            observed=np.where(never[:, None], 1e6, points.observed))

        def documents(one):
            found = []
            for model in fit.application_models([self.read(one)]):
                content = model.to_document()
                del content['training']['files'], content['checksum']
                found.append(content)
            return found
        self.assertEqual(documents(points), documents(corrupted))

    def test_follows_the_synthetic_truth(self):
        data = self.read(synthetic.build(names=FEW))
        for model in fit.application_models([data]):
            # Of which 0.032 is the noise put in.
            self.assertLess(model.head.errors['by_background']['mean'], 0.2)

    def test_files_of_one_host_type_are_fitted_together(self):
        parts = [self.read(synthetic.build(seed=seed, backgrounds=12, names=FEW))
                 for seed in (1, 2)]
        models = fit.application_models(parts)
        self.assertEqual(3 * (3 + 2), len(models))
        self.assertEqual({24}, {one.head.training['points'] for one in models})

    def test_responses_with_points_enough(self):
        data = self.read(synthetic.build(backgrounds=12, names=FEW))
        self.assertEqual({'slowdown'}, set(fit.models_of([data], 'cpu', 'NLM')))
        self.assertEqual({'slowdown', 'iops_ratio'}, set(fit.models_of([data], 'randread', 'LM')))

    def test_too_few_points(self):
        data = self.read(synthetic.build(backgrounds=9, names=FEW), 'small')
        with self.assertRaisesRegex(
                errors.NotEnoughData,
                'a model of an application on small needs at least 10 points.* are 9'):
            fit.application_models([data])
