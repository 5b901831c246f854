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
"""Real guests: a plan of three points, sane rows, nothing left behind."""

import collections
import fcntl
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

from tests.functional.telemetry import guests
from tracon_lab.models import dataset
from tracon_lab.testbed import plan
from tracon_watcher.probe import images

PROGRAMS = (*guests.PROGRAMS, 'mkfs.ext4', 'nbdkit', 'apt-get', 'dpkg-deb')
PLAN = plan.Plan('small', 1, (
    plan.Window('background', 'calc', 'gen-c060-r0-w0', back='reverse'),
    plan.Window('pair', 'calc', 'seqread', back='pair'),
    plan.Window('pair', 'database', 'openread', back='pair'),
))
APPLICATIONS = plan.Plan('small', 1, (
    plan.Window('pair', 'email', 'dedup', back='pair'),
    plan.Window('co-residents', 'web', 'email+gen-c050-r0-w0', back='co-residents'),
), applications=True)


def reason_to_skip():
    """Why guests cannot be run here; empty when they can."""
    reason = guests.reason_to_skip(PROGRAMS)
    if reason:
        return reason
    if len(os.sched_getaffinity(0)) < 2:
        return 'needs two cores'
    try:
        with open(images.default_cache() / 'lock', 'w') as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return ''
    except OSError:
        return 'another measurement is running'
    return ''


def left_behind():
    """Processes, sockets and directories of the testbed that exist now."""
    found = []
    for entry in pathlib.Path('/proc').glob('[0-9]*'):
        try:
            command = (entry / 'cmdline').read_bytes().replace(b'\0', b' ').decode()
            name = (entry / 'comm').read_text().strip()
            # those of a test cloud have a namespace of their own
            ours = os.readlink(entry / 'ns/mnt') == os.readlink('/proc/self/ns/mnt')
        except OSError:
            continue
        if not ours:
            continue
        if 'guest=tracon-' in command or name in ('nbdkit', 'libvirtd', 'virtlogd') \
                or name.startswith('canary-'):
            found.append(command)
    found += [str(path) for path in images.default_cache().glob('run-*')]
    found += [str(path) for path in pathlib.Path('/run/libvirt').glob('*-sock')]
    return sorted(found)


class GuestsCase(unittest.TestCase):
    """Has a file for measurements, and what there was of the testbed before."""

    def setUp(self):
        super().setUp()
        reason = reason_to_skip()
        if reason:
            self.skipTest(reason)
        self.output = pathlib.Path(
            self.enterContext(tempfile.TemporaryDirectory()), 'measured.csv')
        # No measurement runs, as the lock says: these are of one that was killed.
        for stale in images.default_cache().glob('run-*'):
            shutil.rmtree(stale)
        self.before = left_behind()


