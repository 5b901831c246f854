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

"""Responses against a steady baseline (a synthetic file with a machine that drifts)."""

import dataclasses
import unittest

import numpy as np

from tracon_lab.models import baseline
from tracon_lab.models import dataset
from tracon_watcher.characteristics import NAMES


def drifting(rng, slow=0.1, noise=0.0, computing=1.0):
    """A program alone 40 times, then beside another, which takes it twice as long, 20 times.

    The machine's speed varies, which the canary sees.

    :param computing: share of the program's time that it computes; the rest is as long as ever
    """
    count = 60
    speed = 1 + slow * rng.uniform(0, 1, count)
    beside = np.arange(count) >= 40
    usual = np.median(speed[~beside])
    # What is spent on the core is a share of the time as it is, so a slow machine has more of it.
    seconds = np.where(beside, 2.0, 1.0) / (1 - computing * (1 - usual / speed))
    seconds *= np.exp(noise * rng.normal(size=count))
    kinds = np.where(beside, 'background', 'solo')
    numbers = {name: np.ones(count) for name in dataset.COLUMNS if name not in (
        'point', 'kind', 'target', 'background', 'started_at')}
    numbers.update(
        time_per_unit=seconds, canary_during=3e-4 * speed, iops=100 / seconds,
        slowdown=seconds / seconds[0], iops_ratio=seconds[0] / seconds,
        target_vcpu_delay=computing * np.where(beside, 0.5, 0.0),
        target_observed_guest_cpu=computing * np.where(beside, 0.5, 1.0))
    for name in NAMES:
        numbers.setdefault(f'target_observed_{name}', np.ones(count))
    text = {'kind': kinds, 'target': np.array(['p'] * count),
            'background': np.where(beside, 'gen-c100-r0-w0', ''),
            'point': np.arange(count).astype(str), 'started_at': np.arange(count).astype(str)}
    return dataset.Dataset('synthetic.csv', '', {'host_type': 'synthetic'}, text, numbers)


class TestSteady(unittest.TestCase):

    def test_the_machines_speed_leaves_the_responses(self):
        found = baseline.steady(drifting(np.random.default_rng(1)))
        beside = found.kind == 'background'
        np.testing.assert_allclose(found.slowdown[beside], 2.0, rtol=1e-6)
        np.testing.assert_allclose(found.iops_ratio[beside], 0.5, rtol=1e-6)

    def test_only_time_on_the_core_changes_with_its_speed(self):
        found = baseline.steady(drifting(np.random.default_rng(1), slow=0.3, computing=0.4))
        beside = found.kind == 'background'
        np.testing.assert_allclose(found.slowdown[beside], 2.0, rtol=1e-6)

    def test_a_gap_in_one_window_leaves_the_others(self):
        data = drifting(np.random.default_rng(1))
        for column in ('canary_during', 'target_observed_guest_cpu', 'iops'):
            data.numbers[column][7] = np.nan
        found = baseline.steady(data)
        beside = found.kind == 'background'
        np.testing.assert_allclose(found.slowdown[beside], 2.0, rtol=1e-2)
        self.assertTrue(np.isfinite(found.target_alone).all())

    def test_one_noisy_window_alone_is_no_baseline(self):
        data = drifting(np.random.default_rng(2), slow=0.0, noise=0.1)
        before = data.points.slowdown[data.text['kind'] == 'background']
        after = baseline.steady(data).slowdown[data.text['kind'] == 'background']
        self.assertLess(abs(np.log(after / 2).mean()), 0.05)
        self.assertLess(abs(np.log(after / 2).mean()), abs(np.log(before / 2).mean()))

    def test_a_program_has_one_profile(self):
        found = baseline.steady(drifting(np.random.default_rng(3)))
        self.assertEqual(1, len(np.unique(found.target_alone, axis=0)))

    def test_undefined_ratios_stay_undefined(self):
        data = drifting(np.random.default_rng(4))
        data.numbers['iops_ratio'][45] = np.nan
        found = baseline.steady(data)
        self.assertTrue(np.isnan(found.iops_ratio[45]))
        self.assertTrue(np.isfinite(found.iops_ratio[46]))

    def test_a_file_without_times_stays_as_it_is(self):
        data = drifting(np.random.default_rng(5))
        numbers = dict(data.numbers, time_per_unit=np.full(60, np.nan))
        found = baseline.steady(dataclasses.replace(data, numbers=numbers))
        np.testing.assert_array_equal(found.slowdown, data.points.slowdown)
        del numbers['time_per_unit']
        found = baseline.steady(dataclasses.replace(data, numbers=numbers))
        np.testing.assert_array_equal(found.slowdown, data.points.slowdown)
