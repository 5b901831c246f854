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
import functools
import itertools
import logging
import math
import unittest

import numpy as np

from tracon_watcher.engine import host_type_learner
from tracon_watcher.engine import view as views
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import queues
from tracon_watcher.queueing import capacity

_NOISE = 0.05


@functools.cache
def world(hosts=8, host_type='small', seed=1):
    """Return an assessor of hosts of two cores; VMs compute and wait for the host's disk."""
    rng = np.random.default_rng(seed)
    listed = []
    for number in range(hosts):
        vms = [cluster.Resident(
            f'{number}-{index}', np.array([200.0 * rng.random(), 0.0, rng.uniform(0.1, 0.6), 0.0]),
            vcpus=int(rng.integers(1, 3)), storage_wait=rng.uniform(0.0, 0.4))
            for index in range(5)]
        listed.append(cluster.Host(f'host-{number}', tuple(vms), host_type, updated_at=0.0,
                                   cores=2))
    return assessment.Assessor(cluster.build(listed))


def truly(judged, truth):
    """Return slowdowns and stretches of VMs where this is true, (n, 3)."""
    state = judged.cluster
    law = queues.Queues(state, np.arange(len(state.hosts)),
                        {name or '': truth for name in state.host_type}, {})
    return np.column_stack([np.exp(law.log_response[0]), law.stretches([truth])[0]])


def observed(true, rng):
    """Return what counters would show of it, (n, 3)."""
    return true * np.exp(_NOISE * rng.standard_normal(true.shape))


def view(judged, seen, at, held=frozenset()):
    return views.View(1, judged, judged, {}, seen[:, 0], _NOISE, at, held_back=held,
                      stretches=seen[:, 1:])


