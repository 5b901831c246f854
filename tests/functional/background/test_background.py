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

"""Limits in the kernel of this machine: control groups of the version it has, and tc.

Needs root. What libvirt says is recorded; groups and the process in them are real.
"""

import os
import pathlib
import shlex
import subprocess
import sys
import time
import unittest

from tests.unit.telemetry import replay
from tracon_watcher.background import cgroups
from tracon_watcher.background import controllers
from tracon_watcher.background import daemon
from tracon_watcher.background import regulator
from tracon_watcher.telemetry import host_counters

NAME = f'tracon-test-{os.getpid()}'
BUSY = 'while True: pass'


@unittest.skipUnless(os.geteuid() == 0, 'needs root, for control groups')
class TestGroups(unittest.TestCase):

    def setUp(self):
        self.tree = cgroups.ControlGroups([NAME])
        self.folders = sorted({self.tree.folder(NAME, one) for one in (
            'freezer', 'cpu', 'cpuset', 'memory')})
        if self.tree.version == 2:
            control = cgroups.ROOT / 'cgroup.subtree_control'
            if not {'cpu', 'cpuset', 'memory'} <= set(control.read_text().split()):
                self.skipTest(f'{control} lacks cpu, cpuset or memory')
        for folder in self.folders:
            folder.mkdir()
            self.addCleanup(self.remove, folder)
        if self.tree.version == 1:
            for name in ('cpuset.mems', 'cpuset.cpus'):
                folder = self.tree.folder(NAME, 'cpuset')
                (folder / name).write_text((folder.parent / name).read_text())
        self.process = subprocess.Popen([sys.executable, '-c', BUSY])
        self.addCleanup(self.process.wait)
        self.addCleanup(self.process.kill)
        # A frozen process would not die.
        self.addCleanup(self.tree.apply, NAME, regulator.GroupLimits(False, 1.0))
        for folder in self.folders:
            (folder / 'cgroup.procs').write_text(str(self.process.pid))

    def remove(self, folder):
        for _try in range(100):
            try:
                return folder.rmdir()
            except OSError:
                time.sleep(0.05)
        return folder.rmdir()

    def used(self, seconds=1.0):
        """Return the cores that the process uses."""
        stat = pathlib.Path(f'/proc/{self.process.pid}/stat')
        before = sum(map(int, stat.read_text().rsplit(')', 1)[1].split()[11:13]))
        time.sleep(seconds)
        after = sum(map(int, stat.read_text().rsplit(')', 1)[1].split()[11:13]))
        return (after - before) / os.sysconf('SC_CLK_TCK') / seconds

    def test_paused_by_a_quota_on_one_core_and_killed(self):
        self.assertEqual([], self.tree.missing())
        self.assertEqual([], self.tree.apply(NAME, regulator.GroupLimits(True, 0.01)))
        time.sleep(0.2)
        self.assertLess(self.used(), 0.02)
        # Idle, it would run on an idle machine alone.
        limits = regulator.GroupLimits(False, 0.2, frozenset({0}), 2**28, idle=False)
        self.assertEqual([], self.tree.apply(NAME, limits))
        self.assertEqual({0}, os.sched_getaffinity(self.process.pid))
        used = self.used(2.0)
        self.assertTrue(0.02 < used < 0.3, used)
        # Each limit reads as it was written, so nothing is written twice.
        for path, text in self.tree._files(NAME, limits):
            self.assertIn(text, path.read_text().splitlines(), path)
        # How much it is depends on the pages that it had before it came to the group.
        self.assertEqual({NAME}, set(self.tree.uses()))
        self.assertEqual([], self.tree.apply(NAME, regulator.GroupLimits(True, 0.01)))
        self.assertEqual([], self.tree.kill(NAME))
        self.assertEqual(-9, self.process.wait(30))

    def test_a_quota_that_cannot_be_had_pauses(self):
        wrong = self.tree.apply(NAME, regulator.GroupLimits(False, 0.2, frozenset({4095})))
        self.assertIn('cpuset.cpus', wrong[0])
        time.sleep(0.2)
        self.assertLess(self.used(), 0.02)

    def test_the_daemon_pauses_learns_runs_and_pauses_without_libvirt(self):
        stats = replay.stats(replay.read()['polls'][0]['domains'][0][0])
        connection = replay.Connection([('vm', stats)])
        throttled = host_counters.ThrottledTimes()
        short = [controllers.Setting(factor, 3) for factor in (2.0, 2.0, 1.0)]
        one = daemon.Daemon(
            daemon.Observer(daemon.source('', (), throttled, lambda _uri: connection),
                            self.tree, ()),
            regulator.Regulator(regulator.Settings(*short, memory_floor=2**30)), self.tree,
            None, throttled)
        one.step()
        time.sleep(0.2)
        self.assertLess(self.used(0.5), 0.04)
        for _step in range(8):
            one.step()
        self.assertEqual(set(), one.wrong)
        limits = one.decision.groups[NAME]
        self.assertFalse(limits.paused)
        for path, text in self.tree._files(NAME, limits):
            self.assertIn(text, path.read_text().splitlines(), path)
        connection.answers = [replay.failure('gone')]
        one.step()
        time.sleep(0.2)
        self.assertLess(self.used(0.5), 0.04)


@unittest.skipUnless(os.geteuid() == 0, 'needs root, for control groups')
@unittest.skipUnless((cgroups.ROOT / 'unified/cgroup.procs').exists(),
                     'no hierarchy of version 2 beside version 1')
class TestUnified(unittest.TestCase):
    """Version 2 beside version 1: it has no cpu, but pauses and kills."""

    def test_without_a_controller_it_is_paused_and_can_be_killed(self):
        tree = cgroups.ControlGroups([NAME], root=cgroups.ROOT / 'unified')
        folder = tree.folder(NAME, '')
        folder.mkdir()
        process = subprocess.Popen([sys.executable, '-c', BUSY])
        try:
            (folder / 'cgroup.procs').write_text(str(process.pid))
            wrong = tree.apply(NAME, regulator.GroupLimits(False, 1.0))
            self.assertIn('cpu.max', wrong[0])
            deadline = time.monotonic() + 30.0
            while 'frozen 1' not in (folder / 'cgroup.events').read_text():
                self.assertLess(time.monotonic(), deadline, 'it is not frozen')
                time.sleep(0.05)
            self.assertIn(str(folder / 'cpu.max'), tree.missing())
            self.assertEqual([], tree.kill(NAME))
            self.assertEqual(-9, process.wait(30))
        finally:
            process.kill()
            process.wait()
            folder.rmdir()


@unittest.skipUnless(os.geteuid() == 0, 'needs root, for tc')
class TestTraffic(unittest.TestCase):

    def test_a_rate_on_an_interface(self):
        shown = []

        def run(command, **more):
            """Run tc, then show what it has done, on a loopback interface of its own."""
            script = f'{shlex.join(command)} && tc qdisc show dev lo'
            done = subprocess.run(['unshare', '--net', 'sh', '-c', script], **more)
            shown.append(done.stdout)
            return done

        one = cgroups.Shaper('lo', run=run)
        for rate in (1e6, 1e6, 2e6):
            self.assertEqual([], one.apply(rate))
        self.assertEqual(2, len(shown))
        self.assertIn('tbf', shown[0])
        self.assertIn('rate 8Mbit', shown[0])
        self.assertIn('rate 16Mbit', shown[1])
