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

"""A stored model brought up to date: by synthetic labels, and from one lab host to another."""

import dataclasses
import unittest

import numpy as np

from tests.unit.models import pairs
from tests.unit.models import test_sharing
from tracon_watcher.cmd import packaged
from tracon_watcher import errors
from tracon_watcher.models import adaptation
from tracon_watcher.models import baseline
from tracon_watcher.models import fit
from tracon_watcher.models import labels as labels_module
from tracon_watcher.models import points as measured
from tracon_watcher.models import refit
from tracon_watcher.models import restored
from tracon_watcher.models import sharing
from tracon_watcher.models import transfer
from tracon_watcher.prediction import store

PROVENANCE = {'how': 'a test'}


def wrong(model, labels, crowding):
    return float(np.mean(np.abs(sharing.predict(model, labels, crowding) - labels.exponent)))


class TestRefit(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.old = pairs.model()
        self.new = pairs.model(seed=5)

    def test_the_same_world_keeps_the_model(self):
        labels = test_sharing.labels(self.old, 60)
        found = refit.refit(self.old, labels)
        self.assertEqual((adaptation.KEPT, 1.0), (found.how, found.ratio))

    def test_twenty_labels_tell_a_factor(self):
        twice = dataclasses.replace(self.old, coefficients=1.8 * self.old.coefficients)
        found = refit.refit(self.old, test_sharing.labels(twice, 20))
        self.assertEqual(adaptation.RESCALED, found.how)
        self.assertLess(found.ratio, 0.3)
        rest = test_sharing.labels(twice, 200, seed=2)
        self.assertLess(wrong(found.model, rest, 0.2),
                        0.3 * wrong(restored.regressor(self.old), rest, 0.2))

    def test_more_labels_tell_another_world(self):
        found = refit.refit(self.old, test_sharing.labels(self.new, 200, vms=50))
        self.assertIn(found.how, (adaptation.CORRECTED, adaptation.REFITTED))
        rest = test_sharing.labels(self.new, 200, seed=2)
        self.assertLess(wrong(found.model, rest, 0.2),
                        0.6 * wrong(restored.regressor(self.old), rest, 0.2))

    def test_a_vm_is_either_learnt_from_or_predicted(self):
        # Each VM says the same thing twenty times, and all of it is chance: whoever may look at
        # the VM itself thinks that he has learnt something.
        rng = np.random.default_rng(3)
        once = test_sharing.labels(self.old, 12, vms=12)
        chance = np.maximum(once.exponent + rng.normal(0, 0.4, 12), 0.0)
        labels = labels_module.Labels(
            np.tile(once.vm, 20), np.tile(once.target, (20, 1)), np.tile(once.neighbour, (20, 1)),
            (once.owner[None, :] + 12 * np.arange(20)[:, None]).ravel(), np.ones(240),
            np.tile(chance, 20), np.full(240, 0.05))
        self.assertGreater(refit.refit(self.old, labels).ratio, 0.75)

    def few_vms(self, model, vms, seed):
        """Return 21 labels of a few VMs, each of which has an error of its own, as usual."""
        rng = np.random.default_rng(seed)
        once = test_sharing.labels(model, vms, vms=vms, seed=seed)
        own = rng.normal(0, 1, vms) * (0.05 + 0.05 * once.exponent)
        rows = np.arange(21) % vms
        neighbours = [once.neighbour[once.owner == row] for row in rows]
        return labels_module.Labels(
            rows, once.target[rows], np.concatenate(neighbours),
            np.repeat(np.arange(21), [len(one) for one in neighbours]), np.ones(21),
            (once.exponent + own)[rows] + rng.normal(0, 0.05, 21), np.full(21, 0.07))

    def test_a_few_vms_that_are_predicted_better_by_chance_convince_nobody(self):
        found = [refit.refit(self.old, self.few_vms(self.old, vms, seed))
                 for vms in (3, 5) for seed in range(15)]
        # By the mean error alone some would.
        self.assertTrue([one for one in found if one.ratio < refit.CONVINCING])
        self.assertFalse([one for one in found if one.convincing])

    def test_a_few_that_are_do_convince(self):
        twice = dataclasses.replace(self.old, coefficients=2 * self.old.coefficients)
        for vms, expected in ((3, False), (6, True), (10, True)):
            found = refit.refit(self.old, self.few_vms(twice, vms, 1))
            self.assertLess(found.ratio, refit.CONVINCING)
            self.assertEqual(expected, found.convincing, vms)

    def test_too_few_labels_or_vms(self):
        with self.assertRaisesRegex(errors.NotEnoughData, 'labels.*20.*19'):
            refit.refit(self.old, test_sharing.labels(self.old, 19))
        with self.assertRaisesRegex(errors.NotEnoughData, 'VMs.*3.*2'):
            refit.refit(self.old, test_sharing.labels(self.old, 50, vms=2))

    def test_what_is_stored_can_be_read_and_tells_where_it_comes_from(self):
        labels = test_sharing.labels(self.new, 80)
        found = refit.refit(self.old, labels)
        before = pairs.model('iops_ratio')
        slowdown, ratio = refit.models(found, self.old, before, labels, PROVENANCE)
        for response, one in (('slowdown', slowdown), ('iops_ratio', ratio)):
            read = store.from_content(one.to_document(), 'a test')
            self.assertEqual((response, pairs.HOST_TYPE), (read.response, read.host_type))
            self.assertEqual(PROVENANCE, read.training['refit'])
        self.assertEqual(80, slowdown.errors['by_vm']['points'])
        np.testing.assert_allclose(
            ratio.predict(labels.target[labels.owner], labels.neighbour),
            1 / slowdown.predict(labels.target[labels.owner], labels.neighbour))
        # It is no more certain than before.
        self.assertGreaterEqual(ratio.interval.offset, 0.05)
        for exponent in (0.1, 0.5, 2.0):
            for level in (0.0, 0.1, 0.3, 0.7, 0.9, 1.0):
                bound, *others = [one.interval.bound(np.array([exponent]), level)[0]
                                  for one in (ratio, before, slowdown)]
                if level < 0.5:
                    self.assertLessEqual(bound, min(others) + 1e-12, (exponent, level))
                else:
                    self.assertGreaterEqual(bound, max(others) - 1e-12, (exponent, level))
        inside = np.abs(found.predicted - labels.exponent) <= (
            slowdown.interval.quantile(0.95) * (slowdown.interval.offset
                                                + slowdown.interval.slope * found.predicted))
        self.assertGreater(inside.mean(), 0.7)


class TestLab(unittest.TestCase):
    """Models of one lab host type, and slowdowns that were measured on another."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.points = {one.host_type: one for one in measured.by_host_type(
            baseline.steady(one) for one in packaged.read([]))}
        cls.rows = list(transfer.transfers(cls.points))

    def test_sixty_slowdowns_of_another_host_type_tell_most(self):
        found = [row for row in self.rows if row.points == 60]
        self.assertEqual(4 * 3, len(found))
        for row in found:
            with self.subTest(row):
                self.assertNotEqual(adaptation.KEPT, row.how)
                self.assertLess(row.slowdown_after, 0.75 * row.slowdown_before)
                # One over the slowdown is nearer to the IOPS ratio than the old model is.
                self.assertLess(row.iops_ratio_after, 0.8 * row.iops_ratio_before)

    def test_more_tell_more(self):
        for few, many in zip(*([row for row in self.rows if row.points == count]
                               for count in (20, 200))):
            self.assertEqual((few.fitted_on, few.used_on), (many.fitted_on, many.used_on))
            self.assertLess(many.slowdown_after, max(few.slowdown_after, 0.08))
            self.assertLess(many.slowdown_after, 0.16)

    def test_nothing_is_made_worse(self):
        for row in self.rows:
            self.assertLessEqual(row.slowdown_after, row.slowdown_before, row)

    def test_other_points_of_the_same_host_type_change_next_to_nothing(self):
        for name, points in self.points.items():
            own = points.defined('slowdown', measured.FITTED)
            rows = np.random.default_rng(0).permutation(len(own))[:60]
            model = fit.pairwise_model(points, 'slowdown', {})
            self.assertGreater(refit.refit(model, transfer.of_points(own, rows)).ratio, 0.8, name)
