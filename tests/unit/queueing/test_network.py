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
import itertools
import unittest
from unittest import mock

import hypothesis
from hypothesis import strategies
import numpy as np

from tests.unit.queueing import product_form
from tracon_lab.simulator import loops
from tracon_watcher.queueing import capacity
from tracon_watcher.queueing import network

#: Parts of time alone, and weights, that VMs have.
USED = strategies.one_of(strategies.floats(0.02, 0.97), strategies.sampled_from([0.0, 1.0]))
CORES = strategies.sampled_from([1, 2, 3, 4, 8, 16, 64])


@strategies.composite
def vm(draw):
    return (draw(strategies.sampled_from([1, 2, 4, 8, 16])), draw(USED),
            draw(strategies.sampled_from([1.0, 2.0, 4.0, 16.0])))


def settings(examples=100):
    return hypothesis.settings(max_examples=examples, deadline=None, derandomize=True)


def network_of(cores, vms, uses=None):
    """Return the effects on the VMs (vCPUs, used, weight) of one host."""
    vcpus, used, weight = zip(*vms)
    return network.effects(
        network.Hosts(np.array([float(cores)])),
        network.VMs(np.zeros(len(vms), dtype=int), np.array(vcpus), np.array(used),
                    np.array(weight)), uses)


def slowdowns(cores, vms):
    return network_of(cores, vms).slowdown


def plain(cores, shares):
    return slowdowns(cores, [(1, share, 1.0) for share in shares])


class PropertyTest(unittest.TestCase):

    @settings()
    @hypothesis.given(CORES, vm())
    def test_a_vm_alone_is_not_slowed_down(self, cores, one):
        self.assertAlmostEqual(1.0, slowdowns(cores, [one])[0], places=12)

    @settings(150)
    @hypothesis.given(CORES, strategies.lists(vm(), min_size=2, max_size=12))
    def test_one_more_neighbour_never_lowers_a_slowdown(self, cores, vms):
        fewer, more = slowdowns(cores, vms[:-1]), slowdowns(cores, vms)[:-1]
        self.assertGreaterEqual(fewer.min(), 1.0)
        # The level's sums are kept at some levels alone.
        self.assertLess((fewer / more).max(), 1.02)

    @settings(150)
    @hypothesis.given(CORES, strategies.lists(USED, min_size=2, max_size=12))
    def test_one_more_loop_never_lowers_a_slowdown(self, cores, shares):
        self.assertLess((plain(cores, shares[:-1]) / plain(cores, shares)[:-1]).max(), 1.002)

    @settings(150)
    @hypothesis.given(CORES, strategies.lists(vm(), min_size=1, max_size=12))
    def test_one_more_core_never_raises_a_slowdown(self, cores, vms):
        self.assertLess((slowdowns(cores + 1, vms) / slowdowns(cores, vms)).max(), 1.02)

    @settings(20)
    @hypothesis.given(CORES, strategies.lists(vm(), min_size=2, max_size=12),
                      strategies.randoms(use_true_random=False))
    def test_order_and_units_of_weight_do_not_matter(self, cores, vms, random):
        shuffled = random.sample(range(len(vms)), len(vms))
        expected = slowdowns(cores, vms)[shuffled]
        found = slowdowns(cores, [(vms[i][0], vms[i][1], 1024.0 * vms[i][2]) for i in shuffled])
        np.testing.assert_allclose(found, expected, rtol=1e-3)

    def test_a_host_does_not_feel_another(self):
        hosts = [(1, [(1, 0.9, 1.0), (4, 0.5, 1.0)]), (4, [(4, 1.0, 1.0), (2, 0.8, 4.0)] * 2),
                 (64, [(8, 0.7, 1.0)] * 12)]
        vms = [one for _cores, several in hosts for one in several]
        vcpus, used, weight = (np.array(each) for each in zip(*vms))
        found = network.effects(
            network.Hosts(np.array([float(cores) for cores, _vms in hosts])),
            network.VMs(np.repeat(np.arange(3), [len(several) for _cores, several in hosts]),
                        vcpus, used, weight)).slowdown
        expected = np.concatenate([slowdowns(cores, several) for cores, several in hosts])
        np.testing.assert_allclose(found, expected, rtol=1e-3)

    def test_many_hosts_are_divided_without_a_trace(self):
        rng = np.random.default_rng(1)
        host = np.sort(rng.integers(0, 900, 4500))
        vms = network.VMs(host, rng.choice([1, 2, 4], 4500), rng.random(4500))
        cores = rng.choice([2.0, 4.0, 16.0], 900)
        uses = network.Usage(np.arange(4500), host, (1.0 - vms.used) * 0.5,
                             capacity.table([capacity.servers(1)] * 900))
        whole = network.effects(network.Hosts(cores), vms, uses)
        some = np.flatnonzero(host >= 800)
        last = network.effects(
            network.Hosts(cores), network.VMs(host[some], vms.vcpus[some], vms.used[some]),
            network.Usage(np.arange(len(some)), host[some], uses.used[some], uses.capacities))
        np.testing.assert_allclose(whole.slowdown[some], last.slowdown, rtol=1e-3)
        np.testing.assert_allclose(whole.resource_stretch[some], last.resource_stretch, rtol=1e-3)

    def test_no_vm_at_all(self):
        none = np.zeros(0, dtype=int)
        found = network.effects(network.Hosts(np.array([4.0])),
                                network.VMs(none, none, np.zeros(0)))
        self.assertEqual(0, len(found.slowdown))