class CheckingTest(unittest.TestCase):

    def learn(self, judged, truth, hours=24.0, held=frozenset()):
        rng = np.random.default_rng(2)
        checked = host_type_learner.HostTypeLearner(60.0)
        law = truly(judged, truth)
        for at in np.arange(0.0, 3600.0 * hours, 6 * host_type_learner.SPACING):
            checked.take(view(judged, observed(law, rng), at, held))
        return checked

    def test_waits_for_cores_and_disks_are_learnt(self):
        for truth in (queues.LearnedParameters(gain=2.0 ** 0.5, disk=1.0),
                      queues.LearnedParameters(gain=0.7, disk=4.0)):
            found = self.learn(world(), truth, 10.0).learnt['small']
            self.assertAlmostEqual(0.0, math.log2(found.gain / truth.gain), delta=0.3)
            self.assertAlmostEqual(0.0, math.log2(found.disk / truth.disk), delta=1.01)
            self.assertLess(found.error, found.constant_error)
            self.assertTrue(0.7 <= found.coverage <= 1.0, found)
            self.assertLess(found.spread, queues.SPREAD)
            self.assertGreater(found.vm_hours, 30.0)

    def test_what_is_as_predicted_stays_and_is_surer(self):
        found = self.learn(world(), queues.UNCHECKED, 4.0).learnt['small']
        self.assertEqual(queues.UNCHECKED.gain, found.gain)
        self.assertLess(found.spread, queues.SPREAD)
        self.assertLess(found.error, 1.5 * _NOISE)
        self.assertGreater(found.coverage, 0.75)

    def test_learning_goes_on_when_the_clock_is_put_back(self):
        judged, rng = world(), np.random.default_rng(2)
        law = truly(judged, queues.LearnedParameters(gain=2.0 ** 0.5))
        checked = host_type_learner.HostTypeLearner(60.0)
        hours = []
        for begin in (360000.0, 0.0):
            for at in begin + np.arange(0.0, 3600.0 * 3, 6 * host_type_learner.SPACING):
                checked.take(view(judged, observed(law, rng), at))
            hours.append(checked.learnt['small'].vm_hours)
        self.assertGreater(hours[1], 1.5 * hours[0])
        self.assertLess(hours[1], 3.0 * hours[0])

    def test_one_step_an_hour_at_most(self):
        found = self.learn(world(), queues.LearnedParameters(disk=0.5), 2.4).learnt['small']
        steps = capacity.DISKS.index(8.0) - capacity.DISKS.index(found.disk)
        self.assertTrue(1 <= steps <= 3, found)

    def test_hosts_of_no_type_are_learnt_of_together(self):
        found = self.learn(world(host_type=None), queues.LearnedParameters(gain=2.0 ** 0.5), 4.0)
        self.assertGreater(found.learnt[''].gain, 1.0)

    def test_nothing_is_learnt_of_what_is_not_observed(self):
        judged = world()
        unknown = np.full((len(judged.cluster.uuids), 3), np.nan)
        checked = host_type_learner.HostTypeLearner(60.0)
        for at in np.arange(0.0, 7200.0, host_type_learner.SPACING):
            checked.take(view(judged, unknown, at))
        self.assertEqual(queues.UNCHECKED, dataclasses.replace(
            checked.learnt['small'], error=math.nan, constant_error=math.nan, coverage=math.nan))
        # Nor of VMs that their own limits hold back.
        held = self.learn(judged, queues.LearnedParameters(gain=2.0), 4.0,
                          frozenset(judged.cluster.uuids))
        self.assertEqual((1.0, 0.0), (held.learnt['small'].gain, held.learnt['small'].vm_hours))

    def test_neighbours_that_have_just_come_are_not_compared(self):
        checked = host_type_learner.HostTypeLearner(60.0)
        rng = np.random.default_rng(3)
        for number, at in enumerate(np.arange(0.0, 7200.0, host_type_learner.SPACING)):
            state = world().cluster
            judged = assessment.Assessor(dataclasses.replace(state, uuids=tuple(
                f'{number}-{uuid}' for uuid in state.uuids)))
            checked.take(view(judged, observed(truly(judged, queues.UNCHECKED), rng), at))
        self.assertEqual({}, checked.learnt)

    def test_a_type_far_from_what_is_predicted_drifts_and_recovers(self):
        checked, rng, hours = host_type_learner.HostTypeLearner(
            60.0), np.random.default_rng(5), itertools.count()
        true = truly(world(3), queues.UNCHECKED)

        def judged():
            return assessment.Assessor(world(3).cluster, assessment.Settings(
                learnt=checked.learnt))

        def wait(count, times):
            """Let so many hours pass in which VMs are so many times as slow as predicted."""
            for _hour in range(count):
                seen = observed(true, rng)
                seen[:, 0] *= times
                checked.take(view(judged(), seen, 3600.0 * next(hours)))

        with self.assertNoLogs('tracon_watcher.engine.host_type_learner'):
            wait(8, 1.0)
        self.assertEqual(1.0, checked.learnt['small'].trust)
        with self.assertLogs('tracon_watcher.engine.host_type_learner') as logs:
            wait(24, 10.0)
        self.assertEqual([logging.WARNING], [one.levelno for one in logs.records])
        self.assertRegex(logs.output[0], r'type small has drifted: 3\d % .* unknown')
        self.assertTrue(checked.learnt['small'].drifted)
        self.assertEqual({assessment.Status.DRIFTED}, set(judged().status))
        self.assertEqual(0, len(judged().law.hosts))
        with self.assertLogs('tracon_watcher.engine.host_type_learner') as logs:
            wait(36, 1.0)
        self.assertEqual([logging.INFO], [one.levelno for one in logs.records])
        self.assertRegex(logs.output[0], r'type small has recovered: 4\d % .* judged again')
        self.assertGreater(checked.learnt['small'].trust, 0.7)
        self.assertEqual({assessment.Status.KNOWN}, set(judged().status))

    def test_what_has_drifted_does_not_recover_by_another_number_alone(self):
        judged, drifted = world(3), queues.LearnedParameters(gain=0.5, vm_hours=12.0, coverage=0.3)
        checked = host_type_learner.HostTypeLearner(60.0)
        checked.adopt({'small': drifted}, {})
        seen = observed(truly(judged, queues.LearnedParameters(gain=2.0)),
                        np.random.default_rng(6))
        # The stretches say that waits are longer, the slowdowns nothing of the kind.
        seen[:, 0] = 100.0
        for at in np.arange(0.0, 3600.0 * 4, 2 * host_type_learner.SPACING):
            checked.take(view(judged, seen, at))
            self.assertTrue(checked.learnt['small'].drifted, at)
        self.assertGreater(checked.learnt['small'].gain, 0.5)

    def test_another_engine_goes_on_from_there(self):
        before = self.learn(world(), queues.LearnedParameters(gain=2.0 ** 0.5), 4.0).learnt
        checked = host_type_learner.HostTypeLearner(60.0)
        checked.adopt(before, {})
        after = checked.learnt['small']
        self.assertEqual(before['small'], after)
        judged = world()
        for at in (0.0, host_type_learner.SPACING, 6 * host_type_learner.SPACING):
            checked.take(view(judged, np.full((len(judged.cluster.uuids), 3), np.nan), at))
        after = checked.learnt['small']
        self.assertEqual(before['small'].gain, after.gain)
        self.assertAlmostEqual(before['small'].error, after.error, places=3)
        self.assertAlmostEqual(before['small'].spread, after.spread, delta=0.05)


