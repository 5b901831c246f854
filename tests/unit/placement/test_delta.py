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

"""A delta leads to exactly the snapshot that it was made for, or is refused with the reason."""

import dataclasses
import json
import unittest

import hypothesis
from hypothesis import strategies
import numpy as np

from tests import synthetic
from tests.unit.placement import snapshots
from tracon_watcher import errors
from tracon_watcher.placement import cluster
from tracon_watcher.placement import delta
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import queues
from tracon_watcher.placement import snapshot
from tracon_watcher.placement import snapshot_lines

VM = np.array([100.0, 50.0, 0.4, 0.1])


def state(identity=(3, 7), hosts=('a', 'b', 'c'), vms=2, at=1000.0, **changes):
    """Return a snapshot; ``changes`` are profiles by uuid."""
    built = cluster.build(
        [cluster.Host(name, tuple(cluster.Resident(
            f'{name}-{index}', changes.get(f'{name}{index}', VM)) for index in range(vms)),
            synthetic.HOST_TYPE, updated_at=at, cores=4) for name in hosts],
        {newcomer_profiles.ALL: newcomer_profiles.Profile(VM, np.zeros(4), 3, 'all VMs')},
        identity[1], at)
    return snapshots.whole(snapshot.Snapshot(built, 300.0, identity[0]))


def contents(old, new):
    """Return the objects of the lines of a delta, but for the seal."""
    return [json.loads(line) for line in delta.encode(old, new)][:-1]


class TestDelta(unittest.TestCase):

    @hypothesis.given(snapshots.drawn(), snapshots.drawn((3, 8)))
    @hypothesis.settings(deadline=None, max_examples=300)
    def test_it_leads_to_exactly_the_other_snapshot(self, old, new):
        snapshots.same(self, new, delta.apply(old, delta.encode(old, new), 'it'))

    @hypothesis.given(strategies.data())
    @hypothesis.settings(deadline=None, max_examples=40)
    def test_one_after_the_other(self, data):
        first = found = data.draw(snapshots.drawn((1, 0)))
        for version in range(1, 4):
            new = data.draw(snapshots.drawn((1, version)))
            found = delta.apply(found, delta.encode(first, new), 'it')
            first = new
        snapshots.same(self, first, found)

    def test_only_what_has_changed_is_in_it(self):
        old, new = state(), state((3, 8), b1=2 * VM, at=1060.0)
        header, host = contents(old, new)
        self.assertEqual('b', host['host'])
        self.assertEqual(1060.0, header['updated_at'])
        self.assertEqual([[3, 7], 3, 8], [header[name] for name in ('base', 'epoch', 'version')])
        self.assertNotIn('order', header)

    def test_nothing_but_the_time(self):
        header, = contents(state(), state((3, 8), at=1060.0))
        self.assertEqual(1060.0, header['updated_at'])

    def test_hosts_that_were_not_refreshed_keep_their_time(self):
        old, new = state(), state((3, 8), at=1060.0)
        times = new.cluster.updated_at.copy()
        times[1] = 1000.0
        new = dataclasses.replace(new, cluster=dataclasses.replace(new.cluster, updated_at=times))
        header, line = contents(old, new)
        self.assertEqual((1060.0, {'times': [None, 1000.0, None]}), (header['updated_at'], line))
        snapshots.same(self, new, delta.apply(old, delta.encode(old, new), 'it'))

    def test_a_host_that_comes_and_one_that_goes(self):
        old, new = state(), state((3, 8), hosts=('b', 'c', 'd'))
        header, host, removed = contents(old, new)
        self.assertEqual(('d', ['a']), (host['host'], removed['removed']))
        self.assertNotIn('order', header)
        middle = state((3, 8), hosts=('a', 'aa', 'b', 'c'))
        self.assertEqual(['a', 'aa', 'b', 'c'], contents(old, middle)[0]['order'])

    def test_what_is_learnt_is_always_in_it(self):
        known = {'learnt': {synthetic.HOST_TYPE: queues.LearnedParameters(1.5, vm_hours=20.0)},
                 'pools': {'ceph': queues.Pool(0.004)}}
        old, new = (dataclasses.replace(state(identity), **known)
                    for identity in ((3, 7), (3, 8)))
        header, = contents(old, new)
        self.assertEqual(1.5, header['learnt'][synthetic.HOST_TYPE]['gain'])
        self.assertEqual({'ceph': {'request': 0.004, 'at_once': queues.POOL}}, header['pools'])
        snapshots.same(self, new, delta.apply(old, delta.encode(old, new), 'it'))
        forgotten = state((3, 8))
        snapshots.same(self, forgotten, delta.apply(old, delta.encode(old, forgotten), 'it'))

    def test_cores_that_have_changed(self):
        old, new = state(), state((3, 8))
        new.cluster.cores[1] = 8.0
        _header, host = contents(old, new)
        self.assertEqual(('b', 8), (host['host'], host['cores']))
        snapshots.same(self, new, delta.apply(old, delta.encode(old, new), 'it'))

    def test_what_a_later_release_adds_is_passed_over(self):
        old, new = state(), dataclasses.replace(
            state((3, 8), b1=2 * VM), learnt={synthetic.HOST_TYPE: queues.LearnedParameters(1.5)})
        lines = contents(old, new)
        for part in (lines[0], lines[0]['learnt'][synthetic.HOST_TYPE], lines[1],
                     lines[1]['vms'][0]):
            part['weather'] = 'fine'
        found = delta.apply(old, snapshot_lines.sealed([*lines, {'weather': 'fine'}]), 'it')
        snapshots.same(self, new, found)
        self.assertEqual(1.5, found.learnt[synthetic.HOST_TYPE].gain)

    def test_another_base_is_refused(self):
        lines = list(delta.encode(state(), state((3, 8))))
        for identity in ((3, 6), (3, 8), (4, 7)):
            with self.assertRaisesRegex(delta.WrongBase, r'from snapshot 3\.7.*there is '
                                        rf'{identity[0]}\.{identity[1]}.*whole') as caught:
                delta.apply(state(identity), lines, 'it')
            self.assertEqual(((3, 7), identity), (caught.exception.base, caught.exception.found))

    def test_a_base_that_only_looks_alike_is_noticed(self):
        lines = list(delta.encode(state(), state((3, 8), b1=2 * VM)))
        for other in (state(hosts=('a', 'b')), state(vms=3), state(hosts=('a', 'b', 'c', 'd'))):
            with self.assertRaisesRegex(errors.InvalidDocument, '(hosts|vms) is .* are stated'):
                delta.apply(other, lines, 'it')

    def test_a_vm_in_two_places_is_refused(self):
        old, new = state(), state((3, 8), b1=2 * VM)
        lines = list(delta.encode(old, new))
        moved = dataclasses.replace(old, cluster=old.cluster.moved({'b-0': 'a'}))
        with self.assertRaisesRegex(errors.InvalidDocument, 'VM b-0 occurs twice'):
            delta.apply(moved, lines, 'it')

    def test_truncated_at_every_line(self):
        old, new = state(), state((3, 8), b1=2 * VM)
        lines = list(delta.encode(old, new))
        for count in range(len(lines)):
            with self.assertRaisesRegex(errors.InvalidDocument, 'truncated'):
                delta.apply(old, lines[:count], 'it')


