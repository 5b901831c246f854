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

"""The benchmark of audits: both strategies run, are counted and can be ended."""

import argparse
import json
import threading
import time
import unittest
from unittest import mock

from tests.unit import command_line
from tracon_lab.cmd import bench_audit
from tracon_lab.cmd import bench_audit_arms
from tracon_lab.cmd import bench_audit_cloud
from tracon_lab.cmd import bench_child
from tracon_watcher.cmd import app
from tracon_watcher.placement import assessment

OURS, WATCHERS = 'this strategy, all of it', "Watcher's vm_workload_consolidation"


def run(*arguments):
    """Run ``tracon bench audit`` and return its exit code, rows and error output."""
    code, out, err = command_line.run('bench', 'audit', '-f', 'json', *arguments,
                                      **{'bench audit': bench_audit.Audit})
    return code, {row['what']: row for row in json.loads(out or '[]')}, err


class Clock:
    """Stands for ``time``: only who sleeps or asks whether to wait on has it go on."""

    now = 0.0
    time = staticmethod(time.time)

    def sleep(self, seconds):
        self.now += seconds

    def perf_counter(self):
        return self.now

    def monotonic(self):
        self.now += 1.0
        return self.now


class Endless(Clock):
    """Sleeps until the process is ended."""

    def sleep(self, seconds):
        threading.Event().wait()


class CommandTestCase(unittest.TestCase):

    def test_both_are_timed_and_their_requests_counted(self):
        code, rows, err = run('--hosts', '12', '--vms', '1100', '--rounds', '1')
        self.assertEqual(0, code, err)
        ours, watchers = rows[OURS], rows[WATCHERS]
        # Two pages of servers and ports, the server groups and the page that ends them, one
        # request each for migrations, services, hypervisors and room, and for the shares of each
        # to be moved.
        self.assertEqual(2 + 2 + 2 + 1 + 1 + 1 + 1 + 5, ours['requests'])
        self.assertGreaterEqual(watchers['requests'], 3 * 1100)
        self.assertEqual(5, ours['migrations'])
        parts = [row['seconds'] for what, row in rows.items() if what.startswith('of this')]
        self.assertEqual(5, len(parts))
        self.assertLessEqual(sum(parts), ours['seconds'])
        self.assertGreater(ours['MiB'], 0)
        self.assertIn('100%', err)

    def test_what_takes_too_long_is_ended_and_said_to_be_so(self):
        clock = Clock()
        with mock.patch.object(bench_child, 'time', clock), \
                mock.patch.object(bench_audit_cloud, 'time', clock), \
                mock.patch.object(bench_audit_arms, 'time', Endless()):
            code, rows, err = run('--hosts', '4', '--vms', '200', '--rounds', '1',
                                  '--request-ms', '50', '--reference-limit', '0.5')
        self.assertEqual(0, code, err)
        self.assertEqual('>= 0.5', rows[WATCHERS]['seconds'])
        self.assertAlmostEqual(0.05 * rows[OURS]['requests'], rows[OURS]['seconds'])

    def test_watchers_own_can_be_left_out(self):
        code, rows, err = run('--hosts', '4', '--vms', '60', '--rounds', '1',
                              '--reference-limit', '0')
        self.assertEqual(0, code, err)
        self.assertNotIn(WATCHERS, rows)

    def test_bad_options(self):
        for option, value in (('--hosts', '1'), ('--rounds', '0'), ('--reference-limit', 'nan'),
                              ('--request-ms', '-1')):
            code, _rows, err = run(option, value)
            self.assertEqual(2, code)
            self.assertIn(f"argument {option}: '{value}'", err)


class CloudTestCase(unittest.TestCase):

    def test_groups_hold_and_some_vms_suffer(self):
        cloud = bench_audit_cloud.build(20, 1200)
        where = {vm.uuid: vm.host for vm in cloud.vms}
        self.assertTrue(cloud.groups)
        for _name, policy, members in cloud.groups:
            hosts = {where[uuid] for uuid in members}
            self.assertEqual(len(members) if 'anti' in policy else 1, len(hosts))
        self.assertTrue(assessment.Assessor(cloud.state).breaches().any())
        self.assertEqual(1200, len(cloud.state.uuids))

    def test_every_host_has_the_room_it_needs(self):
        cloud = bench_audit_cloud.build(9, 500)
        model = bench_audit_arms.watcher_model(cloud)
        for node in model.get_all_compute_nodes().values():
            for kind, left in model.get_node_free_resources(node).items():
                self.assertGreaterEqual(left, 0, kind)


class ChildTestCase(unittest.TestCase):

    def test_an_error_is_told(self):
        def fail(_report):
            raise ValueError('no such thing')

        with self.assertRaisesRegex(bench_child.BenchmarkFailed, 'ValueError: no such thing'):
            bench_child.run(fail, lambda share: None)

    def test_memory_is_what_the_work_needs_at_most(self):
        ballast = bytearray(64 << 20)

        def need(report):
            report(0.5)
            found = len(bytearray(48 << 20)) + len(ballast)
            return {'found': found}

        shares = []
        done = bench_child.run(need, shares.append)
        self.assertEqual([0.5, 1.0], shares)
        self.assertGreater(done['mebibytes'], 40)
        self.assertLess(done['mebibytes'], 64)


class OptionsTestCase(unittest.TestCase):

    def test_the_default_is_the_cloud_of_the_bug_report(self):
        parser = bench_audit.Audit(app.TraconApp(), argparse.Namespace()).get_parser('')
        given = parser.parse_args([])
        self.assertEqual((113, 15769), (given.hosts, given.vms))
