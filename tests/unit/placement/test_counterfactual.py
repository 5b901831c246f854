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

"""What is said to have made a difference does, when the whole cluster is judged (synthetic)."""

import dataclasses
import unittest

import hypothesis
from hypothesis import strategies
import numpy as np

from tests import synthetic
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import counterfactual
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import queues
from tracon_watcher import tie_breaking

STORAGE = (cluster.LOCAL, 'pool')
SETTINGS = assessment.Settings(learnt={synthetic.HOST_TYPE: queues.LearnedParameters(disk=0.5)},
                               pools={'pool': queues.Pool(0.001, 8.0)})
#: Rounds of the law end where the hosts solved together move no more, each by less than 1e-4.
ROUNDING = 0.02
VM = np.array([300.0, 50.0, 0.5, 0.2])


def judge(state, settings=SETTINGS):
    return assessment.Assessor(state, settings)


def relaxed(state, needed):
    """Return the state and the newcomer's limits with what is needed for limits."""
    own = {}
    slow, ratio = state.max_slowdown.copy(), state.min_iops_ratio.copy()
    for one in needed:
        if one.vm == assessment.NEWCOMER:
            own['max_slowdown' if one.response == 'slowdown' else 'min_iops_ratio'] = one.needed
        else:
            (slow if one.response == 'slowdown' else ratio)[
                state.resident_index[one.vm]] = one.needed
    return dataclasses.replace(state, max_slowdown=slow, min_iops_ratio=ratio), own


class AgainstTheWholeCluster(unittest.TestCase):

    @hypothesis.given(synthetic.hosts(largest=3, storage=STORAGE), synthetic.profiles(),
                      strategies.floats(1.05, 4.0), strategies.sampled_from((0.0, 0.4)))
    @hypothesis.settings(deadline=None, max_examples=40)
    def test_limits_and_absences(self, hosts, vm, tolerated, doubt):
        state = synthetic.state(hosts)
        own = limits.Limits(tolerated, 0.3)
        profile = newcomer_profiles.Profile(vm, vm * doubt, storage_wait=0.2)
        assessor = judge(state)
        trials = counterfactual.CounterfactualSearch(assessor, profile, lambda host: own)
        truth = assessor.assess(profile, own)
        for host in range(len(hosts)):
            found = trials.of(host)
            self.assertTrue(found.complete)
            self.assertEqual(bool(truth.refused[host]), found.refused)
            self.assertAlmostEqual(truth.score[host], found.score)
            self.check_limits(state, profile, own, host, found, truth)
            self.check_absences(state, profile, own, host, found)

    def check_limits(self, state, profile, own, host, found, truth):
        self.assertEqual(found.refused, bool(found.limits))
        if found.refused:
            changed, mine = relaxed(state, found.limits)
            self.assertLess(judge(changed).assess(
                profile, dataclasses.replace(own, **mine)).overshoot[host], ROUNDING)
            # It passes just so.
            needed = {(one.vm, one.response): one.needed for one in found.limits}
            for breach in truth.breaches(host):
                self.assertAlmostEqual(1.0, needed[breach.vm, breach.response] / breach.bound,
                                       delta=ROUNDING)
        for one in found.limits:
            looser = one.needed > one.limit if one.response == 'slowdown' else (
                one.needed < one.limit)
            self.assertTrue(looser, one)

    def check_absences(self, state, profile, own, host, found):
        here = {state.uuids[row] for row in range(state.first[host], state.first[host + 1])}
        self.assertLessEqual(here, {one.vm for one in found.absences})
        reliefs = [one.relief for one in found.absences[:len(here)]]
        # Of equals, which rounding may tell apart, the order is that of their names.
        self.assertFalse(any(tie_breaking.less(former, later)
                             for former, later in zip(reliefs, reliefs[1:])), reliefs)
        for one in found.absences:
            truth = judge(state.moved({one.vm: None})).assess(profile, own)
            if not found.refused:
                self.assertIsNone(one.passes)
            elif abs(truth.overshoot[host]) > ROUNDING:
                self.assertEqual(not truth.refused[host], one.passes)
            if one.vm in here and not any(name == 'pool' for name in state.io_domains):
                self.assertAlmostEqual(one.relief, found.score - truth.score[host],
                                       delta=ROUNDING)


