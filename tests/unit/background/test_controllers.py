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

"""Controllers of background work: worked examples, properties, and a recorded load."""

import contextlib
import csv
import importlib.resources
import io
import lzma
import math
import pathlib
import statistics
import tempfile
import unittest

from hypothesis import given
from hypothesis import strategies
import numpy as np

from tests.unit import command_line
from tracon_lab.cmd import simulate_background
from tracon_watcher.background import controllers
from tracon_watcher import errors

SETTING = controllers.Setting(2.0, 4)
#: Four samples with μ = 10 and σ = 1.
LEARNT = (9, 11, 9, 11)
SIGMA = statistics.stdev(LEARNT)
NAN = math.nan
VALUES = strategies.one_of(strategies.floats(0, 1e6), strategies.just(NAN))


def after(*values, setting=SETTING, state=None):
    state = controllers.Reserve.of() if state is None else state
    for value in values:
        state = controllers.reserve(state, np.array([float(value)]), setting)
    return state


def adapted(*values, setting=controllers.Setting(1.0, 4), most=8.0, state=None, held=False):
    state = controllers.Quota(controllers.Aimd().minimum) if state is None else state
    for value in values:
        state = controllers.adapt(state, value, most, setting, controllers.Aimd(), held)
    return state


def recorded():
    """Return the CPU that a real guest used, per cent of its core, by windows of 2 s, (1, t).

    It was recorded by ``tracon lab measure``, which changes what runs in it.
    """
    text = (importlib.resources.files('tracon_lab.testbed') / 'data/same-core-raw-disk.csv'
            ).read_text()
    used = {}
    for row in csv.DictReader(io.StringIO('\n'.join(
            line for line in text.splitlines() if not line.startswith('#')))):
        used.setdefault(float(row['started_at']), []).append(
            float(row['target_observed_guest_cpu']))
    return 100.0 * np.array([[used[at][0] for at in sorted(used)]])


def run(*arguments):
    """Run the command; return its rows."""
    return command_line.rows(simulate_background.Background, *arguments)


class TestReserve(unittest.TestCase):

    def test_nothing_is_left_until_a_window_is_known(self):
        state = after(*LEARNT[:3])
        self.assertEqual(0.0, state.left(100.0, SETTING)[0])
        state = after(LEARNT[3], state=state)
        self.assertTrue(state.relearnt[0])
        self.assertAlmostEqual(10 + 2 * SIGMA, state.upper(SETTING)[0])
        self.assertAlmostEqual(90 - 2 * SIGMA, state.left(100.0, SETTING)[0])

    def test_a_violation_moves_the_mean_at_once_and_leaves_the_deviation(self):
        state = after(*LEARNT, 50)
        self.assertTrue(state.violated[0])
        self.assertAlmostEqual(50 + 2 * SIGMA, state.upper(SETTING)[0])
        self.assertFalse(after(50, state=state).violated[0])

    def test_within_the_band_nothing_changes(self):
        before = after(*LEARNT)
        state = after(8, 12, 11, 8, 12, 9, state=before)
        self.assertEqual(before.upper(SETTING), state.upper(SETTING))

    def test_a_phase_changes_after_a_window_below_the_band(self):
        before = after(*LEARNT)
        state = after(1, 3, 1, state=before)
        self.assertEqual(before.upper(SETTING), state.upper(SETTING))
        state = after(3, state=state)
        self.assertTrue(state.relearnt[0])
        self.assertAlmostEqual(2 + 2 * SIGMA, state.upper(SETTING)[0])

    def test_one_sample_within_the_band_begins_the_count_anew(self):
        before = after(*LEARNT)
        self.assertEqual(before.upper(SETTING),
                         after(1, 3, 1, 10, 1, 3, 1, state=before).upper(SETTING))

    def test_unknown_samples_change_nothing_and_half_of_a_window_is_needed(self):
        self.assertTrue(np.isnan(after(9, NAN, NAN, NAN).mean[0]))
        self.assertAlmostEqual(10.0, after(9, NAN, 11, NAN).mean[0])
        before = after(*LEARNT)
        state = after(1, NAN, 3, NAN, 1, state=before)
        self.assertEqual(before.upper(SETTING), state.upper(SETTING))
        self.assertTrue(after(3, state=state).relearnt[0])

    def test_the_least_deviation(self):
        setting = controllers.Setting(2.0, 4, 3.0)
        self.assertAlmostEqual(16.0, after(10, 10, 10, 10, setting=setting).upper(setting)[0])

    @given(strategies.lists(VALUES, min_size=1, max_size=40))
    def test_what_is_reserved_is_at_least_the_latest_known_sample(self, values):
        state = after(*values)
        if not math.isnan(state.mean[0]) and not math.isnan(values[-1]):
            self.assertGreaterEqual(state.upper(SETTING)[0] * (1 + 1e-9) + 1e-9, values[-1])
        self.assertTrue(0 <= state.left(1e6, SETTING)[0] <= 1e6)

    @given(strategies.lists(strategies.tuples(VALUES, VALUES), min_size=1, max_size=30))
    def test_loads_do_not_know_each_other(self, pairs):
        state = controllers.Reserve.of(2)
        for pair in pairs:
            state = controllers.reserve(state, np.array(pair), SETTING)
        for place, values in enumerate(zip(*pairs)):
            alone = after(*values)
            np.testing.assert_array_equal(alone.upper(SETTING), state.upper(SETTING)[[place]])


