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

"""Running time against hardware events: known slopes found again, missing ones named."""

import unittest

import numpy as np

from tracon_lab.contention import hardware_events
from tracon_watcher import errors


class TestRegression(unittest.TestCase):

    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(1)
        self.events = {'cache_references': rng.uniform(1e6, 5e6, 120),
                       'cache_misses': rng.uniform(1e4, 1e5, 120),
                       'cpu_migrations': rng.poisson(8, 120).astype(float)}
        # Lim et al. found 56.2 ns a load with the small data set
        self.seconds = (0.2 + 56.2e-9 * self.events['cache_references']
                        + 90e-9 * self.events['cache_misses']
                        + 2e-3 * self.events['cpu_migrations'])

    def test_exact_slopes(self):
        found = hardware_events.fit(self.seconds, self.events)
        slopes = {slope.event: slope.seconds for slope in found.slopes}
        self.assertAlmostEqual(56.2e-9, slopes['cache_references'], delta=1e-15)
        self.assertAlmostEqual(2e-3, slopes['cpu_migrations'], delta=1e-12)
        self.assertAlmostEqual(0.2, found.intercept)
        self.assertAlmostEqual(1.0, found.r_squared)
        np.testing.assert_allclose(found.predict(self.events), self.seconds)

    def test_standard_errors_agree_with_the_textbook(self):
        x = self.events['cache_references']
        y = self.seconds + np.random.default_rng(2).normal(0, 0.01, 120)
        found = hardware_events.fit(y, {'cache_references': x}).slopes[0]
        slope, intercept = np.polyfit(x, y, 1)
        residual = y - intercept - slope * x
        deviation = np.sqrt(residual @ residual / 118 / ((x - x.mean()) ** 2).sum())
        self.assertAlmostEqual(deviation / found.deviation, 1.0, places=6)
        self.assertLess(found.p_value, 1e-6)

    def test_what_a_host_does_not_count_is_named(self):
        events = dict(self.events, cache_misses=np.full(120, np.nan),
                      cpu_migrations=np.zeros(120))
        found = hardware_events.fit(self.seconds, events)
        self.assertEqual(['fitted', 'not available', 'constant'],
                         [slope.status for slope in found.slopes])
        self.assertTrue(np.isfinite(found.predict(events)).all())

    def test_what_varies_only_where_others_are_unknown_is_constant(self):
        events = {name: counted.copy() for name, counted in self.events.items()}
        events['cpu_migrations'][:] = 0.0
        events['cpu_migrations'][:5] = 7.0
        events['cache_misses'][:5] = np.nan
        found = hardware_events.fit(self.seconds, events)
        self.assertEqual({'cache_references': 'fitted', 'cache_misses': 'fitted',
                          'cpu_migrations': 'constant'},
                         {slope.event: slope.status for slope in found.slopes})

    def test_too_few(self):
        few = {name: counted[:5] for name, counted in self.events.items()}
        with self.assertRaisesRegex(errors.NotEnoughData, '6 points.*5'):
            hardware_events.fit(self.seconds[:5], few)
