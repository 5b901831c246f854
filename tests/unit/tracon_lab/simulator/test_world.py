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

"""The world as it was measured: truth, predictions, and what schedulers make of them."""

import unittest

import numpy as np

from tracon_lab.cmd import packaged
from tracon_lab.models import dataset
from tracon_lab.scheduling import configurations
from tracon_lab.scheduling import predicted
from tracon_lab.simulator import composition
from tracon_lab.simulator import experiment
from tracon_lab.simulator import truth
from tracon_lab.simulator import world
from tracon_watcher import errors
from tracon_watcher.placement import newcomer_profiles

HOST_TYPE = 'same-core-raw-disk'
#: Performances have seven digits, so that they are the same on every CPU.
ROUNDED = 1e-6


class TestWorld(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = dataset.read_all(packaged.measurements())
        cls.pairs = truth.of(cls.data, HOST_TYPE)
        cls.world = world.build(cls.data, [HOST_TYPE], [3], minutes=4.0, model='law')

    def index(self, *names, of=None):
        space = (of or self.world).configurations
        at = space.empty[0]
        for name in names:
            at = space.added[at][space.classes.index(name)]
        return at

    def test_classes_stand_in_the_order_of_their_io(self):
        rate = self.world.truth.solo_iops[0]
        self.assertTrue((np.diff(rate) >= 0).all())
        self.assertEqual(('calc', 'randread'), (self.world.classes[0], self.world.classes[-1]))

    def test_one_factor_brings_measured_times_to_the_mean_that_was_asked_for(self):
        self.assertAlmostEqual(240.0, self.world.truth.solo_seconds.mean(), places=3)
        windows = [self.pairs.window_seconds[name] for name in self.world.classes]
        np.testing.assert_allclose(self.world.truth.solo_seconds[0],
                                   self.world.factor * np.array(windows), rtol=ROUNDED)
        units = world.build(self.data, [HOST_TYPE], [2], work='unit', model='truth')
        seconds = np.array([self.pairs.unit_seconds[name] for name in units.classes])
        np.testing.assert_allclose(units.truth.solo_seconds[0], units.factor * seconds,
                                   rtol=ROUNDED)

    def test_the_truth_of_two_is_what_was_measured(self):
        table = self.world.truth
        for own in self.world.classes:
            for other in self.world.classes:
                slowdown, ratio = self.pairs.beside(own, other)
                at, column = self.index(own, other), self.world.classes.index(own)
                np.testing.assert_allclose(table.slowdown[at, column], slowdown, rtol=ROUNDED)
                np.testing.assert_allclose(table.iops_ratio[at, column], ratio, rtol=ROUNDED)
            self.assertEqual(1.0, table.slowdown[self.index(own), column])

    def test_of_three_what_each_takes_beyond_one_adds_up(self):
        column = self.world.classes.index('seqread')
        beside = [self.pairs.beside('seqread', name) for name in ('calc', 'mixed')]
        at = self.index('seqread', 'calc', 'mixed')
        self.assertAlmostEqual(1 + sum(slowdown - 1 for slowdown, _ratio in beside),
                               self.world.truth.slowdown[at, column], places=4)
        self.assertAlmostEqual(1 + sum(1 / ratio - 1 for _slowdown, ratio in beside),
                               1 / self.world.truth.iops_ratio[at, column], places=4)
        # Two of one's own kind are two neighbours.
        own = self.pairs.beside('seqread', 'seqread')[0]
        self.assertAlmostEqual(2 * own - 1, self.world.truth.slowdown[
            self.index('seqread', 'seqread', 'seqread'), column], places=4)

    def test_what_is_undefined_beside_one_is_so_beside_more(self):
        pairs = np.array([[2.0, np.nan, 1.5], [1.2, 1.1, 1.3], [np.nan] * 3])
        found = composition.together(
            np.array([[1, 0, 0], [1, 1, 0], [2, 0, 1], [0, 0, 1]]), pairs)
        np.testing.assert_allclose(found, [
            [1.0, np.nan, np.nan], [np.nan, 1.2, np.nan], [2.5, np.nan, np.nan],
            [np.nan, np.nan, np.nan]])

    def test_production_is_asked_as_nova_asks_it(self):
        # A newcomer that assess() judges on a host gets what the table has of it as a resident.
        from tracon_watcher.placement import assessment
        from tracon_watcher.placement import cluster
        known = {name: (profile, float(wait)) for name, profile, wait in zip(
            self.world.classes, self.world.profiles[0], self.world.storage_waits[0])}
        state = cluster.build([cluster.Host('host', tuple(
            cluster.Resident(name, known[name][0], storage_wait=known[name][1])
            for name in ('calc', 'seqwrite')), cores=1)])
        profile, wait = known['mixed']
        found = assessment.Assessor(state).assess(newcomer_profiles.own(profile,
                                                                        storage_wait=wait))
        at = self.index('calc', 'seqwrite', 'mixed')
        column = self.world.classes.index('mixed')
        self.assertAlmostEqual(np.exp(found.log_response[0, 0]),
                               self.world.predicted.slowdown[at, column], places=3)

    def test_no_model_has_seen_the_pairs(self):
        without = [one for one in self.data if one.host_type == HOST_TYPE]
        for place, one in enumerate(without):
            keep = ~np.isin(one.text['kind'], ('pair', 'repeat'))
            without[place] = type(one)(
                one.name, one.sha256, one.header,
                {name: values[keep] for name, values in one.text.items()},
                {name: values[keep] for name, values in one.numbers.items()})
        self.assertEqual([], truth.host_types(without), 'pairs were left')
        guess = world.build(self.data, [HOST_TYPE], [2], model='nlm').predicted
        names = guess.configurations.classes
        profiles = np.array([[np.median(self.pairs.profiles[name], axis=0) for name in names]])
        rows = [self.pairs.programs.index(name) for name in names]
        again = predicted.by_application(
            configurations.Configurations(names, (2,)), profiles, guess.solo_seconds,
            world._of_applications(without, [HOST_TYPE], [world._reordered(self.pairs, rows)],
                                   'NLM'))
        np.testing.assert_allclose(guess.slowdown, again.slowdown, rtol=ROUNDED)

    def test_two_host_types_with_programs_in_common(self):
        both = world.build(self.data, [HOST_TYPE, 'shared-slow-device'], [2, 2], model='truth')
        slow = truth.of(self.data, 'shared-slow-device')
        space = both.configurations
        at = space.added[space.added[space.empty[1]][0]][1]
        first, second = space.classes[:2]
        self.assertAlmostEqual(slow.beside(first, second)[0], both.truth.slowdown[at, 0],
                               places=5)
        ratio = both.truth.solo_seconds[1] / both.truth.solo_seconds[0]
        expected = [slow.unit_seconds[name] / self.pairs.unit_seconds[name]
                    for name in space.classes]
        np.testing.assert_allclose(ratio, expected, rtol=ROUNDED)

    def test_capacity_is_what_slots_complete_without_interference(self):
        both = world.build(self.data, [HOST_TYPE, 'shared-slow-device'], [2, 3], model='truth')
        mix = np.full(8, 1 / 8)
        expected = sum(slots * hosts / seconds.mean() for slots, hosts, seconds in zip(
            (2, 3), (4, 6), both.truth.solo_seconds))
        self.assertAlmostEqual(expected, both.capacity(mix, np.array([4, 6])))

    def test_bad_input(self):
        for more, said in (({'host_types': ['moon']}, 'host_type=.moon.: pairs were measured of'),
                           ({'model': 'oracle'}, 'model=.oracle.'), ({'work': 'all'}, 'work='),
                           ({'minutes': 0.0}, 'minutes=0.0'),
                           ({'host_types': [HOST_TYPE, 'separate-cores-raw-disk'],
                             'slots': [2, 2]}, 'no programs in common')):
            arguments = {'host_types': [HOST_TYPE], 'slots': [2], 'model': 'truth', **more}
            with self.assertRaisesRegex(errors.InvalidOption, said):
                world.build(self.data, **arguments)
        with self.assertRaisesRegex(errors.InvalidOption, 'measured by applications, full'):
            world.build(self.data, [HOST_TYPE], [2], plan='moonlight')


class TestDistance(unittest.TestCase):

    def test_leaving_out_what_is_hard_does_not_beat_the_optimum(self):
        setup = experiment.Setup(tuple(packaged.measurements()), (HOST_TYPE,), model='truth')
        found = experiment.run(experiment.Case(setup, 'matching', 8, rate=12.0, hours=5.0))
        # It picks what is easy out of all that waits, and completes more than the mix allows.
        self.assertGreater(found.tasks, 1.1 * found.most)
        self.assertLessEqual(found.valued, found.most)


class TestOnMeasuredData(unittest.TestCase):
    """What the product promises of its schedulers, with the medium mix."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.files = tuple(packaged.measurements())

    def run_case(self, scheduler, machines=64, host_type=HOST_TYPE, **more):
        setup = experiment.Setup(self.files, (host_type,))
        return experiment.run(experiment.Case(setup, scheduler, machines, **more))

    def test_matching_is_near_the_optimum(self):
        for machines in (64, 1024):
            found = self.run_case('matching', machines)
            self.assertGreaterEqual(found.runtime, found.best_runtime * (1 - 1e-9))
            self.assertLess(found.runtime / found.best_runtime, 1.03)
        found = self.run_case('matching', 1024, objective='IO')
        self.assertLessEqual(found.iops, found.best_iops * (1 + 1e-9))
        self.assertGreater(found.iops / found.best_iops, 0.95)

    def test_above_saturation_priced_is_ahead_of_mix_and_of_one_vm_a_host(self):
        for host_type in (HOST_TYPE, 'shared-slow-device'):
            tasks = {name: self.run_case(name, host_type=host_type, rate=100.0, hours=1.5).tasks
                     for name in ('FIFO-spread', 'FIFO-single', 'MIX_8-eager', 'PRICED_8')}
            with self.subTest(host_type=host_type, tasks=tasks):
                self.assertGreater(tasks['PRICED_8'], 1.02 * tasks['MIX_8-eager'])
                self.assertGreater(tasks['PRICED_8'], 1.02 * tasks['FIFO-single'])
                self.assertGreater(tasks['MIX_8-eager'], 0.99 * tasks['FIFO-spread'])

    def test_what_a_queue_is_for_is_lost_where_pairs_are_spread(self):
        found = {name: self.run_case(name, 256) for name in (
            'FIFO-spread', 'MIX_8', 'MIX_8-paired', 'matching', 'matching-spread')}
        gain = {name: found['FIFO-spread'].runtime / one.runtime - 1
                for name, one in found.items()}
        self.assertLess(abs(gain['MIX_8']), 0.06)
        self.assertGreater(gain['MIX_8-paired'], 0.1)
        # Spreading itself costs nothing, if the rest is placed all at once.
        self.assertAlmostEqual(gain['matching'], gain['matching-spread'], delta=0.02)

    def test_migrations_help_where_fifo_packs(self):
        more = {'rate': 4.0, 'hours': 2.0, 'machines': 16}
        setup = experiment.Setup(self.files, ('shared-slow-device',))
        still, moved = (experiment.run(experiment.Case(
            setup, 'FIFO-packed', audit_minutes=minutes, **more)) for minutes in (0.0, 10.0))
        self.assertEqual(0, still.migrations)
        self.assertGreater(moved.migrations, 0)
        self.assertLess(moved.runtime, still.runtime)