class ProductFormTest(unittest.TestCase):

    def test_plain_loops_are_as_the_product_form_has_them(self):
        rng = np.random.default_rng(1)
        wrong = {}
        for cores, load in itertools.product((1, 2, 4, 8, 32, 128), (0.5, 0.8, 1.0, 1.3, 2, 4)):
            for _ in range(3):
                shares = [rng.uniform(0.02, rng.choice([0.97, 0.5]))]
                while sum(shares) < load * cores or len(shares) < 2:
                    shares.append(rng.uniform(0.02, rng.choice([0.97, 0.5])))
                if len(shares) > 300:
                    continue
                found = plain(cores, shares)
                for one in range(min(len(shares), 4)):
                    exact = product_form.slowdown(shares, cores, one)
                    if exact <= 10.0:
                        wrong.setdefault(cores, []).append(found[one] / exact - 1.0)
        self.assertEqual({1, 2, 4, 8, 32, 128}, set(wrong))
        for cores, errors in wrong.items():
            with self.subTest(cores=cores):
                self.assertLess(np.abs(errors).max(), 0.06)
                self.assertLess(np.abs(errors).mean(), 0.01)

    def test_the_product_form_of_two_loops_is_known(self):
        # One that is ready for half of its time alone is found so by the other.
        self.assertAlmostEqual(1.0 + 0.9 * 0.5, product_form.slowdown([0.9, 0.5], 1, 0))
        self.assertAlmostEqual(1.0, product_form.slowdown([0.9, 0.5], 2, 0))


class EventsTest(unittest.TestCase):

    def test_vms_of_all_sizes_are_as_events_have_them(self):
        self.check(1.0)

    def test_vms_of_all_weights_are_as_events_have_them(self):
        self.check(1.0, 2.0, 4.0, 16.0)

    def check(self, *weights):
        rng = np.random.default_rng(2)
        hosts = []
        for cores, load in itertools.product((1, 2, 4, 8, 16), (0.8, 1.3, 2.0, 4.0)):
            vms = []
            while sum(v * a for v, a, _w in vms) < load * cores or len(vms) < 2:
                vms.append((int(rng.choice([v for v in (1, 2, 4, 8, 16) if v <= cores])),
                            rng.uniform(0.05, 0.95), float(rng.choice(weights))))
            hosts.append((cores, vms))
        most = max(len(vms) for _cores, vms in hosts)
        padded = np.array([vms + [(0, 0.5, 1.0)] * (most - len(vms)) for _cores, vms in hosts])
        truth = loops.slowdowns(np.array([float(cores) for cores, _vms in hosts]),
                                padded[:, :, 0].astype(int), padded[:, :, 1], padded[:, :, 2],
                                events=8000, seed=3)
        errors = []
        for (cores, vms), true in zip(hosts, truth):
            found = network_of(cores, vms)
            errors += list(found.slowdown * found.by_itself / true[:len(vms)] - 1.0)
        self.assertGreater(len(errors), 100)
        self.assertLess(np.abs(errors).mean(), 0.08)
        self.assertLess(abs(np.mean(errors)), 0.04)


