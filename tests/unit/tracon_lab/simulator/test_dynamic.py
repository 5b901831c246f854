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

"""The physics of the event loop, by hand and beside a slow simulator that does nothing clever."""

import unittest

import numpy as np

from tests.unit.tracon_lab.scheduling import synthetic
from tracon_lab.scheduling import catalogue
from tracon_lab.simulator import dynamic
from tracon_lab.simulator import workload
from tracon_watcher import errors

CALM, LOUD, TOUCHY = range(3)


def configuration(performance, *tasks, kind=0):
    space = performance.configurations
    index = space.empty[kind]
    for task in tasks:
        index = space.added[index][task]
    return index


def run(performance, hosts, scheduler, source, seconds, **more):
    built = catalogue.build(scheduler, performance, 'RT')
    return dynamic.run(performance, hosts, built, source, seconds, **more)


def slow_run(performance, count, tasks, seconds):
    """Simulate FIFO-spread without a heap: look at every host at every moment.

    :param tasks: (arrival, class, work) in the order of arrival
    :returns: completed tasks of each class, and (time, class) of each completion
    """
    space = performance.configurations
    rate = performance.speed / performance.solo_seconds[space.host_type]
    running = [[] for _host in range(count)]
    waiting, coming, now, ended = [], list(tasks), 0.0, []
    while True:
        while waiting and any(len(one) < 2 for one in running):
            host = min((len(one), index) for index, one in enumerate(running))[1]
            running[host].append(waiting.pop(0))
        index = [configuration(performance, *(task for task, _left in one)) for one in running]
        ends = [now + left / rate[index[host], task]
                for host, one in enumerate(running) for task, left in one]
        after = min([*ends, coming[0][0] if coming else np.inf, seconds])
        for host, one in enumerate(running):
            for place, (task, left) in enumerate(one):
                one[place] = [task, left - (after - now) * rate[index[host], task]]
        now = after
        if now >= seconds:
            return ended
        for one in running:
            for task, left in list(one):
                if left < 1e-9:
                    one.remove([task, left])
                    ended.append((now, task))
        while coming and coming[0][0] <= now:
            waiting.append([coming[0][1], coming[0][2]])
            coming.pop(0)


class TestByHand(unittest.TestCase):

    def test_a_task_alone_takes_its_solo_time(self):
        performance = synthetic.harmful(solo_seconds=[100.0, 70.0, 30.0])
        for task, solo in enumerate((100.0, 70.0, 30.0)):
            for wait, expected in ((-1e-6, 0), (1e-6, 1)):
                found = run(performance, [0], 'FIFO-packed', workload.Listed([5.0], [task]),
                            5.0 + solo + wait)
                self.assertEqual(expected, found.completed[task])
            self.assertAlmostEqual(solo, found.mean_runtime(performance), places=4)

    def test_two_machines_three_tasks(self):
        # 0 s: loud on host 0, touchy on host 1. 10 s: another loud on host 0, slowdown 2 for both.
        # The first has 0.9 left, which takes 180 s: it ends at 190 s. The second has done as much,
        # and ends its last tenth alone at 200 s. touchy is never disturbed: 100 s.
        performance = synthetic.harmful()
        tasks = workload.Listed([0.0, 0.0, 10.0], [LOUD, TOUCHY, LOUD])
        found = run(performance, [0, 0], 'FIFO-spread', tasks, 1000.0)
        self.assertEqual([0, 2, 1], found.completed.tolist())
        expected = {(): 800.0 + 900.0, (LOUD,): 20.0, (LOUD, LOUD): 180.0, (TOUCHY,): 100.0}
        for index, members in enumerate(performance.configurations.members):
            self.assertAlmostEqual(expected.get(members, 0.0), found.spent[index])
        for until, ended in ((189.9, 0), (190.1, 1), (199.9, 1), (200.1, 2)):
            self.assertEqual(ended, run(performance, [0, 0], 'FIFO-spread', tasks,
                                        until).completed[LOUD])

    def test_the_neighbour_that_comes_later_changes_only_the_rest(self):
        # touchy alone for 80 s: a fifth is left, which takes 120 s beside loud (slowdown 6). loud
        # does 120 / 130 of its work meanwhile, and the rest alone.
        performance = synthetic.harmful()
        found = run(performance, [0], 'FIFO-packed', workload.Listed([0.0, 80.0], [TOUCHY, LOUD]),
                    1000.0)
        self.assertAlmostEqual(120.0, found.spent[configuration(performance, LOUD, TOUCHY)])
        self.assertAlmostEqual((1 - 120 / 130) * 100,
                               found.spent[configuration(performance, LOUD)])

    def test_a_task_of_a_trace_has_work_of_its_own(self):
        performance = synthetic.harmful()
        found = run(performance, [0], 'FIFO-packed', workload.Listed([0.0], [CALM], [2.5]), 1000.0)
        self.assertAlmostEqual(250.0, found.spent[configuration(performance, CALM)])
        self.assertAlmostEqual(250.0, found.mean_runtime(performance))

    def test_another_host_type_has_other_times(self):
        performance = synthetic.harmful((2, 2))
        performance.solo_seconds[1] = 50.0
        found = run(performance, [1], 'FIFO-packed', workload.Listed([0.0], [CALM]), 1000.0)
        self.assertAlmostEqual(50.0, found.spent[configuration(performance, CALM, kind=1)])