class PoolTest(unittest.TestCase):

    def test_how_many_requests_a_pool_serves_at_once_is_learnt(self):
        rng = np.random.default_rng(4)
        profile = np.array([100.0, 50.0, 0.1, 0.0])
        state = cluster.build([cluster.Host(f'host-{number}', tuple(
            cluster.Resident(f'{number}-{index}', profile * rng.uniform(0.2, 2.0),
                             storage_wait=0.3) for index in range(4)), None, 'ceph', cores=64)
            for number in range(10)])
        requests = state.storage_wait.sum() / state.profiles[:, :2].sum()
        truth = {'ceph': queues.Pool(requests, 8.0)}
        stretch = queues.Pools(state, truth).stretch(
            state.io_domain, state.profiles[:, :2].sum(axis=1))
        self.assertGreater(stretch.min(), 1.2)
        judged = assessment.Assessor(state)
        checked = host_type_learner.HostTypeLearner(60.0)
        for at in np.arange(0.0, 3600.0 * 8, 6 * host_type_learner.SPACING):
            true = np.column_stack([np.ones(40), np.ones(40), stretch])
            checked.take(view(judged, observed(true, rng), at))
        found = checked.pools['ceph']
        self.assertEqual(8.0, found.at_once)
        self.assertAlmostEqual(requests, found.request)
        # While nothing is sampled, it stays.
        silent = assessment.Assessor(dataclasses.replace(
            state, profiles=np.full((40, 4), np.nan)))
        checked.take(view(silent, np.full((40, 3), np.nan), 3600.0 * 9))
        self.assertEqual(found, checked.pools['ceph'])
        other = host_type_learner.HostTypeLearner(60.0)
        other.adopt({}, checked.pools)
        self.assertEqual(checked.pools, other.pools)

    def test_of_a_pool_that_nothing_is_known_of_nothing_is_said(self):
        state = cluster.build([cluster.Host('host', tuple(
            cluster.Resident(f'{index}', np.array([100.0, 0.0, 0.1, 0.0]))
            for index in range(4)), None, 'ceph', cores=64)])
        checked = host_type_learner.HostTypeLearner(60.0)
        for at in (0.0, 3600.0):
            checked.take(view(assessment.Assessor(state), np.full((4, 3), np.nan), at))
        self.assertEqual({}, checked.pools)


class StepTest(unittest.TestCase):

    def test_numbers_end_where_values_end(self):
        scale = host_type_learner._Scale((1.0, 2.0), 0)
        # Of the present value, then of the other.
        predicted = np.array([[0.5] * 4, [0.1] * 4])
        scale.take(predicted, np.zeros(4), 10.0, 1.0)
        self.assertTrue(scale.step())
        self.assertEqual(2.0, scale.value)
        scale.forget()
        scale.take(predicted[::-1], np.zeros(4), 10.0, 1.0)
        self.assertFalse(scale.step())

    def test_too_few_vms_tell_nothing(self):
        scale = host_type_learner._Scale((1.0, 2.0), 0)
        scale.take(np.array([[0.5, 0.1], [0.1, 0.1]]), np.zeros(2), 100.0, 1.0)
        self.assertFalse(scale.step())
