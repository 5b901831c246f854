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

"""Decisions: the safest first, looser as bands are learnt, tighter at once."""

import dataclasses
import math
import unittest

from hypothesis import given
from hypothesis import strategies

from tracon_watcher.background import controllers
from tracon_watcher.background import regulator

GIB = 2**30
CORES = frozenset(range(4))
SETTINGS = regulator.Settings(
    controllers.Setting(2.0, 6), controllers.Setting(2.0, 5), controllers.Setting(1.0, 4),
    capacities={regulator.NETWORK: 1e8, regulator.BYTES: 1e9})


def use(running=1.0, waiting=0.0, sent=1e6, disk=1e7, **more):
    return regulator.Usage(running=running, waiting=waiting,
                           rates={regulator.NETWORK: sent, regulator.BYTES: disk}, **more)


def host(uses=None, used=4 * GIB, pinned=None, groups=None, online=CORES):
    return regulator.Observation(
        {'vm-1': use(), 'vm-2': use()} if uses is None else uses, pinned or {}, online,
        16.0 * GIB, used, {'a': GIB, 'b': GIB} if groups is None else groups)


def after(count=12, decider=None, **seen):
    """Return a regulator after so many equal looks, and its last decision."""
    decider = regulator.Regulator(SETTINGS) if decider is None else decider
    for _look in range(count):
        found = decider.decide(host(**seen))
    return decider, found


