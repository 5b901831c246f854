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

from tests import synthetic
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
from tracon_watcher.prediction import store

PROVENANCE = {'how': 'a test'}


def wrong(model, labels, crowding):
    return float(np.mean(np.abs(sharing.predict(model, labels, crowding) - labels.exponent)))


class TestRefit(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.old = synthetic.model()
        self.new = synthetic.model(seed=5)

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
        once = test_sharing.labels(self.old, 10)
        chance = np.maximum(once.exponent + rng.normal(0, 0.4, 10), 0.0)
        labels = labels_module.Labels(
            np.tile(once.vm, 20), np.tile(once.target, (20, 1)), np.tile(once.neighbour, (20, 1)),
            (once.owner[None, :] + 10 * np.arange(20)[:, None]).ravel(), np.ones(200),
            np.tile(chance, 20), np.full(200, 0.05))
        self.assertGreater(refit.refit(self.old, labels).ratio, 0.75)

    def test_too_few_labels_or_vms(self):
        with self.assertRaisesRegex(errors.NotEnoughData, 'labels.*20.*19'):
            refit.refit(self.old, test_sharing.labels(self.old, 19))
        with self.assertRaisesRegex(errors.NotEnoughData, 'VMs.*3.*2'):
            refit.refit(self.old, test_sharing.labels(self.old, 50, vms=2))

    def test_what_is_stored_can_be_read_and_tells_where_it_comes_from(self):
        labels = test_sharing.labels(self.new, 80)
        found = refit.refit(self.old, labels)
        slowdown, ratio = refit.models(found, self.old, synthetic.model('iops_ratio'), labels,
                                       PROVENANCE)
        for response, one in (('slowdown', slowdown), ('iops_ratio', ratio)):
            read = store.from_content(one.to_document(), 'a test')
            self.assertEqual((response, synthetic.HOST_TYPE), (read.response, read.host_type))
            self.assertEqual(PROVENANCE, read.training['refit'])
        self.assertEqual(80, slowdown.errors['by_vm']['points'])
        np.testing.assert_allclose(
            ratio.predict(labels.target[labels.owner], labels.neighbour),
            1 / slowdown.predict(labels.target[labels.owner], labels.neighbour))
        # It is no more certain than before.
        self.assertGreaterEqual(ratio.interval.offset, 0.05)
        inside = np.abs(found.predicted - labels.exponent) <= (
            slowdown.interval.quantile(0.95) * (slowdown.interval.offset
                                                + slowdown.interval.slope * found.predicted))
        self.assertGreater(inside.mean(), 0.7)


class TestLab(unittest.TestCase):
    """Models of one lab host type, and slowdowns that were measured on another."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        datasets = packaged.read([])
        cls.models = {(one.host_type, one.response): one
                      for one in fit.production_models(datasets)}
        cls.points = {one.host_type: one for one in measured.by_host_type(
            baseline.steady(one) for one in datasets)}

    def labels(self, host_type, count, seed=0):
        """Return some of the points of a host type as labels, and the others."""
        points = self.points[host_type].defined('slowdown', measured.FITTED)
        order = np.random.default_rng(seed).permutation(len(points))
        parts = []
        for rows in (order[:count], order[count:]):
            part = points.take(rows)
            parts.append(labels_module.Labels(
                np.unique(part.target, return_inverse=True)[1].astype(np.intp),
                part.target_alone, part.background_alone, np.arange(len(part)),
                np.ones(len(part)), part.exponent('slowdown'), np.full(len(part), 0.07)))
        return parts

    def error_of_ratio(self, model, host_type):
        points = self.points[host_type].defined('iops_ratio', measured.FITTED)
        predicted = model.predict(points.target_alone, points.background_alone)
        return float(np.mean(np.abs(predicted / points.iops_ratio - 1)))

    def test_sixty_slowdowns_of_another_host_type_halve_the_errors(self):
        types = sorted(self.points)
        self.assertGreaterEqual(len(types), 4)
        for old in types:
            for new in types:
                if old == new:
                    continue
                model = self.models[old, 'slowdown']
                labels, rest = self.labels(new, 60)
                found = refit.refit(model, labels)
                slowdown, ratio = refit.models(found, model, self.models[old, 'iops_ratio'],
                                               labels, PROVENANCE)
                before = wrong(restored.regressor(model), rest, 0.0)
                after = wrong(found.model, rest, 0.0)
                with self.subTest(f'{old} to {new}', before=before, after=after):
                    self.assertLess(after, 0.75 * before)
                    # One over the slowdown is nearer to the IOPS ratio than the old model is.
                    self.assertLess(self.error_of_ratio(ratio, new),
                                    0.8 * self.error_of_ratio(self.models[old, 'iops_ratio'],
                                                              new))
                    self.assertEqual('slowdown', slowdown.response)

    def test_other_points_of_the_same_host_type_change_next_to_nothing(self):
        for name in sorted(self.points):
            labels, _rest = self.labels(name, 60)
            self.assertGreater(refit.refit(self.models[name, 'slowdown'], labels).ratio, 0.8, name)