class TestAdapt(unittest.TestCase):

    def test_additive_increase_and_multiplicative_decrease(self):
        state = adapted(*LEARNT)
        self.assertEqual((0.01, 10.0), (state.cores, state.mean))
        state = adapted(*[10] * 10, state=state)
        self.assertAlmostEqual(1.01, state.cores)
        state = adapted(10 - 1.5 * SIGMA, state=state)
        self.assertEqual('below', state.event)
        self.assertAlmostEqual(0.505, state.cores)

    def test_between_one_and_two_deviations_above_it_stays(self):
        state = adapted(*LEARNT, 10, 10)
        above = adapted(10 + 1.5 * SIGMA, state=state)
        self.assertEqual(('above', state.cores), (above.event, above.cores))

    def test_a_change_of_phase_in_either_direction_learns_at_the_minimum(self):
        state = adapted(*LEARNT, *[10] * 20)
        for value in (10 - 2.1 * SIGMA, 10 + 2.1 * SIGMA):
            changed = adapted(value, state=state)
            self.assertEqual(('phase change', 0.01), (changed.event, changed.cores))
            changed = adapted(20, 22, 20, state=changed)
            self.assertEqual(0.01, changed.cores)
            self.assertEqual(21.0, adapted(22, state=changed).mean)

    def test_unknown_holds_and_then_falls_to_the_minimum(self):
        state = adapted(*LEARNT, *[10] * 20)
        held = adapted(NAN, NAN, NAN, state=state)
        self.assertEqual(state.cores, held.cores)
        lost = adapted(NAN, state=held)
        self.assertEqual((0.01, 'unknown'), (lost.cores, lost.event))
        self.assertEqual(0.01, adapted(NAN, 10, state=lost).cores)

    def test_no_more_than_there_is_and_nothing_while_held(self):
        state = adapted(*LEARNT, *[10] * 200)
        self.assertEqual(8.0, state.cores)
        self.assertEqual(2.0, adapted(10, state=state, most=2.0).cores)
        self.assertEqual(0.01, adapted(*LEARNT, *[10] * 20, held=True).cores)

    @given(strategies.lists(VALUES, max_size=60), strategies.floats(0, 64))
    def test_the_quota_stays_within_its_ends(self, values, most):
        state = controllers.Quota(0.01)
        for value in values:
            before, state = state, adapted(value, most=most, state=state)
            self.assertTrue(0.01 <= state.cores <= max(most, 0.01))
            if state.cores > before.cores:
                self.assertEqual('inside', state.event)


