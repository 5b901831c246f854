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

"""The snapshot file comes back whole, or not at all and with the reason."""

import dataclasses
import json
import os
import pathlib
import tempfile
import unittest

import hypothesis
from hypothesis import strategies
import numpy as np

from tests import synthetic
from tests.unit.placement import snapshots
from tracon_watcher import errors
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import queues
from tracon_watcher.placement import snapshot
from tracon_watcher.placement import snapshot_lines

VM = np.array([100.0, 50.0, 0.4, 0.1])


def small_state():
    victim = cluster.Resident('victim', VM, limits.Limits(1.5, 0.5))
    new = cluster.Resident('new')
    return cluster.build(
        [cluster.Host('a', (victim, new), synthetic.HOST_TYPE, updated_at=1000.0),
         cluster.Host('b', (cluster.Resident('far', VM, io_domain='pool'),), None, None,
                      cores=16)],
        newcomer_profiles.learn(np.stack([VM, 2 * VM]), [('p', 'f', 'i'), ('q', 'f', 'i')]), 7,
        1234.5)


class Written(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(
            self.enterContext(tempfile.TemporaryDirectory()), 'snapshot.jsonl')
        self.state = small_state()
        self.write()

    def write(self):
        snapshot.write(self.path, self.state, 300.0, {'pool': queues.Pool(0.004)})

    def refused(self, lines, expected):
        self.path.write_text(''.join(lines))
        with self.assertRaises(errors.InvalidDocument) as caught:
            snapshot.read(self.path)
        text = str(caught.exception)
        self.assertIn(os.fspath(self.path), text)
        self.assertRegex(text, expected)

    def lines(self):
        return self.path.read_text().splitlines(keepends=True)

    def edited(self, number, change):
        lines = self.lines()
        content = json.loads(lines[number])
        change(content)
        lines[number] = json.dumps(content) + '\n'
        return lines

    def test_comes_back_whole(self):
        read = snapshot.read(self.path)
        self.assertEqual(300.0, read.maximum_age_seconds)
        self.assertEqual(7, read.version)
        for name in ('hosts', 'host_type', 'uuids', 'generated_at'):
            self.assertEqual(getattr(self.state, name), getattr(read.cluster, name))
        for name in ('host_io_domain', 'updated_at', 'cores', 'host', 'io_domain', 'profiles',
                     'max_slowdown', 'min_iops_ratio'):
            np.testing.assert_array_equal(getattr(self.state, name), getattr(read.cluster, name))
        self.assertEqual(set(self.state.history), set(read.cluster.history))
        kept = newcomer_profiles.expected(read.cluster.history, 'p', 'f', 'i')
        np.testing.assert_array_equal(VM, kept.mean)

    def test_epoch_and_what_was_learnt(self):
        read = snapshot.read(self.path)
        self.assertEqual((0, {}, {'pool': queues.Pool(0.004)}),
                         (read.epoch, read.learnt, read.pools))
        learnt = {synthetic.HOST_TYPE: queues.LearnedParameters(1.2, vm_hours=30.0, coverage=0.7)}
        read = snapshots.whole(snapshot.Snapshot(self.state, 300.0, 4, learnt))
        self.assertEqual(((4, 7), learnt, {}), (read.identity, read.learnt, read.pools))

    def test_how_hosts_are_to_be_judged(self):
        read = snapshot.read(self.path)
        settings = read.settings(confidence=0.9)
        self.assertEqual((0.9, 300.0, read.learnt, read.pools),
                         (settings.confidence, settings.maximum_age, settings.learnt,
                          settings.pools))
        self.assertEqual(60.0, read.settings(maximum_age=60.0).maximum_age)

    def test_storage_that_could_not_be_found_out_stays_unknown(self):
        state = cluster.build([cluster.Host('a', (
            cluster.Resident('there', VM), cluster.Resident('where', VM, io_domain='unknown')))])
        read = snapshots.whole(snapshot.Snapshot(state, 300.0)).cluster
        self.assertEqual([0, -1], read.io_domain.tolist())

    def test_nothing_else_is_left_in_the_folder(self):
        self.assertEqual([self.path], list(self.path.parent.iterdir()))

    def test_truncated_at_every_line(self):
        lines = self.lines()
        for count in range(len(lines)):
            self.refused(lines[:count], 'truncated')

    def test_truncated_inside_a_line(self):
        lines = self.lines()
        self.refused(lines[:1] + [lines[1][:30]], 'line 2.*no valid JSON')

    def test_missing_line(self):
        lines = self.lines()
        self.refused(lines[:1] + lines[2:], 'end is .*lines were lost')

    def test_edited_number(self):
        def change(content):
            content['vms'][0]['profile'][2] = 0.5
        self.refused(self.edited(1, change), 'sha256 .*changed after')

    def test_bad_values_are_named(self):
        def put(name, value):
            return lambda content: content['vms'][0].__setitem__(name, value)
        for change, expected in (
                (put('profile', [1, -2, 0.1, 0.1]), r'line 2: vms\[0\].profile\[1\] is -2'),
                (put('profile', [1, 2, 0.1]), r'vms\[0\].profile is \[1, 2, 0.1\]: .*4 entries'),
                (put('profile', [1, 2, 'x', 0.1]), r"vms\[0\].profile\[2\] is 'x'"),
                (put('max_slowdown', 0.5), r'vms\[0\].max_slowdown is 0.5: .*from 1 to 1000'),
                (put('min_iops_ratio', 'high'), r"vms\[0\].min_iops_ratio is 'high'"),
                (put('own_wait', 1.5), r'vms\[0\].own_wait is 1.5: .*from 0 to 1'),
                (put('storage_wait', 1.5), r'vms\[0\].storage_wait is 1.5: .*from 0 to 1'),
                (put('vcpus', 0), r'vms\[0\].vcpus is 0: .*from 1 to 65536'),
                (put('vcpus', 1.5), r'vms\[0\].vcpus is 1.5: .*a whole number'),
                (lambda content: content.update(cores=0), 'cores is 0'),
                (put('uuid', 5), r'vms\[0\].uuid is 5'),
                (lambda content: content.update(host='a\0'), r"host is 'a\\x00': .*control"),
                (lambda content: content.update(host=''), "host is ''"),
                (lambda content: content.update(updated_at=None), 'updated_at is None'),
                (lambda content: content.update(vms='none'), "vms is 'none'")):
            with self.subTest(expected):
                self.write()
                self.refused(self.edited(1, change), expected)

    def test_what_a_later_release_adds_is_passed_over(self):
        def kind(content):
            content.clear()
            content.update(weather='fine')

        for line, change in (
                (0, lambda content: content.update(weather='fine')),
                (0, lambda content: content['pools']['pool'].update(weather='fine')), (-2, kind),
                (1, lambda content: content.update(weather='fine')),
                (1, lambda content: content['vms'][0].update(weather='fine')),
                (-2, lambda content: content.update(weather='fine'))):
            with self.subTest(line=line):
                self.write()
                lines = snapshot_lines.sealed(
                    json.loads(one) for one in self.edited(line, change)[:-1])
                self.path.write_text(''.join(lines))
                found = snapshot.read(self.path)
                self.assertEqual(self.state.uuids, found.cluster.uuids)
                np.testing.assert_array_equal(self.state.profiles, found.cluster.profiles)

    def test_bad_header(self):
        for name, value, expected in (
                ('schema', 'tracon-snapshot/9', "schema is 'tracon-snapshot/9': expected one of"),
                ('version', -1, 'version is -1'),
                ('version', 7.5, 'version is 7.5: .*whole number'),
                ('epoch', -1, 'epoch is -1'),
                ('epoch', 10 ** 17, 'epoch is 1000'),
                ('schema', 'tracon-snapshot/1', "schema is 'tracon-snapshot/1': expected one of"),
                ('learnt', [], r'learnt is \[\]: expected a JSON object'),
                ('learnt', {'big': 3}, r'learnt.big is 3: expected a JSON object'),
                ('learnt', {'big': {'gain': 0.0}}, 'learnt.big.gain is 0.0: .*from 0.1 to 10'),
                ('pools', {'ceph': {'request': 0.1, 'at_once': 0.5}},
                 'pools.ceph.at_once is 0.5: .*from 1 to 65536'),
                ('maximum_age_seconds', 0, 'maximum_age_seconds is 0')):
            with self.subTest(name):
                self.write()
                self.refused(self.edited(0, lambda content: content.update({name: value})),
                             expected)

    def test_nan_is_no_number(self):
        lines = self.lines()
        self.refused([lines[0], lines[1].replace('100.0', 'NaN')] + lines[2:], "'NaN'.*finite")

    def test_missing_file_and_binary_file(self):
        with self.assertRaisesRegex(errors.InvalidDocument, 'absent.*cannot be read'):
            snapshot.read(self.path.with_name('absent'))
        self.path.write_bytes(b'\xff\xfe\x00')
        with self.assertRaisesRegex(errors.InvalidDocument, 'cannot be read'):
            snapshot.read(self.path)

    def test_hosts_whose_names_differ_in_case_only(self):
        hosts = [cluster.Host(name, (), synthetic.HOST_TYPE) for name in ('a', 'A')]
        content = snapshot.Snapshot(cluster.build(hosts, version=7), 300.0)
        self.refused(list(snapshot.lines(content)), 'hosts a and A differ in case only')
        # In an engine's Nova has both, and hosts are judged nevertheless.
        own = dataclasses.replace(content, epoch=1)
        self.assertEqual(('a', 'A'), snapshot.decode(snapshot.lines(own), 'x').cluster.hosts)

    def test_twice_the_same_vm(self):
        lines = [json.loads(line.replace('"far"', '"new"')) for line in self.lines()[:-1]]
        self.refused(snapshot_lines.sealed(lines), 'VM new occurs twice')

    @hypothesis.given(snapshots.built())
    @hypothesis.settings(deadline=None)
    def test_what_is_read_is_what_was_built(self, content):
        snapshots.same(self, content, snapshots.whole(content))

    @hypothesis.given(strategies.data())
    @hypothesis.settings(deadline=None, max_examples=60)
    def test_any_flipped_byte_is_noticed(self, data):
        content = self.path.read_text()
        place = data.draw(strategies.integers(0, len(content) - 2))
        other = data.draw(strategies.characters(min_codepoint=32, max_codepoint=126))
        hypothesis.assume(other != content[place])
        with self.assertRaises(errors.InvalidDocument):
            snapshot.decode((content[:place] + other + content[place + 1:]).splitlines(True), 'it')


if __name__ == '__main__':
    unittest.main()
