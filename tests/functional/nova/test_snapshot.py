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

"""A snapshot that is missing, broken or old: stock behaviour, and one log line."""

import pathlib

from tests.functional.nova import base


class SnapshotTest(base.InterferenceTestCase):
    options = {'maximum_age_seconds': 60.0}

    def warnings(self):
        return [line for line in self.log.output.splitlines() if self.snapshot_file in line
                and 'read from' not in line]

    def refusing(self, **options):
        """Return hosts on which nothing would be placed."""
        return [base.host(name, base.resident(f'vm-{name}', max_slowdown=1.5), **options)
                for name in self.hosts]

    def test_missing(self):
        for _again in range(3):
            self.boot()
        line, = self.warnings()
        self.assertIn('cannot be read', line)
        self.assertIn('hosts are chosen without it', line)

    def test_truncated(self):
        self.write_snapshot(*self.refusing())
        path = pathlib.Path(self.snapshot_file)
        path.write_bytes(path.read_bytes()[:-200])
        for _again in range(3):
            self.boot()
        self.assertEqual(1, len(self.warnings()), self.warnings())
        self.assertEqual([], self.records())

    def test_edited_by_hand(self):
        self.write_snapshot(*self.refusing())
        path = pathlib.Path(self.snapshot_file)
        path.write_text(path.read_text().replace('"max_slowdown":1.5', '"max_slowdown":-1.5', 1))
        self.boot()
        line, = self.warnings()
        self.assertIn('line 2', line)
        self.assertIn('max_slowdown', line)
        self.assertIn('-1.5', line)

    def test_stale(self):
        self.write_snapshot(*self.refusing(age=3600.0))
        for _again in range(3):
            self.boot()
        line, = self.warnings()
        self.assertIn('is stale', line)
        self.assertEqual([], self.records())

    def test_the_last_good_one_is_kept_when_the_next_is_broken(self):
        self.write_snapshot(base.host('host1', base.resident('vm-a', max_slowdown=1.5)),
                            base.host('host2', base.resident('vm-b', max_slowdown=1.5)),
                            base.host('host3'))
        self.assertEqual('host3', self.host_of(self.boot(flavor_id=self.flavor_id)))
        pathlib.Path(self.snapshot_file).write_text('{"schema": "tracon-snapshot/2"\n')
        self.wait_for(self.warnings)
        self.assertIn('stays in use', self.warnings()[0])
        self.boot()
        self.assertEqual(2, len(self.records()))

    def test_a_new_one_is_taken_up(self):
        self.write_snapshot(*(base.host(name) for name in self.hosts))
        self.boot()
        self.write_snapshot(base.host('host1', base.resident('vm-a', max_slowdown=1.5)),
                            base.host('host2'),
                            base.host('host3', base.resident('vm-b', max_slowdown=1.5)))
        self.assertEqual('host2', self.host_of(self.boot()))
        self.assertEqual(2, self.records()[-1]['snapshot'])


class UnexpectedTest(base.InterferenceTestCase):

    def test_an_error_of_ours_fails_no_request(self):
        self.write_snapshot(*(base.host(name) for name in self.hosts))
        self.boot()
        judge, = self.judges()
        # A state that cannot be: what was not foreseen looks much like this.
        judge.snapshots.current = object()
        for _again in range(3):
            self.boot()
        lines = [line for line in self.log.output.splitlines() if 'left out of account' in line]
        self.assertEqual(1, len(lines), lines)
        self.assertIn('AttributeError', lines[0])
