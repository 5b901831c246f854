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

import dataclasses
import unittest

from tracon_lab.cmd import packaged
from tracon_lab.simulator import experiment
from tracon_lab.simulator import results
from tracon_lab.simulator import tuning

SETUP = experiment.Setup(('file.csv',), ('somewhere',))


def answer(gains):
    """Return what runs cases: each completes 100 tasks times its scheduler's gain."""
    def run(cases):
        return [experiment.Result(case, int(100 * gains(case)), 500, 200.0, 1000.0, most=300.0,
                                  valued=100.0) for case in cases]
    return run


class TestTune(unittest.TestCase):

    def tune(self, gains, **more):
        one, other = SETUP, dataclasses.replace(SETUP, host_types=('elsewhere',))
        case = experiment.Case(SETUP, 'PRICED_8', 8, rate=10.0, hours=1.0, seed=5)
        return tuning.tune({'a': one, 'b': other}, tuning.settings((0.0, 0.5), (1.0, 2.0)), case,
                           ('light', 'heavy'), 2, 3, answer(gains), **more)

    def test_each_host_types_choice_is_shown_on_both(self):
        def gains(case):
            best = {'somewhere': 'PRICED_8:threshold=0.5:surplus=1',
                    'elsewhere': 'PRICED_8:threshold=0:surplus=2'}[case.setup.host_types[0]]
            return {best: 2.0, results.BASELINE: 1.0}.get(case.scheduler, 1.5)
        found = {(one.setting.chosen_on, one.host_type): one.row.throughput
                 for one in self.tune(gains) if one.setting is not None}
        self.assertEqual({('a', 'a'): 2.0, ('a', 'b'): 1.5, ('b', 'a'): 1.5, ('b', 'b'): 2.0,
                          ('default', 'a'): 1.5, ('default', 'b'): 1.5}, found)

    def test_settings_are_shown_with_tasks_that_did_not_choose_them(self):
        seen = {}

        def gains(case):
            seen.setdefault(case.seed, set()).add(case.scheduler)
            return 1.0
        shown = self.tune(gains)
        self.assertEqual({5, 6, 7, 8, 9}, set(seen))
        self.assertTrue(all(one.row.runs == 3 for one in shown))
        self.assertNotIn('FIFO-single', seen[6])
        self.assertIn('FIFO-single', seen[7])

    def test_over_mixes_the_mean_logarithm_counts_and_of_equals_the_first(self):
        def gains(case):
            # Twice as much with one mix, half as much with the other.
            if case.scheduler == 'PRICED_8:threshold=0.5:surplus=2':
                return 4.0 if case.mix == 'light' else 0.2
            return 1.0
        chosen = {one.setting for one in self.tune(gains) if one.setting is not None}
        self.assertIn(tuning.Setting('a', 0.0, 1.0), chosen)

    def test_as_plain_numbers_from_measurements(self):
        files = tuple(packaged.measurements())
        setups = {name: experiment.Setup(files, (name,))
                  for name in ('same-core-raw-disk', 'shared-slow-device')}
        case = experiment.Case(setups['same-core-raw-disk'], 'PRICED_8', 16, rate=30.0, hours=1.0)
        shown = tuning.tune(setups, tuning.settings((-float('inf'), 0.4), (2.0,)), case,
                            ('medium',), 1, 2,
                            lambda cases: [experiment.run(one) for one in cases])
        for one in shown:
            if one.setting is not None and one.setting.chosen_on == 'shared-slow-device':
                # Waiting is worth it there, and no harm elsewhere.
                self.assertEqual(0.4, one.setting.threshold)
                self.assertGreater(one.row.throughput, 1.0)