class TestPhysics(unittest.TestCase):

    def source(self, rate=0.2, seconds=5000.0, seed=1):
        return workload.Poisson(rate, np.array([0.5, 0.2, 0.3]), [seed], seconds)

    def test_as_a_slow_simulator(self):
        performance = synthetic.harmful(solo_seconds=[100.0, 70.0, 30.0])
        for seed, rate in ((1, 0.02), (2, 0.06), (3, 0.3)):
            source = self.source(rate, 2000.0, seed)
            chunk = next(source.chunks())
            tasks = [(when, task, 1.0) for when, task in zip(chunk.times, chunk.classes)]
            ended = slow_run(performance, 4, tasks, 2000.0)
            found = run(performance, [0] * 4, 'FIFO-spread', source, 2000.0)
            self.assertGreater(len(ended), 10)
            self.assertEqual(np.bincount([task for _when, task in ended], minlength=3).tolist(),
                             found.completed.tolist())

    def test_work_is_conserved(self):
        for slots in ((2,), (4,), (2, 3)):
            performance = synthetic.harmful(slots, solo_seconds=[100.0, 70.0, 30.0])
            hosts = [index % len(slots) for index in range(6)]
            for name in ('FIFO-packed', 'FIFO-single', 'MIOS', 'MIBS_8', 'MIX_4-eager',
                         'PRICED_8'):
                for rate in (0.02, 0.5):
                    with self.subTest(scheduler=name, slots=slots, rate=rate):
                        found = run(performance, hosts, name, self.source(rate), 5000.0)
                        np.testing.assert_allclose(found.work(performance), found.done)
                        self.assertAlmostEqual(6 * 5000.0, float(found.spent.sum()))
                        self.assertTrue((found.done >= found.completed - 1e-6).all())
                        running = found.started - int(found.completed.sum())
                        self.assertTrue((found.done - found.completed <= running + 1e-6).all())

    def test_without_interference_every_scheduler_completes_the_same(self):
        performance = synthetic.harmless()
        expected = None
        for name in ('FIFO-packed', 'FIFO-spread', 'MIOS', 'MIBS_8-eager', 'MIX_8-eager',
                     'MIX_2-paired-eager', 'MINMIN_8-eager', 'PRICED_8'):
            for rate in (0.05, 0.5):
                found = run(performance, [0] * 4, name, self.source(rate), 5000.0)
                if rate > 0.1:
                    # 8 slots of 100 s each, always busy.
                    self.assertAlmostEqual(8 * 5000.0 / 100.0, float(found.done.sum()), delta=8)
                else:
                    expected = expected or int(found.completed.sum())
                    self.assertEqual(expected, int(found.completed.sum()))

    def test_nothing_beats_the_saturated_optimum(self):
        performance = synthetic.harmful()
        shares = np.array([0.5, 0.2, 0.3])
        from tracon_lab.scheduling import saturation
        most = saturation.solve(performance, shares, np.array([6])).throughput * 20000
        for name in catalogue.USUAL:
            found = run(performance, [0] * 6, name, self.source(0.5, 20000.0), 20000.0)
            self.assertLess(found.completed.sum(), 1.02 * most)

    def test_all_that_came_is_done_when_nothing_comes_any_more(self):
        performance = synthetic.harmful()
        source = workload.Listed(np.linspace(0, 10, 300).tolist(),
                                 np.random.default_rng(2).integers(0, 3, 300).tolist())
        for name in (*catalogue.USUAL, 'MIBS', 'MIBS_8-partial', 'MIX_8-paired', 'MIX_8-eager',
                     'PRICED_8:threshold=0.9'):
            found = run(performance, [0] * 3, name, source, 1e6)
            self.assertEqual((300, 300, 300), (found.arrived, found.started,
                                               int(found.completed.sum())), name)

    def test_one_unwanted_task_is_not_left_for_ever(self):
        performance = synthetic.harmful()
        times = np.arange(0, 40000.0, 12.0).tolist()
        classes = [TOUCHY] * len(times)
        classes[100] = LOUD
        found = run(performance, [0] * 4, 'PRICED_8', workload.Listed(times, classes), 40000.0)
        self.assertGreater(found.arrived, found.started)        # It is overloaded all the time.
        self.assertEqual(1, found.completed[LOUD])
        self.assertLess(found.overtaken, 300)

    def test_a_batch_waits_for_a_full_queue_or_until_no_task_can_follow(self):
        performance = synthetic.harmful()
        source = workload.Listed([0.0, 1000.0], [CALM] * 2)
        for name, waited in (('MIBS_8', 1000.0), ('MIBS_8:wait=60', 60.0),
                             ('MIX_8-partial', 1000.0), ('MINMIN_2', 1000.0),
                             ('MIBS_8-eager', 0.0)):
            found = run(performance, [0, 0], name, source, 2000.0)
            self.assertEqual(2, int(found.completed.sum()), name)
            # The second one is the last that comes.
            self.assertAlmostEqual(waited, found.waited, msg=name)

    def test_a_whole_batch_waits_for_as_many_slots_and_a_partial_one_for_one(self):
        # Four slots are taken at 0 s and become free at 100, 200 and 300 s; two tasks wait.
        source = workload.Listed([0.0] * 4 + [1.0] * 2, [CALM] * 6,
                                 [1.0, 2.0, 3.0, 3.0, 1.0, 1.0])
        for name, waited in (('MIBS_2', 2 * 199.0), ('MIBS_2-partial', 99.0 + 199.0),
                             ('MIX_2:wait=10', 2 * 199.0)):
            found = run(synthetic.harmless(), [0, 0], name, source, 4000.0)
            self.assertAlmostEqual(waited, found.waited, msg=name)

    def test_an_overloaded_queue_counts_all_arrivals_and_overtaking(self):
        performance = synthetic.harmful()
        source = self.source(5.0, 1000.0)
        all_tasks = sum(len(chunk.times) for chunk in source.chunks())
        fifo = run(performance, [0], 'FIFO-packed', source, 1000.0)
        self.assertEqual(all_tasks, fifo.arrived)
        self.assertEqual(0, fifo.overtaken)
        self.assertGreater(run(performance, [0], 'MIX_8-eager', source, 1000.0).overtaken, 0)

    def test_the_same_seed_is_the_same_run(self):
        performance = synthetic.harmful()
        first, second = (run(performance, [0] * 5, 'PRICED_8', self.source(), 5000.0)
                         for _again in range(2))
        np.testing.assert_array_equal(first.spent, second.spent)

    def test_bad_input(self):
        performance = synthetic.harmful()
        with self.assertRaisesRegex(errors.InvalidOption, 'machines=0'):
            run(performance, [], 'MIOS', self.source(), 100.0)
        for rate in (0.0, -1.0, float('nan'), float('inf')):
            with self.assertRaisesRegex(errors.InvalidOption, 'rate above 0'):
                self.source(rate)
        with self.assertRaisesRegex(errors.InvalidOption, 'hours'):
            run(performance, [0], 'MIOS', self.source(), 0.0)


