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

"""A model brought up to date from few points of a changed world (synthetic points)."""

import copy
import unittest

import numpy as np

from tests.unit.models import synthetic
from tracon_watcher import errors
from tracon_watcher.models import adaptation
from tracon_watcher.models import fit
from tracon_watcher.models import points as measured
from tracon_watcher.prediction import pairwise


class TestAdapt(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.points = synthetic.build(names=('cpu', 'randread', 'mixed')).defined(
            'slowdown', measured.FITTED)
        cls.columns = measured.design(cls.points)
        cls.exponents = cls.points.exponent('slowdown')
        cls.old = fit.regressor(cls.points, 'slowdown', measured.capacity(cls.points))

    def few(self, count, seed=1):
        rows = np.random.default_rng(seed).permutation(len(self.columns))
        return rows[:count], rows[count:]

    def wrong(self, model, rows, exponents):
        return float(np.mean(np.abs(model.predict(self.columns[rows]) - exponents[rows])))

    def test_the_same_world_keeps_the_model(self):
        new, _rest = self.few(12)
        found = adaptation.adapt(self.old, self.columns[new], self.old.predict(self.columns[new]))
        self.assertEqual((adaptation.KEPT, self.old), (found.how, found.model))

    def test_five_points_tell_a_factor(self):
        new, rest = self.few(5)
        doubled = 2 * self.old.predict(self.columns)
        found = adaptation.adapt(self.old, self.columns[new], doubled[new])
        self.assertEqual(adaptation.RESCALED, found.how)
        self.assertLess(self.wrong(found.model, rest, doubled), 1e-6)
        before = self.old.predict(self.columns)
        self.assertGreater(self.wrong(self.old, rest, doubled), 0.1)
        np.testing.assert_array_equal(before, self.old.predict(self.columns))

    def test_forty_points_tell_a_storage_that_suffers_otherwise(self):
        new, rest = self.few(40)
        busy = self.columns[:, 4:6].sum(axis=1) / synthetic.CAPACITY[:2].sum()
        changed = 0.5 * self.old.predict(self.columns) + busy
        found = adaptation.adapt(self.old, self.columns[new], changed[new])
        self.assertIn(found.how, (adaptation.CORRECTED, adaptation.REFITTED))
        self.assertLess(self.wrong(found.model, rest, changed),
                        0.25 * self.wrong(self.old, rest, changed))

    def test_a_correction_may_be_negative(self):
        # Half of the interference went away, more of it where the neighbour does I/O.
        busy = self.columns[:, 4:6].sum(axis=1) / synthetic.CAPACITY[:2].sum()
        changed = np.maximum(self.old.predict(self.columns) * (1 - 0.8 * busy), 0.0)
        new, rest = self.few(60)
        found = adaptation.corrected(self.old, self.columns[new], changed[new])
        scaled = adaptation.rescaled(self.old, self.columns[new], changed[new])
        self.assertLess(self.wrong(found, rest, changed), 0.6 * self.wrong(scaled, rest, changed))

    def test_what_is_rescaled_can_be_stored(self):
        old = copy.copy(self.old)
        old.ceiling_ = 20.0
        new = adaptation.rescaled(old, self.columns[:40], 5 * self.exponents[:40])
        np.testing.assert_allclose(5 * old.coefficients_, new.coefficients_, rtol=0.05)
        self.assertEqual(pairwise.MOST_CEILING, new.ceiling_)

    def test_too_few(self):
        with self.assertRaisesRegex(errors.NotEnoughData, 'at least 5 points.*there are 4'):
            adaptation.adapt(self.old, self.columns[:4], self.exponents[:4])