class TestPatch(unittest.TestCase):

    def test_order(self):
        found = delta.patched(state().cluster, cluster.build([cluster.Host('d')]), {'b'},
                              ['d', 'c', 'a'])
        self.assertEqual(('d', 'c', 'a'), found.hosts)
        self.assertEqual(('c-0', 'c-1', 'a-0', 'a-1'), found.uuids)
        self.assertEqual([1, 1, 2, 2], found.host.tolist())
        for order in (['a', 'c'], ['a', 'c', 'c'], ['a', 'b', 'c', 'd']):
            with self.assertRaisesRegex(ValueError, 'order names'):
                delta.patched(state().cluster, cluster.build([cluster.Host('d')]), {'b'}, order)

    def test_storage_that_no_vm_uses_any_more_is_forgotten(self):
        found = delta.patched(state().cluster, cluster.build([
            cluster.Host('a', (cluster.Resident('x', VM, io_domain='pool'),), io_domain=None)]))
        self.assertEqual(('local:b', 'local:c', 'pool'), found.io_domains)
        self.assertEqual([-1, 0, 1], found.host_io_domain.tolist())
        self.assertEqual([2, 0, 0, 1, 1], found.io_domain.tolist())

    def test_ranges(self):
        found = delta.ranges(np.array([5, 0, 9]), np.array([2, 0, 3]))
        self.assertEqual([5, 6, 9, 10, 11], found.tolist())
        self.assertEqual(0, len(delta.ranges(np.array([], dtype=int), np.array([], dtype=int))))