class TestMigration(unittest.TestCase):

    class Once:
        """Moves the second task of host 0 to host 1 at 50 s."""

        interval, pause = 50.0, 20.0

        def __init__(self):
            self.asked = []

        def moves(self, residents, now):
            self.asked.append((now, [list(one) for one in residents]))
            return [(0, 1, 1)] if len(self.asked) == 1 else []

    def test_a_move_ends_interference_and_costs_its_pause(self):
        # touchy and loud share host 0 for 50 s. Then loud moves and stands still for 20 s.
        performance = synthetic.harmful()
        audit = self.Once()
        source = workload.Listed([0.0, 0.0], [TOUCHY, LOUD])
        found = run(performance, [0, 0], 'FIFO-packed', source, 1000.0, audit=audit)
        self.assertEqual((50.0, [[TOUCHY, LOUD], []]), audit.asked[0])
        self.assertEqual(1, found.migrations)
        self.assertAlmostEqual(50.0, found.spent[configuration(performance, LOUD, TOUCHY)])
        self.assertAlmostEqual((1 - 50 / 600) * 100,
                               found.spent[configuration(performance, TOUCHY)])
        self.assertAlmostEqual((1 - 50 / 130) * 100 + 20,
                               found.spent[configuration(performance, LOUD)])
        np.testing.assert_allclose(found.work(performance), found.done)
        self.assertAlmostEqual(0.2, found.lost[LOUD])