class OfOneThatIsThereAlready(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.state = cluster.build([
            cluster.Host('a', (cluster.Resident('mover', VM), cluster.Resident('left', VM)),
                         synthetic.HOST_TYPE, 'pool', cores=1),
            cluster.Host('b', (cluster.Resident('other', VM, limits.Limits(1.2)),),
                         synthetic.HOST_TYPE, 'pool', cores=1)])
        self.assessor = judge(self.state)

    def test_it_is_no_neighbour_of_itself(self):
        trials = counterfactual.CounterfactualSearch(self.assessor, newcomer_profiles.own(VM),
                                                     lambda host: limits.NONE,
                                                     'mover')
        found = trials.of(0)
        self.assertEqual(['left'], [one.vm for one in found.absences])
        part = self.state.restricted([0]).moved({'mover': None})
        truth = judge(part).assess(newcomer_profiles.own(VM))
        self.assertAlmostEqual(truth.score[0], found.score)

    def test_on_its_pool_it_is_felt_already(self):
        trials = counterfactual.CounterfactualSearch(self.assessor, newcomer_profiles.own(VM),
                                                     lambda host: limits.NONE,
                                                     'mover')
        found = trials.of(1)
        truth = self.assessor.assess(newcomer_profiles.own(VM), pool=self.state.io_domain[0])
        self.assertAlmostEqual(truth.score[1], found.score)
        self.assertTrue(found.refused)
        self.assertEqual(['other'], [one.vm for one in found.limits])
        self.assertEqual([('other', True)], [(one.vm, one.passes) for one in found.absences])


class OnAPool(unittest.TestCase):

    def test_without_one_vm_the_others_still_wait_for_it(self):
        reader = np.array([800.0, 0.0, 0.05, 0.0])
        vms = [[cluster.Resident(f'{name}{place}', rate * reader, storage_wait=0.5)
                for place, rate in enumerate((0.5, 2.0))] for name in 'ab']
        state = cluster.build([cluster.Host(name, tuple(of), synthetic.HOST_TYPE, 'pool',
                                            cores=16) for name, of in zip('ab', vms)])
        profile, own = newcomer_profiles.own(reader, storage_wait=0.5), limits.Limits(1.05)
        settings = assessment.Settings(pools={'pool': queues.Pool(0.001, 2.0)})
        found = counterfactual.CounterfactualSearch(judge(state, settings), profile,
                                                    lambda host: own).of(0)
        self.assertTrue(found.refused)
        self.assertEqual({'a0': False, 'a1': False},
                         {one.vm: one.passes for one in found.absences})
        for one in found.absences:
            left = judge(state.moved({one.vm: None}), settings).assess(profile)
            here = judge(state, settings).assess(profile)
            self.assertAlmostEqual(one.relief, (here.score - here.remote
                                                - left.score + left.remote)[0], places=3)
            self.assertGreater(one.relief, 0.01)


class OnOtherStorageThanItsHosts(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.state = cluster.build([
            cluster.Host('a', (cluster.Resident('mover', VM, io_domain='pool'),
                               cluster.Resident('left', VM)), synthetic.HOST_TYPE, cores=1),
            cluster.Host('b', (cluster.Resident('other', VM, storage_wait=0.25),),
                         synthetic.HOST_TYPE, cores=1),
            cluster.Host('c', (cluster.Resident('user', VM, io_domain='pool'),),
                         synthetic.HOST_TYPE, cores=1)])
        self.assessor = judge(self.state)

    def trials(self, profile, vm=None):
        return counterfactual.CounterfactualSearch(self.assessor, profile,
                                                   lambda host: limits.NONE, vm)

    def shown(self, state, uuid):
        return judge(state).log_responses()[0][state.resident_index[uuid]]

    def test_where_it_is_it_is_judged_as_the_state_shows_it(self):
        everywhere = self.trials(newcomer_profiles.own(VM), 'mover').everywhere
        for host in range(3):
            self.assertAlmostEqual(
                self.shown(self.state.moved({'mover': 'abc'[host]}), 'mover'),
                everywhere.log_response[0, host])

    def test_alone_a_host_is_judged_as_among_all(self):
        trials = self.trials(newcomer_profiles.own(VM), 'mover')
        for host, neighbour in ((1, 'other'), (2, 'user')):
            without = judge(self.state.moved({neighbour: None})).assess(
                newcomer_profiles.own(VM), pool=self.state.io_domains.index('pool'))
            absent, = trials.of(host).absences
            self.assertAlmostEqual(trials.everywhere.score[host] - without.score[host],
                                   absent.relief)

    def test_what_a_volume_does_to_residents(self):
        effect, = self.trials(newcomer_profiles.own(VM).set_apart()).effects(1)
        volume, disk = (self.state.with_residents(
            [(1, 'x', newcomer_profiles.own(VM), limits.NONE)], {'x': 'volume'} if apart else None)
            for apart in (True, False))
        self.assertAlmostEqual(self.shown(volume, 'other'), effect.after[0])
        self.assertLess(effect.after[0], self.shown(disk, 'other') - 0.01)


class Bounds(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.state = cluster.build([
            cluster.Host('a', (cluster.Resident('one', VM), cluster.Resident('two', VM)),
                         synthetic.HOST_TYPE, cores=1),
            cluster.Host('unknown', (cluster.Resident('three', None),), synthetic.HOST_TYPE,
                         cores=1)])
        self.assessor = judge(self.state)

    def trials(self, **options):
        return counterfactual.CounterfactualSearch(self.assessor, newcomer_profiles.own(VM),
                                                   lambda host: limits.Limits(1.01), **options)

    def test_unknown_stays_unknown(self):
        self.assertIsNone(self.trials().of(1))

    def test_stale_is_unknown(self):
        self.assessor = judge(self.state, assessment.Settings(maximum_age=60.0))
        self.assertIsNotNone(self.trials(now=60.0).of(0))
        self.assertIsNone(self.trials(now=61.0).of(0))

    def test_no_more_trials_than_asked_for(self):
        found = self.trials(most=1).of(0)
        self.assertTrue(found.refused)
        self.assertTrue(found.limits)
        self.assertIsNone(found.absences)