class TestRealGuests(GuestsCase):

    def measure(self, host_type, windows=PLAN, report=lambda line: None):
        from tracon_lab.testbed import acceptance
        from tracon_lab.testbed import measure
        # A test machine is not quiet: what is tested is the way, not the numbers.
        careless = acceptance.Limits(foreign=2.0, foreign_other=64.0, steal=1.0, canary=10.0,
                                     bracket=10.0, attempts=12)
        affinity = os.sched_getaffinity(0)
        settings = measure.Settings(
            host_type=host_type, output=self.output, plan='small', seed=1,
            core=max(affinity), window_seconds=2.0, limits=careless)
        finished = measure.measure(settings, report, windows)
        journal = self.output.with_suffix('.journal')
        self.assertTrue(finished, journal.read_text() if journal.exists() else 'no journal')
        self.assertEqual(affinity, os.sched_getaffinity(0))
        self.assertEqual(self.before, left_behind())
        return dataset.read(self.output)

    def check(self, found):
        kinds = list(found.text['kind'])
        self.assertEqual(5, kinds.count('solo'))
        self.assertEqual(1, kinds.count('background'))
        self.assertEqual(1, kinds.count('reverse'))
        self.assertEqual(4, kinds.count('pair'))
        number = found.numbers
        self.assertTrue((number['units'] >= 3).all())
        # However fast the machine is at the moment, ratios are those of what was measured.
        np.testing.assert_allclose(
            number['slowdown'], number['time_per_unit'] / number['solo_time_per_unit'], rtol=1e-4)
        does_io = np.isfinite(number['iops_ratio'])
        self.assertTrue(does_io.any())
        np.testing.assert_allclose(
            number['iops_ratio'][does_io],
            number['iops'][does_io] / number['solo_iops'][does_io], rtol=1e-4)
        self.assertTrue((number['target_observed_guest_cpu'] > 0.01).all())
        self.assertTrue((number['target_observed_guest_cpu'] < 1.1).all())
        self.assertTrue((number['target_observed_host_cpu'] >= 0).all())

    def test_same_core_raw_disk(self):
        found = self.measure('same-core-raw-disk')
        self.check(found)
        self.assertEqual('no', found.header['emulated'])
        self.assertIn(found.header['accelerator'], ('kvm', 'tcg'))
        # Whatever else the machine does, two guests on one core have no more than that core.
        index = list(found.text['point']).index('pair/calc/seqread')
        used = sum(found.numbers[f'{side}_observed_{kind}_cpu'][index]
                   for side in ('target', 'background') for kind in ('guest', 'host'))
        self.assertLess(used, 1.15)
        self.assertGreater(found.numbers['target_vcpu_delay'][index], 0.02)
        reads = list(found.text['point']).index('solo/seqread')
        self.assertGreater(
            found.numbers['target_alone_read_requests_per_second'][reads], 100)

    def test_shared_slow_device(self):
        found = self.measure('shared-slow-device')
        self.check(found)
        self.assertTrue(found.header['emulated'].startswith('yes: '))
        index = list(found.text['point']).index('pair/database/openread')
        # ten sequential reads a seek: the database cannot reach a raw disk's latency
        self.assertGreater(found.numbers['target_read_latency'][index], 0.003)

    def test_separate_cores_give_the_targets_rows_and_watchers_come_first(self):
        seen = set()

        def report(_line):
            seen.add(('watcher', os.sched_getscheduler(0)))
            for entry in pathlib.Path('/proc').glob('[0-9]*'):
                try:
                    if (entry / 'comm').read_text().startswith('qemu-system'):
                        seen.add(('guest', os.sched_getscheduler(int(entry.name))))
                except OSError:
                    continue
        found = self.measure('separate-cores-raw-disk', PLAN.one_sided(), report)
        self.assertEqual({('watcher', os.SCHED_RR | os.SCHED_RESET_ON_FORK),
                          ('guest', os.SCHED_OTHER)}, seen)
        self.assertEqual(os.SCHED_OTHER, os.sched_getscheduler(0))
        kinds = collections.Counter(found.text['kind'].tolist())
        self.assertEqual({'background': 1, 'pair': 4},
                         {name: kinds[name] for name in kinds if name != 'solo'})
        # Beside a program that computes all the time the target still has nearly a core.
        calc = list(found.text['point']).index('pair/seqread/calc')
        self.assertLess(found.numbers['target_vcpu_delay'][calc], 0.5)

    def test_applications_two_and_three_beside_each_other(self):
        found = self.measure('same-core-remote-volume', APPLICATIONS)
        self.assertIn('postmark', found.header['applications'])
        kinds = collections.Counter(found.text['kind'].tolist())
        self.assertEqual({'solo': 4, 'pair': 2, 'co-residents': 3}, dict(kinds))
        number = found.numbers
        self.assertTrue((number['units'] >= 2).all())
        # whole runs, each begun with its input on the disk
        dedup = (found.text['target'] == 'dedup') & (found.text['kind'] == 'solo')
        self.assertGreater(number['target_observed_read_requests_per_second'][dedup][0], 10)
        # the device answers no sooner than after its delay
        self.assertGreater(number['target_read_latency'][dedup][0], 0.002)
        crowd = list(found.text['point']).index('co-residents/web/email+gen-c050-r0-w0')
        self.assertGreater(number['background_alone_guest_cpu'][crowd], 0.3)

    def test_terminated_in_the_middle_it_leaves_nothing(self):
        command = [sys.executable, '-X', 'faulthandler', '-c',
                   'import sys; from tracon_lab.cmd import lab; c = lab.Measure(None, None); '
                   'c.take_action(c.get_parser("x").parse_args(sys.argv[1:]))',
                   '--host-type', 'same-core-raw-disk', '--plan', 'small', '--accelerator',
                   'qemu', '--output', str(self.output)]
        child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.addCleanup(child.stderr.close)
        self.addCleanup(child.kill)
        line = child.stderr.readline()
        self.assertIn('guests are up', line)
        time.sleep(1)
        self.assertNotEqual(self.before, left_behind())
        child.send_signal(signal.SIGTERM)
        try:
            _output, rest = child.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGABRT)       # says where it is
            self.fail('still there after 60 s: ' + child.communicate(timeout=10)[1])
        self.assertEqual(self.before, left_behind(), rest)
        self.assertIn('KeyboardInterrupt', rest)