class TestRegulator(unittest.TestCase):

    def assert_safest(self, decision):
        self.assertEqual({}, dict(decision.groups))
        self.assertTrue(decision.others.paused)
        self.assertEqual(SETTINGS.aimd.minimum, decision.others.cores)
        self.assertEqual({regulator.BYTES: 5e6}, decision.others.rates)

    def test_all_is_paused_until_memory_is_learnt(self):
        _decider, found = after(5)
        self.assert_safest(found)
        _decider, found = after(6)
        self.assertEqual({'a', 'b'}, set(found.groups))
        # 16 GiB, less 4 and twice the least deviation; each has 1 and half of the rest.
        left = 12 * GIB - 2 * SETTINGS.memory_floor
        self.assertEqual(left / 2, found.groups['a'].memory)
        self.assertEqual(CORES, found.groups['a'].cpus)
        # Two VMs that send 1 MB/s each, and 1 % of the capacity as least deviation.
        self.assertAlmostEqual(1e8 - 2e6 - 2e6, found.network)
        self.assertAlmostEqual((1e9 - 2e7 - 2e7) / 2 / 2, found.groups['b'].rates['disk bytes'])

    def test_the_quota_grows_only_while_something_may_run(self):
        _decider, found = after(6)
        self.assertAlmostEqual(0.11 / 2, found.groups['a'].cores)
        _decider, found = after(16)
        self.assertAlmostEqual(1.11 / 2, found.groups['a'].cores)
        decider, _found = after(30, groups={})
        self.assertEqual(0.01, decider.quota.cores)

    def test_lost_sight_tightens_at_once_and_learns_again(self):
        decider, _found = after(20)
        decider.decide(host({'vm-1': use(sent=3e7), 'vm-2': use()}))
        self.assertEqual({regulator.NETWORK}, set(decider.episodes))
        found = decider.decide(None)
        self.assert_safest(found)
        # Nothing is known of what is tight now.
        self.assertEqual({}, decider.episodes)
        self.assertEqual(1, len(found.notes))
        self.assertEqual([], list(decider.decide(None).notes))
        _decider, found = after(5, decider)
        self.assert_safest(found)
        _decider, found = after(1, decider)
        self.assertEqual({'a', 'b'}, set(found.groups))

    def test_a_vm_that_waits_cuts_the_quota_and_is_named_once(self):
        decider, _found = after(30)
        before = decider.quota.cores
        slow = {'vm-1': use(), 'vm-2': use(1.0, 0.03)}
        found = decider.decide(host(slow))
        self.assertAlmostEqual(before / 2, decider.quota.cores)
        self.assertEqual(1, len(found.notes))
        self.assertIn('processor: of VM vm-2', found.notes[0])
        found = decider.decide(host(slow))
        self.assertAlmostEqual(before / 4, decider.quota.cores)
        self.assertEqual([], list(found.notes))
        self.assertEqual(2, decider.tightened['processor'])
        notes = [note for _look in range(6) for note in decider.decide(host()).notes]
        self.assertEqual(['processor: no longer tight'], notes)

    def test_an_episode_has_its_vm_its_limits_and_its_end(self):
        decider, _found = after(30)
        self.assertEqual({}, decider.episodes)
        before, slow = decider.quota.cores, {'vm-1': use(), 'vm-2': use(1.0, 0.03)}
        for _look in range(2):
            decider.decide(host(slow))
        (one,) = decider.episodes.values()
        self.assertEqual(('vm-2', before), (one.vm, one.before))
        self.assertAlmostEqual(before / 4, one.least)
        # Another VM does not change whom the episode names, as in the log.
        decider.decide(host({'vm-1': use(1.0, 0.2), 'vm-2': use()}))
        self.assertEqual(['vm-2'], [one.vm for one in decider.episodes.values()])
        after(6, decider)
        self.assertEqual({}, decider.episodes)
        decider.decide(host({'vm-1': use(sent=3e7), 'vm-2': use()}))
        one = decider.episodes[regulator.NETWORK]
        self.assertEqual('vm-1', one.vm)
        self.assertAlmostEqual(1e8 - 4e6, one.before)
        self.assertAlmostEqual(1e8 - 3.3e7, one.least)
        # The memory use of single VMs is not read.
        decider.decide(host(used=15.9 * GIB))
        self.assertIsNone(decider.episodes[regulator.MEMORY].vm)
        self.assertLess(decider.episodes[regulator.MEMORY].least,
                        decider.episodes[regulator.MEMORY].before)
        self.assertTrue(math.isnan(decider.episodes[regulator.PAUSE].before))

    def test_instructions_per_cycle_where_every_vm_counts_them(self):
        counted = {'vm-1': use(instructions=2e9, cycles=1e9),
                   'vm-2': use(instructions=1e9, cycles=1e9)}
        decider, _found = after(30, uses=counted)
        self.assertAlmostEqual(1.5, decider.quota.mean)
        # Whether they wait does not count then.
        decider.decide(host({**counted, 'vm-2': dataclasses.replace(
            counted['vm-2'], waiting=5.0)}))
        self.assertEqual('inside', decider.quota.event)
        decider.decide(host({**counted, 'vm-2': use(instructions=5e8, cycles=1e9)}))
        self.assertEqual('phase change', decider.quota.event)
        # A VM without counters: the other signal, learnt from the beginning.
        decider.decide(host({**counted, 'vm-3': use()}))
        self.assertEqual(('learning', 0.01), (decider.quota.event, decider.quota.cores))

    def test_a_violation_of_the_network_names_who_sends(self):
        decider, _found = after(20)
        found = decider.decide(host({'vm-1': use(sent=3e7), 'vm-2': use()}))
        self.assertAlmostEqual(1e8 - 3.1e7 - 2e6, found.network)
        self.assertTrue(any('network: VM vm-1 rose' in note for note in found.notes), found.notes)
        found = decider.decide(host({'vm-1': use(sent=2e8), 'vm-2': use()}))
        self.assertAlmostEqual(1e6, found.network)

    def test_memory_that_is_wanted_pauses_or_kills_at_once(self):
        for kill in (False, True):
            decider = regulator.Regulator(dataclasses.replace(SETTINGS, kill=kill))
            after(20, decider)
            found = decider.decide(host(used=13.5 * GIB, groups={'a': GIB, 'b': 2 * GIB}))
            self.assertEqual({'a'} if kill else set(), set(found.groups))
            self.assertEqual(['b'] if kill else [], list(found.killed))
            self.assertTrue(found.others.paused)
            self.assertTrue(any(note.startswith('pause: ') for note in found.notes), found.notes)

    def test_where_all_fit_after_a_violation_only_the_limit_falls(self):
        decider, before = after(20)
        found = decider.decide(host(used=6 * GIB))
        self.assertEqual({'a', 'b'}, set(found.groups))
        self.assertEqual(before.groups['a'].memory - GIB, found.groups['a'].memory)

    def test_cores_that_a_vm_is_pinned_to(self):
        _decider, found = after(20, pinned={'vm-1': frozenset({0, 1}), 'vm-2': CORES})
        self.assertEqual({2, 3}, found.groups['a'].cpus)
        decider, found = after(20, pinned={'vm-1': CORES - {3}, 'vm-2': frozenset({3})})
        self.assert_safest(found)
        self.assertEqual(20, decider.tightened['cores'])
        self.assertEqual([], list(found.notes))

    def test_a_vm_that_is_not_reported_for_a_moment_keeps_its_part(self):
        one = use(sent=1e7)
        decider, before = after(20, uses={'vm-1': one, 'vm-2': one})
        found = [decider.decide(host({'vm-1': one})).network for _look in range(40)]
        self.assertEqual([before.network] * 40, found)
        _decider, found = after(regulator.HOLD, decider, uses={'vm-1': one})
        self.assertAlmostEqual(1e8 - 1e7 - 2e6, found.network)

    def test_a_vm_that_is_there_but_not_reported_is_not_taken_for_gone(self):
        there = {'vm-1': CORES, 'vm-2': CORES}
        one = use(sent=1e7)
        decider, before = after(20, uses={'vm-1': one, 'vm-2': one}, pinned=there)
        _decider, found = after(200, decider, uses={}, pinned=there)
        self.assertEqual(before.network, found.network)
        self.assertEqual(0.01, decider.quota.cores)
        # Where there was none, and one comes of which nothing is known yet.
        decider, _found = after(60, uses={})
        after(60, decider, uses={}, pinned=there)
        self.assertEqual(0.01, decider.quota.cores)

    def test_no_vm_is_harmed_where_there_is_none_and_the_first_begins_at_the_minimum(self):
        decider, _found = after(60, uses={})
        self.assertEqual(4.0, decider.quota.cores)
        decider.decide(host())
        self.assertEqual(0.01, decider.quota.cores)

    def test_unknown_memory_pauses(self):
        decider, _found = after(20)
        self.assert_safest(decider.decide(host(used=math.nan)))

    @given(strategies.lists(strategies.one_of(strategies.none(), strategies.builds(
        host, strategies.dictionaries(
            strategies.sampled_from(['vm-1', 'vm-2', 'vm-3']), strategies.builds(
                use, *[strategies.one_of(strategies.floats(0, 4), strategies.just(math.nan))] * 2,
                *[strategies.one_of(strategies.floats(0, 2e9), strategies.just(math.nan))] * 2),
            max_size=3), strategies.floats(0, 20.0 * GIB),
        strategies.dictionaries(strategies.sampled_from(['vm-1', 'vm-2']), strategies.frozensets(
            strategies.integers(0, 3), min_size=1)),
        strategies.dictionaries(strategies.sampled_from('ab'), strategies.integers(0, 20 * GIB)))),
        max_size=30), strategies.booleans())
    def test_whatever_is_seen_no_more_is_let_loose_than_is_left(self, looks, kill):
        decider = regulator.Regulator(dataclasses.replace(SETTINGS, kill=kill))
        for seen in looks:
            found = decider.decide(seen)
            self.assertTrue(found.others.paused)
            self.assertTrue(1e6 <= found.network <= 1e8)
            if seen is None:
                self.assert_safest(found)
                continue
            self.assertLessEqual(sum(one.memory for one in found.groups.values()),
                                 max(16 * GIB - seen.memory_used, 0))
            self.assertLessEqual(sum(one.cores for one in found.groups.values()), 4.0 + 1e-9)
            for name, limits in found.groups.items():
                self.assertGreaterEqual(limits.memory, seen.groups[name])
                for cores in seen.pinned.values():
                    self.assertFalse(limits.cpus & cores and cores != CORES)
