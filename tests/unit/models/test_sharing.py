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

"""Slowdowns beside several neighbours (synthetic): shared out, and predicted."""

import unittest

import numpy as np

from tests.unit.models import pairs
from tracon_watcher.models import labels as labels_module
from tracon_watcher.models import restored
from tracon_watcher.models import sharing
from tracon_watcher.prediction import pairwise


def labels(model, count, neighbours=3, seed=1, vms=10, share=1.0):
    """Return synthetic labels that a model explains exactly."""
    rng = np.random.default_rng(seed)
    target = rng.uniform(0.05, 0.5, (count, 4)) * pairs.CAPACITY
    neighbour = rng.uniform(0, 0.4, (count * neighbours, 4)) * pairs.CAPACITY
    owner = np.repeat(np.arange(count), neighbours)
    each = model.exponents(target[owner], neighbour).reshape(count, neighbours)
    whole = np.expm1(pairwise.together(each, model.crowding)) / share
    return labels_module.Labels(
        (np.arange(count) % vms).astype(np.intp), target, neighbour, owner,
        np.full(count, share), np.log1p(whole), np.full(count, 0.05))


class TestRestored(unittest.TestCase):

    def test_it_predicts_what_the_stored_one_does(self):
        model = pairs.model()
        made = labels(model, 20, 1)
        np.testing.assert_allclose(
            restored.regressor(model).predict(sharing.columns(made)),
            model.exponents(made.target, made.neighbour), rtol=1e-12)

    def test_and_so_does_what_is_stored_of_it_again(self):
        model = pairs.model()
        again = restored.regressor(model).to_model(
            'slowdown', model.host_type, model.interval, {}, {}, model.crowding)
        one, other = model.to_document(), again.to_document()
        for name in ('capacity', 'coefficients', 'compression', 'ceiling', 'crowding'):
            np.testing.assert_allclose(one[name], other[name], rtol=1e-12)
        for name, values in one['hull'].items():
            np.testing.assert_allclose(values, other['hull'][name], rtol=1e-12)

    def test_a_ridge_that_is_nonsense_is_not_taken(self):
        for told in (float('nan'), -1, 'x', True, None):
            model = pairs.model()
            object.__setattr__(model, 'training', {'ridge': told, 'stiffness': told})
            found = restored.regressor(model)
            self.assertGreater(found.alpha_, 0)
            self.assertGreaterEqual(found.stiffness_, 1)
        object.__setattr__(model, 'training', {'ridge': 0.25, 'stiffness': 7})
        found = restored.regressor(model)
        self.assertEqual((0.25, 7.0), (found.alpha_, found.stiffness_))


class TestSharing(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.model = pairs.model()
        self.regressor = restored.regressor(self.model)

    def test_all_together_are_predicted_as_production_does(self):
        made = labels(self.model, 30)
        np.testing.assert_allclose(
            sharing.predict(self.regressor, made, self.model.crowding), made.exponent, rtol=1e-9)

    def test_what_comes_from_elsewhere_is_in_proportion(self):
        made = labels(self.model, 30, share=0.6)
        np.testing.assert_allclose(
            sharing.predict(self.regressor, made, self.model.crowding), made.exponent, rtol=1e-9)

    def test_what_a_model_explains_is_shared_out_as_it_predicts(self):
        made = labels(self.model, 30, share=0.8)
        columns, exponents = sharing.shared_out(self.regressor, made, self.model.crowding)
        np.testing.assert_allclose(self.regressor.predict(columns), exponents, atol=0.01)

    def test_twice_the_excess_is_twice_for_each(self):
        made = labels(self.model, 30)
        object.__setattr__(made, 'exponent', np.log1p(2 * np.expm1(made.exponent)))
        columns, exponents = sharing.shared_out(self.regressor, made, self.model.crowding)
        np.testing.assert_allclose(
            np.expm1(exponents), 2 * np.expm1(self.regressor.predict(columns)), rtol=0.05,
            atol=0.01)

    def test_idle_neighbours_have_no_part_and_one_of_two_alike_has_half(self):
        target = 0.3 * pairs.CAPACITY
        made = labels_module.Labels(
            np.zeros(1, dtype=np.intp), target[None],
            np.stack([target, np.zeros(4), target]), np.zeros(3, dtype=np.intp), np.ones(1),
            np.log([3.0]), np.zeros(1))
        columns, exponents = sharing.shared_out(self.regressor, made, 0.0)
        self.assertEqual(2, len(columns))
        np.testing.assert_allclose(np.expm1(exponents), [1.0, 1.0])

    def test_where_nothing_is_predicted_all_have_the_same_part(self):
        none = restored.regressor(self.model)
        none.coefficients_ = np.zeros_like(none.coefficients_)
        made = labels(self.model, 5, 4)
        _columns, exponents = sharing.shared_out(none, made, 0.0)
        np.testing.assert_allclose(np.expm1(exponents).reshape(5, 4).std(axis=1), 0, atol=1e-9)
        np.testing.assert_allclose(np.expm1(exponents).reshape(5, 4).sum(axis=1),
                                   np.expm1(made.exponent))

    def test_some_of_them_keep_their_neighbours(self):
        made = labels(self.model, 6)
        chosen = np.array([False, True, False, False, True, False])
        part = made.take(chosen)
        np.testing.assert_array_equal([0, 0, 0, 1, 1, 1], part.owner)
        np.testing.assert_array_equal(made.neighbour[[3, 4, 5, 12, 13, 14]], part.neighbour)
        np.testing.assert_array_equal(made.exponent[chosen], part.exponent)