class NewcomerTest(unittest.TestCase):

    def setUp(self):
        self.hosts = network.Hosts(np.array([2.0, 4.0, 8.0]))
        self.vms = network.VMs(np.array([0, 0, 2, 2]), np.array([1, 2, 8, 4]),
                               np.array([0.5, 0.6, 0.7, 0.8]), np.array([1.0, 1.0, 2.0, 1.0]))
        self.uses = network.Usage(
            np.array([0, 1, 2]), np.array([0, 0, 1]), np.array([0.4, 0.3, 0.2]),
            capacity.table([capacity.servers(1), capacity.servers(2), capacity.servers(1)]))

    def test_it_slows_down_and_is_slowed_down_as_if_it_were_there(self):
        newcomer = network.Newcomer(2, 0.7, resource=np.array([[0], [2], [1]]),
                                    resource_used=np.array([0.25]))
        own, others = network.with_newcomer(self.hosts, self.vms, newcomer, self.uses)
        self.assertEqual(1.0, round(own[1], 2))
        there = network.effects(self.hosts, network.VMs(
            np.array([0, 0, 0, 2, 2]), np.array([1, 2, 2, 8, 4]),
            np.array([0.5, 0.6, 0.7, 0.7, 0.8]), np.array([1.0, 1.0, 1.0, 2.0, 1.0])),
            network.Usage(np.array([0, 1, 3, 2]), np.array([0, 0, 1, 0]),
                          np.array([0.4, 0.3, 0.2, 0.25]), self.uses.capacities)).slowdown
        self.assertGreater(there[2], 1.2)
        np.testing.assert_allclose([own[0], *others[:2]], [there[2], there[0], there[1]],
                                   rtol=1e-3)

    def test_residents_are_worked_out_where_they_are_wanted(self):
        host = np.repeat(np.arange(3000), 2)
        prepared = network.SolvedNetwork(network.Hosts(np.ones(3000)), network.VMs(
            host, np.ones(6000, dtype=int), np.full(6000, 0.6)))
        newcomer = network.Newcomer(2, 0.5)
        own, others = prepared.with_newcomer(newcomer)
        only, before = prepared.with_newcomer(newcomer, False)
        np.testing.assert_array_equal(own, only)
        np.testing.assert_array_equal(prepared.effects.slowdown, before)
        self.assertTrue((others > before + 0.1).all())
        wanted = np.arange(3000) == 7
        only, some = prepared.with_newcomer(newcomer, wanted)
        np.testing.assert_array_equal(own, only)
        np.testing.assert_array_equal(others[wanted[host]], some[wanted[host]])
        np.testing.assert_array_equal(before[~wanted[host]], some[~wanted[host]])

    def test_on_a_host_with_a_core_for_each_vcpu_it_waits_for_none_whatever_others_do(self):
        prepared = network.SolvedNetwork(network.Hosts(np.array([2.0, 1.0])), network.VMs(
            np.arange(2), np.ones(2, dtype=int), np.full(2, 0.5)))
        own, others = prepared.with_newcomer(network.Newcomer(1, 0.5))
        self.assertEqual((1.0, 1.0), (own[0], others[0]))
        self.assertGreater(min(own[1], others[1]), 1.2)

    def test_a_disk_counts_by_the_requests_that_a_newcomer_sends(self):
        vms = network.VMs(np.zeros(2, dtype=int), np.ones(2, dtype=int), np.full(2, 0.1))
        prepared = network.SolvedNetwork(network.Hosts(np.array([64.0])), vms, network.Usage(
            np.arange(2), np.zeros(2, dtype=int), np.full(2, 0.3),
            capacity.table([capacity.servers(4)])))
        place = np.array([[0]])
        few, many = (prepared.with_newcomer(network.Newcomer(
            8, 0.05, resource=place, resource_used=np.array([share]))) for share in (0.001, 0.9))
        np.testing.assert_array_equal(1.0, few[1])
        self.assertGreater(many[1].min(), 1.1)

    def test_a_few_rounds_lead_there(self):
        rng = np.random.default_rng(1)
        for load in (0.3, 0.8, 1.5, 3.0):
            host = np.repeat(np.arange(3), [int(load * 3), int(load * 12), int(load * 40)])
            vms = network.VMs(host, rng.choice([1, 2], len(host)), rng.beta(1, 2, len(host)))
            hosts = network.Hosts(np.array([1.0, 4.0, 16.0]))
            prepared = network.SolvedNetwork(hosts, vms)
            for newcomer in (network.Newcomer(1, 0.5), network.Newcomer(4, 0.9)):
                for one, other in zip(prepared.with_newcomer(newcomer),
                                      network.with_newcomer(hosts, vms, newcomer)):
                    self.assertLess(np.abs(one / other - 1.0).max(), 0.1)
                    self.assertLess(np.abs(one / other - 1.0).mean(), 0.03)

    def test_at_a_disk_it_meets_what_the_product_form_has_there(self):
        rng = np.random.default_rng(1)
        for servers, count in ((1, 8), (1, 30), (2, 30)):
            shares = rng.uniform(0.02, 4.0 / count, count)
            vms = network.VMs(np.zeros(count - 1, dtype=int), np.ones(count - 1, dtype=int),
                              np.full(count - 1, 0.01))
            prepared = network.SolvedNetwork(network.Hosts(np.array([64.0])), vms, network.Usage(
                np.arange(count - 1), np.zeros(count - 1, dtype=int), shares[:-1],
                capacity.table([capacity.servers(servers)])))
            own, others = prepared.with_newcomer(network.Newcomer(
                1, 0.01, resource=np.array([[0]]), resource_used=shares[-1:]))
            exact = [product_form.slowdown(shares, servers, one) for one in range(count)]
            self.assertGreater(max(exact), 1.1)
            self.assertAlmostEqual(1.0, own[0] / exact[-1], delta=0.02)
            np.testing.assert_allclose(others, exact[:-1], rtol=0.1)

    def test_a_newcomer_to_an_empty_host_is_not_slowed_down(self):
        own, others = network.with_newcomer(
            self.hosts, network.VMs(*(np.zeros(0, dtype=int),) * 2, np.zeros(0)),
            network.Newcomer(4, 0.9))
        np.testing.assert_allclose(own, 1.0, rtol=1e-12)
        self.assertEqual(0, len(others))
        own = network.SolvedNetwork(self.hosts,
                                    self.vms).with_newcomer(network.Newcomer(4, 0.9))[0]
        self.assertEqual([False, True, False], (own < 1.0 + 1e-12).tolist())

    def test_one_that_weighs_more_than_all_is_served_like_a_resident_of_that_weight(self):
        for cores, weight, heavier in itertools.product((1, 4), (0.05, 0.25, 1.0), (1, 4, 64)):
            count = 3 * cores
            weights = np.full(count + 1, weight)
            weights[-1] = heavier * weight
            vms = network.VMs(np.zeros(count + 1, dtype=int), np.ones(count + 1, dtype=int),
                              np.full(count + 1, 0.5), weights)
            host = network.Hosts(np.array([float(cores)]))
            solved = network.effects(host, vms).slowdown[-1]
            own, _others = network.with_newcomer(
                host, vms.some(np.arange(count)), network.Newcomer(1, 0.5, heavier * weight))
            self.assertAlmostEqual(1.0, own[0] / solved, delta=0.02, msg=(cores, weight, heavier))

    def test_without_the_only_one(self):
        prepared = network.SolvedNetwork(self.hosts, self.vms, self.uses)
        found = prepared.without(0)
        # Its own vCPUs wait at the disk for each other, nearly as often as before.
        np.testing.assert_allclose(found, 1.0, atol=0.05)
        self.assertEqual((2, 2), found.shape)

    def test_without_one_it_is_nearly_as_if_it_had_never_been(self):
        rng = np.random.default_rng(3)
        off, relief = [], []
        for cores, count in [(1, 3), (2, 4), (2, 5), (8, 20), (64, 60)] * 3:
            vcpus, used = rng.choice([1, 1, 2, 4], count), rng.beta(0.7, 1.2, count)
            used = np.clip(used * rng.uniform(0.6, 2.0) * cores / (vcpus * used).sum(), 0.005,
                           0.95)
            on = np.flatnonzero(rng.random(count) < 0.4)
            uses = network.Usage(on, np.zeros(len(on), dtype=int),
                                 (1.0 - used[on]) * rng.uniform(0.2, 0.8, len(on)),
                                 *capacity.disks(np.array([2.0])))
            hosts = network.Hosts(np.array([float(cores)]))
            prepared = network.SolvedNetwork(hosts, network.VMs(
                np.zeros(count, dtype=int), vcpus, used), uses)
            found = prepared.without(0)
            for one in rng.choice(count, min(count, 5), replace=False):
                stay = np.delete(np.arange(count), one)
                kept = uses.vm != one
                alone = network.effects(hosts, network.VMs(
                    np.zeros(count - 1, dtype=int), vcpus[stay], used[stay]),
                    dataclasses.replace(uses, vm=uses.vm[kept] - (uses.vm[kept] > one),
                                        resource=uses.resource[kept], used=uses.used[kept]))
                off.append(np.abs(found[one, stay] / alone.slowdown - 1.0).mean())
                now = prepared.effects.slowdown[stay]
                relief.append(((now - found[one, stay]).sum(), (now - alone.slowdown).sum()))
        self.assertLess(np.mean(off), 0.01)
        self.assertLess(max(off), 0.05)
        said, true = np.transpose(relief)
        self.assertAlmostEqual(1.0, said.sum() / true.sum(), delta=0.15)


class SolvedHostsTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        rng = np.random.default_rng(1)
        #: Of each host: vCPUs, CPU use, and use of its disk by every second VM, (VMs, 3).
        self.hosts = [np.column_stack([
            rng.choice([1, 2, 4, 8], count), rng.uniform(0.0, 0.9, count),
            rng.uniform(0.02, 0.1, count) * (np.arange(count) % 2)])
            for count in rng.integers(8, 25, 12)]
        self.known = network.SolvedHosts()
        self.solved = []
        solve = network._Network.solve
        self.enterContext(mock.patch.object(
            network._Network, 'solve', autospec=True,
            side_effect=lambda one: (self.solved.append(len(one._vcpus)), solve(one))[1]))

    def network(self, hosts, known=None):
        rows = np.concatenate(hosts)
        place = np.repeat(np.arange(len(hosts)), [len(one) for one in hosts])
        on_disk = np.flatnonzero(rows[:, 2])
        self.solved.clear()
        return network.SolvedNetwork(
            network.Hosts(np.full(len(hosts), 8.0)),
            network.VMs(place, rows[:, 0].astype(int), rows[:, 1]),
            network.Usage(on_disk, place[on_disk], rows[on_disk, 2],
                          np.tile(np.minimum(np.arange(1.0, 9.0), 2.0), (len(hosts), 1))), known)

    def assert_alike(self, found, expected):
        for name, values in vars(expected.effects).items():
            np.testing.assert_allclose(getattr(found.effects, name), values, rtol=1e-3)
        count = len(expected._hosts.cores)
        newcomer = network.Newcomer(4, 0.5, resource=np.arange(count)[:, np.newaxis],
                                    resource_used=np.array([0.1]))
        for one, other in zip(found.with_newcomer(newcomer), expected.with_newcomer(newcomer)):
            np.testing.assert_allclose(one, other, rtol=5e-3)
        for host in range(count):
            np.testing.assert_allclose(found.without(host), expected.without(host), rtol=1e-3)

    def test_only_what_differs_is_solved_again(self):
        self.network(self.hosts, self.known)
        self.assertEqual(sum(map(len, self.hosts)), sum(self.solved))
        changed = [self.hosts[place] for place in (3, 9, 1, 11, 0)]
        changed[2] = changed[2][1:]
        found = self.network(changed, self.known)
        self.assertEqual([len(changed[2])], self.solved)
        self.assert_alike(found, self.network(changed))
        self.network(changed, self.known)
        self.assertEqual([], self.solved)

    def test_of_many_small_groups_most_are_solved_together(self):
        for one in self.hosts:
            self.network([one], self.known)
        found = self.network(self.hosts, self.known)
        self.assertEqual(1, len(self.solved))
        self.assert_alike(found, self.network(self.hosts))
        self.network(self.hosts, self.known)
        self.assertEqual([], self.solved)

    def test_another_disk_is_another_host(self):
        self.network(self.hosts[:1], self.known)
        slower = self.hosts[0].copy()
        slower[1, 2] *= 1.5
        self.network([slower], self.known)
        self.assertEqual([len(slower)], self.solved)

    def test_hosts_that_are_alike_each_count(self):
        self.network(self.hosts[:1], self.known)
        found = self.network(self.hosts[:1] * 3, self.known)
        self.assert_alike(found, self.network(self.hosts[:1] * 3))

    def test_those_solved_first_are_forgotten_first(self):
        known = network.SolvedHosts(len(self.hosts[0]) + len(self.hosts[1]))
        for one in self.hosts[:3]:
            self.network([one], known)
        self.network([self.hosts[2]], known)
        self.assertEqual([], self.solved)
        self.network([self.hosts[0]], known)
        self.assertEqual([len(self.hosts[0])], self.solved)


