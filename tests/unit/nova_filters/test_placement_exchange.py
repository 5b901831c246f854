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

"""Placements that workers tell each other, with processes of their own."""

import json
import os
import pathlib
import subprocess
import sys
import time

import fixtures
import testtools

from nova_filters import assumed_placements
from nova_filters import log_once
from tests.unit.nova_filters import base
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles

EXPIRY = 600.0


class Worker:
    """One process."""

    def __init__(self, directory):
        self._process = subprocess.Popen(
            [sys.executable, '-m', 'tests.unit.nova_filters.exchange_process', directory,
             str(EXPIRY)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def publish(self, *uuids):
        self._ask('publish', *uuids)

    def collect(self):
        return self._ask('collect')

    def complaints(self):
        return int(self._ask('lines')[0])

    def close(self):
        self._process.communicate()

    def _ask(self, *words):
        self._process.stdin.write(' '.join(words) + '\n')
        self._process.stdin.flush()
        return self._process.stdout.readline().split()


class ProcessesTest(testtools.TestCase):
    """Three workers; the first tells."""

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.workers = [Worker(str(self.directory)) for _each in range(3)]
        for worker in self.workers:
            self.addCleanup(worker.close)
        self.teller, *self.others = self.workers
        self.teller.publish('one', 'two', 'three')
        for worker in self.others:
            self.assertEqual(['one', 'two', 'three'], worker.collect())

    def only_file(self):
        found, = self.directory.iterdir()
        return found

    def idle(self, seconds):
        """Pretend that the last write was so long ago."""
        then = time.time() - seconds
        os.utime(self.only_file(), (then, then))

    def assert_all_hear(self, *rounds):
        for uuids in rounds:
            self.teller.publish(*uuids)
            for worker in self.others:
                self.assertEqual(list(uuids), worker.collect())
        self.assertEqual([], self.teller.collect())
        self.assertEqual([0, 0, 0], [worker.complaints() for worker in self.workers])

    def test_another_removes_an_idle_file(self):
        self.idle(2 * EXPIRY + 1)
        # One of them removes it; the other does not see that.
        self.assertEqual([], self.others[0].collect())
        self.assertEqual([], list(self.directory.iterdir()))
        self.assert_all_hear(['four'], ['five', 'six', 'seven', 'eight'], ['nine'])

    def test_all_look_at_an_idle_file(self):
        self.idle(2 * EXPIRY + 1)
        for worker in self.workers:
            self.assertEqual([], worker.collect())
        self.assert_all_hear(['four'], ['five', 'six', 'seven', 'eight'])

    def test_an_idle_file_is_left_before_others_remove_it(self):
        idle = self.only_file()
        self.idle(EXPIRY + 1)
        self.teller.publish('four')
        self.assertEqual(2, len(list(self.directory.iterdir())))
        self.assertLess(idle.stat().st_mtime, time.time() - EXPIRY)
        for worker in self.others:
            self.assertEqual(['four'], worker.collect())

    def test_a_file_is_cut(self):
        os.truncate(self.only_file(), 0)
        self.assert_all_hear(['four'], ['five', 'six', 'seven', 'eight'], ['nine'])

    def test_a_file_is_cut_and_longer_again_before_anybody_looks(self):
        os.truncate(self.only_file(), 0)
        many = [f'vm-{number}-which-has-a-longer-name' for number in range(8)]
        self.teller.publish(*many)
        for worker in self.others:
            self.assertEqual(many, worker.collect())
            self.assertEqual(0, worker.complaints())

    def test_another_file_takes_the_name(self):
        path = self.only_file()
        text = path.read_bytes().replace(b'one', b'six').replace(b'three', b'seven')
        path.unlink()
        path.write_bytes(text * 2)
        for worker in self.others:
            self.assertEqual(['six', 'two', 'seven'] * 2, worker.collect())
            self.assertEqual(0, worker.complaints())

    def test_half_a_line_waits_for_its_end(self):
        path = self.only_file()
        line = path.read_bytes().splitlines(keepends=True)[0].replace(b'one', b'six')
        with open(path, 'ab', buffering=0) as stream:
            stream.write(line[:40])
            self.assertEqual([], self.others[0].collect())
            stream.write(line[40:])
        for worker in self.others:
            self.assertEqual(['six'], worker.collect())
            self.assertEqual(0, worker.complaints())

    def test_all_tell_at_the_same_time(self):
        told = {worker: [f'{place}-{number}' for number in range(200)]
                for place, worker in enumerate(self.workers)}
        for start in range(0, 200, 10):
            for worker, uuids in told.items():
                worker.publish(*uuids[start:start + 10])
        for worker in self.others:
            self.assertEqual(sorted(sum((uuids for other, uuids in told.items()
                                         if other is not worker), [])),
                             sorted(worker.collect()))


class ExchangeTest(testtools.TestCase):
    """One worker's part, where its disk or its directory is not as it should be."""

    def setUp(self):
        super().setUp()
        self.directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.log = self.useFixture(fixtures.FakeLogger('nova_filters'))

    def exchange(self):
        return assumed_placements.PlacementExchange(str(self.directory), EXPIRY,
                                                    log_once.FaultLog(base.LOG))

    @staticmethod
    def placement(uuid, at=None):
        return assumed_placements.Placement(uuid, 'host', 'node', newcomer_profiles.own(base.BUSY),
                                            limits.NONE,
                                            time.time() if at is None else at)

    @staticmethod
    def heard(one):
        return [placement.uuid for placement in one.collect()[0]]

    def test_a_full_disk_leaves_no_half_line(self):
        teller, other = self.exchange(), self.exchange()
        real, written = os.write, []

        def write(handle, text):
            if written:
                self.fail_to_write()
            written.append(text)
            return real(handle, text[:30])

        with fixtures.MonkeyPatch('nova_filters.assumed_placements.os.write', write):
            teller.publish([self.placement('lost')], [])
        self.assertEqual([], self.heard(other))
        teller.publish([self.placement('next')], [])
        self.assertEqual(['next'], self.heard(other))
        self.assertEqual(1, self.log.output.count('No space left'))
        self.assertNotIn('not a placement', self.log.output)

    def fail_to_write(self):
        raise OSError(28, 'No space left on device')

    def test_a_lasting_fault_in_writing_is_said_once_though_reading_works(self):
        teller = self.exchange()
        for number in range(5):
            with fixtures.MonkeyPatch('nova_filters.assumed_placements.os.write',
                                      lambda *_given: self.fail_to_write()):
                teller.publish([self.placement(str(number))], [])
            teller.collect()
        self.assertEqual(1, self.log.output.count('No space left'))

    def test_one_file_that_cannot_be_read_does_not_hide_the_others(self):
        teller, other = self.exchange(), self.exchange()
        teller.publish([self.placement('vm')], [])
        (self.directory / 'a.placements').mkdir()
        os.mkfifo(self.directory / 'b.placements')
        (self.directory / 'c.placements').symlink_to('/dev/zero')
        (self.directory / 'd.placements').write_bytes(b'x\n')
        real = open

        def refused(path, *rest):
            if pathlib.Path(path).name == 'd.placements':
                raise PermissionError(13, 'Permission denied')
            return real(path, *rest)

        with fixtures.MonkeyPatch('nova_filters.assumed_placements.open', refused):
            self.assertEqual(['vm'], self.heard(other))
        self.assertEqual(1, self.log.output.count('Permission denied'))

    def test_nothing_is_kept_of_files_that_are_gone(self):
        teller, other = self.exchange(), self.exchange()
        for number in range(5):
            teller.publish([self.placement(str(number))], [])
            self.assertEqual([str(number)], self.heard(other))
            for path in self.directory.iterdir():
                path.unlink()
        self.assertEqual([], self.heard(other))
        teller.collect()
        self.assertEqual(({}, set()), (other._readings, teller._former))

    def test_lines_that_are_no_placements_are_said_once_a_file(self):
        path = self.directory / 'x.placements'
        path.write_bytes(b''.join(b'line %d\n' % number for number in range(100))
                         + b'[]\n7\n"cancelled"\n{"cancelled": 1}\n')
        one = self.exchange()
        self.assertEqual(([], ['1']), one.collect())
        self.assertEqual(1, self.log.output.count('not a placement'))

    def test_a_line_with_a_number_that_json_does_not_have_is_no_placement(self):
        record = self.placement('vm').to_record()
        (self.directory / 'x.placements').write_text(''.join(
            json.dumps({**record, name: value}) + '\n' for name, value in (
                ('min_iops_ratio', float('nan')), ('max_slowdown', float('inf')),
                ('own_wait', float('nan')), ('cpu_weight', float('-inf')))))
        self.assertEqual([], self.heard(self.exchange()))
        self.assertIn('NaN is no number', self.log.output)

    def test_a_line_that_never_ends_is_passed_over(self):
        path = self.directory / 'x.placements'
        with fixtures.MonkeyPatch('nova_filters.assumed_placements._AT_ONCE', 1000):
            path.write_bytes(b'x' * 2500)
            one = self.exchange()
            for _again in range(5):
                self.assertEqual([], self.heard(one))
            self.assertEqual(2000, one._readings['x.placements'].offset)

    def test_what_is_of_another_time_is_passed_over(self):
        now = time.time()
        teller, other = self.exchange(), self.exchange()
        teller.publish([self.placement('past', now - 2 * EXPIRY), self.placement('now'),
                        self.placement('future', now + 2 * EXPIRY),
                        self.placement('never', float('nan'))], [])
        self.assertEqual(['now'], self.heard(other))