class TestShares(unittest.TestCase):

    def test_each_has_what_it_uses_and_an_equal_part_of_the_rest(self):
        self.assertEqual(({'a': 35, 'b': 65}, ()),
                         controllers.memory_shares({'a': 10, 'b': 40}, 100, False))

    def test_where_they_do_not_fit_all_pause_or_the_least_important_die(self):
        uses = {'a': 50, 'b': 30, 'c': 30}
        self.assertEqual(({}, ('a', 'b', 'c')), controllers.memory_shares(uses, 90, False))
        self.assertEqual(({'a': 55, 'b': 35}, ('c',)), controllers.memory_shares(uses, 90, True))
        # One that is dying goes on being the one that is stopped.
        self.assertEqual(({'a': 55, 'b': 35}, ('c',)),
                         controllers.memory_shares({**uses, 'c': 12}, 90, True))

    @given(strategies.dictionaries(strategies.text(max_size=3), strategies.integers(0, 2**40)),
           strategies.integers(0, 2**42), strategies.booleans())
    def test_limits_are_within_the_budget_and_never_below_what_is_used(self, uses, budget, kill):
        limits, stopped = controllers.memory_shares(uses, budget, kill)
        self.assertEqual(set(uses), {*limits, *stopped})
        self.assertLessEqual(sum(limits.values()), budget)
        self.assertTrue(all(limits[name] >= uses[name] for name in limits))

    def test_cores(self):
        online = frozenset(range(4))
        self.assertEqual({2}, controllers.free_cores(
            online, [frozenset({0}), frozenset({1, 3}), online]))
        self.assertEqual(online, controllers.free_cores(online, []))


class TestSensitivity(unittest.TestCase):
    """Fig. 5.4: a lower c or w leaves more and is violated more often."""

    def test_recorded_load(self):
        load = recorded()
        self.assertGreater(load.shape[1], 300)
        found = {(c, w): [float(value[0]) for value in controllers.replay(
            load, 100.0, controllers.Setting(c, w))] for c in (0.5, 1.0, 2.0) for w in (5, 10, 20)}
        for (c, w), (violations, left) in found.items():
            for fewer in ((c / 2, w), (c, w / 2)):
                if fewer in found:
                    self.assertGreaterEqual(found[fewer][0], violations, (c, w))
                    self.assertGreater(found[fewer][1], left, (c, w))
        self.assertGreater(found[0.5, 5][0], 2 * found[2.0, 20][0])

    def test_the_command(self):
        rng = np.random.default_rng(1)
        lines = ['day,vm,' + ','.join(f'm{5 * place}' for place in range(100))] + [
            f'{day},{vm},' + ','.join(map(str, rng.integers(10, 40, 100)))
            for day in (1, 2) for vm in range(5)]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, 'synthetic.csv.xz')
            path.write_bytes(lzma.compress('\n'.join(lines).encode()))
            picture = pathlib.Path(folder, 'study.svg')
            low, high = run(path, '--vms', '2', '--factors', '1,2', '--windows', '10', '--plot',
                            picture)
            self.assertEqual(4, low['loads'])
            self.assertGreater(low['violations_mean'], high['violations_mean'])
            self.assertTrue(0.5 < high['left'] < low['left'] < 0.8, (low, high))
            self.assertIn('w = 10', picture.read_text())
            for option, value in (('--windows', 200), ('--vms', 9)):
                with self.assertRaisesRegex(errors.InvalidOption, f'{option}={value}'):
                    run(path, option, value)
            for options, text in (((path, '--cores', 4), '--cores=.*with FILE'),
                                  (('--vms', 4), "--vms='4': .*without FILE")):
                with self.assertRaisesRegex(errors.InvalidOption, text):
                    run(*options)
            with contextlib.redirect_stderr(io.StringIO()) as said, self.assertRaises(SystemExit):
                run(path, '--factors', 'nan')
            self.assertIn("'nan'", said.getvalue())
            path.write_bytes(b'nothing')
            with self.assertRaisesRegex(errors.InvalidDocument, 'synthetic.csv.xz: the file'):
                run(path)

    def test_noise_alone_keeps_a_narrow_band_from_growing_the_quota(self):
        narrow, wide, many = run('--factors', '1,2', '--windows', '15', '--cores', '1')[:2] + run(
            '--factors', '1', '--windows', '15', '--cores', '16')
        self.assertEqual((1.0, 15, 1), (narrow['factor'], narrow['window'], narrow['cores']))
        self.assertTrue(0.3 < narrow['quota'] < 0.6, narrow)
        self.assertTrue(0.01 < narrow['± quota'] < 0.1, narrow)
        self.assertGreater(wide['quota'], 0.9)
        self.assertEqual(narrow['learning'], many['learning'])
        self.assertLess(many['quota'], 0.1)
