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

"""Sums kept beforehand are those of the rows, one by one."""

import unittest
from unittest import mock

import hypothesis
from hypothesis import strategies
import numpy as np

from tests import synthetic
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import newcomer
from tracon_watcher.prediction import totals

MODELS = tuple(synthetic.models(background=2.0)[synthetic.HOST_TYPE])
GROUPS = 4


@strategies.composite
def situations(draw):
    """Targets, backgrounds at the hull's edge and beyond it among them, and their groups."""
    number = draw(strategies.integers(0, 12))
    shares = strategies.lists(strategies.floats(0, 1.2), min_size=4, max_size=4)
    # Exactly at the edge, beyond it, and wherever.
    loads = strategies.lists(strategies.sampled_from((0.0, 1.9, 2.0, 3.0))
                             | strategies.floats(0, 2.5), min_size=4, max_size=4)
    target = np.array([draw(shares) for _row in range(number)]).reshape(-1, 4)
    background = np.array([draw(loads) for _row in range(number)]).reshape(-1, 4)
    group = np.array([draw(strategies.integers(0, GROUPS - 1)) for _row in range(number)],
                     dtype=np.intp)
    added = np.array(draw(strategies.lists(strategies.just(0.0) | strategies.floats(0, 1.5),
                                           min_size=4, max_size=4)))
    return (target * synthetic.CAPACITY, background * synthetic.CAPACITY, group,
            added * synthetic.CAPACITY)


class TotalsTestCase(unittest.TestCase):

    def check(self, few, target, background, group, added):
        for model in MODELS:
            prepared = model.prepare(target, background)
            rows = np.flatnonzero(np.arange(len(group)) % 3 != 1)
            again = (model.exponents(target, background + added)
                     - model.exponents(target, background))[rows]
            expected = np.bincount(group[rows], again, minlength=GROUPS)
            with mock.patch.object(totals, '_FEW', few):
                summed = totals.Totals(model, prepared, rows, group[rows], GROUPS)
                summed.make_ready()
                np.testing.assert_allclose(summed.grow(added), expected, atol=1e-9)

    @hypothesis.given(situations())
    @hypothesis.settings(deadline=None, max_examples=200)
    def test_sums_are_those_of_predicting_each_row_again(self, situation):
        self.check(0, *situation)

    @hypothesis.given(situations())
    @hypothesis.settings(deadline=None)
    def test_so_are_those_of_few_rows(self, situation):
        self.check(100, *situation)

    @hypothesis.given(synthetic.hosts(storage=(cluster.LOCAL, 'pool', 'other pool')),
                      synthetic.profiles())
    @hypothesis.settings(deadline=None)
    def test_an_assessment_is_the_same_by_either_way(self, hosts, vm):
        state = cluster.build(hosts)
        found = []
        for few in (0, 1000):
            with mock.patch.object(totals, '_FEW', few):
                found.append(assessment.Assessor(state, synthetic.models()).assess(
                    newcomer.own(vm)))
        np.testing.assert_allclose(found[0].score, found[1].score, atol=1e-9)
        np.testing.assert_array_equal(found[0].refused, found[1].refused)