class ResourceTest(unittest.TestCase):

    def two(self, capacity_, **more):
        """Return the effects on two VMs that use a disk for half of their time."""
        uses = network.Usage(np.array([0, 1]), np.array([0, 0]), np.array([0.5, 0.5]),
                             capacity.table([capacity_]), **more)
        return network_of(2, [(1, 0.2, 1.0), (1, 0.2, 1.0)], uses)

    def test_one_disk_is_as_one_core(self):
        # On cores of their own, two loops share nothing but the disk.
        found = self.two(capacity.servers(1))
        exact = product_form.slowdown([0.5, 0.5], 1, 0)
        np.testing.assert_allclose(found.slowdown, exact, rtol=0.01)
        self.assertEqual([1.0, 1.0], np.round(found.stretch, 3).tolist())

    def test_what_a_disk_does_at_once_helps(self):
        alone = self.two(capacity.servers(2)).slowdown[0]
        self.assertAlmostEqual(1.0, alone, delta=0.01)
        self.assertLess(self.two(capacity.by_depth([1, 2], [100, 150])).slowdown[0],
                        self.two(capacity.servers(1)).slowdown[0])

    def test_gain_lengthens_waits(self):
        one = self.two(capacity.servers(1)).resource_stretch[0]
        more = self.two(capacity.servers(1), gain=np.array([1.3])).resource_stretch[0]
        self.assertGreater(more - 1.0, 1.1 * (one - 1.0))

    def test_other_hosts_loops_count_at_shared_storage(self):
        busy = self.two(capacity.servers(1), outside=np.array([[2.0, 0.5]])).slowdown[0]
        self.assertGreater(busy, self.two(capacity.servers(1)).slowdown[0] + 0.5)

    def test_wake_ups_cost_on_busy_cores_alone(self):
        hosts = network.Hosts(np.array([1.0]))

        def first(other):
            return network.effects(hosts, network.VMs(
                np.zeros(2, dtype=int), np.array([1, 1]), np.array([0.1, other]),
                wake_ups=np.array([2000.0, 0.0]))).slowdown[0]

        self.assertAlmostEqual(1.0, first(0.0), places=6)
        self.assertGreater(first(0.999), 1.1 + 2000 * network.WAKE_UP * 0.9)

    def test_a_second_thread_of_a_core_adds_less_than_a_core(self):
        vms = network.VMs(np.zeros(4, dtype=int), np.ones(4, dtype=int), np.full(4, 0.9))

        def mean(cores, physical):
            return network.effects(network.Hosts(np.array([cores]), np.array([physical])),
                                   vms).slowdown.mean()

        self.assertLess(mean(4.0, 4.0), mean(4.0, 2.0))
        self.assertLess(mean(4.0, 2.0), mean(2.0, 2.0))


class BadInputTest(unittest.TestCase):

    def test_a_number_that_is_none_is_named(self):
        for wrong in (np.nan, np.inf, -0.1, 1.1):
            with self.subTest(wrong), self.assertRaisesRegex(
                    ValueError, f'used: {wrong} is not a number from 0.0 to 1.0'):
                plain(2, [0.5, wrong])

    def test_a_host_without_cores(self):
        with self.assertRaisesRegex(ValueError, 'cores: 0.0 is not'):
            plain(0, [0.5])

    def test_hosts_out_of_order(self):
        with self.assertRaisesRegex(ValueError, 'not in the order of their hosts'):
            network.effects(network.Hosts(np.array([1.0, 1.0])), network.VMs(
                np.array([1, 0]), np.array([1, 1]), np.array([0.5, 0.5])))
