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

"""Control groups as files of a temporary folder, whole and broken, and the daemon on them."""

import contextlib
import dataclasses
import io
import json
import logging
import pathlib
import tempfile
import types
import unittest
from unittest import mock

from hypothesis import given
from hypothesis import strategies
from oslo_config import cfg

from tests.unit.telemetry import replay
from tracon_lab.cmd import bench_background
from tracon_watcher.background import cgroups
from tracon_watcher.background import controllers
from tracon_watcher.background import daemon
from tracon_watcher.background import regulator
from tracon_watcher.cmd import app
from tracon_watcher.cmd import background_service
from tracon_watcher import errors
from tracon_watcher.telemetry import host_counters

GROUPS = ('work.slice', 'batch/b')
FILES = {2: {'': ('cgroup.freeze', 'cgroup.kill', 'cpu.max', 'cpu.idle', 'cpu.weight',
                  'cpuset.cpus', 'memory.max', 'io.max', 'memory.stat', 'cgroup.procs')},
         1: {'freezer': ('freezer.state', 'cgroup.procs'), 'cpuset': ('cpuset.cpus',),
             'cpu': ('cpu.cfs_quota_us', 'cpu.cfs_period_us', 'cpu.idle', 'cpu.shares'),
             'memory': ('memory.limit_in_bytes', 'memory.stat'),
             'blkio': tuple(f'blkio.throttle.{way}_{unit}_device' for way in ('read', 'write')
                            for unit in ('bps', 'iops'))}}
STAT = {2: 'anon 1048576\nfile 9\nshmem 0\n', 1: 'rss 1\ntotal_rss 1048576\ntotal_shmem 0\n'}
LOOSE = regulator.GroupLimits(False, 1.5, frozenset({0, 1, 3}), 2**30 + 7,
                              {regulator.BYTES: 1e6, regulator.REQUESTS: 50.0})
SAFE = regulator.GroupLimits(True, 0.01, rates={regulator.BYTES: 1e3, regulator.REQUESTS: 1.0})


class Host:
    """The files of a host with control groups of a version, and VMs that libvirt reports."""

    def __init__(self, case, version, groups=GROUPS):
        self.root = pathlib.Path(case.enterContext(tempfile.TemporaryDirectory()))
        self.cgroups = self.root / 'sys/fs/cgroup'
        self.version = version
        self.write('proc/meminfo', 'MemTotal: 16777216 kB\nMemAvailable: 12582912 kB\n')
        self.write('proc/self/cgroup', '0::/system.slice/tracon-background.service\n')
        self.write('sys/devices/system/cpu/online', '0-3\n')
        if version == 2:
            self.write('sys/fs/cgroup/cgroup.controllers', 'cpu\n')
        for controller in FILES[version]:
            self.cgroups.joinpath(controller).mkdir(parents=True, exist_ok=True)
        for name in groups:
            self.add(name)

    def write(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def add(self, name):
        for controller, files in FILES[self.version].items():
            for file in files:
                self.write(f'sys/fs/cgroup/{controller}/{name}/{file}',
                           STAT[self.version] if file == 'memory.stat' else '')

    def tree(self, names=GROUPS, device='8:0', own=''):
        return cgroups.ControlGroups(list(names), device, self.cgroups, own)

    def line(self, name, file):
        return next(self.cgroups.joinpath(controller, name, file).read_text()
                    for controller, files in FILES[self.version].items() if file in files)

    def paused(self, name):
        file = 'cgroup.freeze' if self.version == 2 else 'freezer.state'
        return {'1': True, 'FROZEN': True, '0': False, 'THAWED': False}.get(self.line(name, file))

    def daemon(self, *answers, clock=None, **more):
        """Return a daemon with short windows, and the connection that it asks."""
        connection = replay.Connection(*answers)
        short = [controllers.Setting(factor, 3) for factor in (2.0, 2.0, 1.0)]
        tree, throttled = self.tree(), host_counters.ThrottledTimes(self.root)
        rates = {regulator.BYTES: 1e9}
        found = daemon.Daemon(
            daemon.Observer(daemon.source('', rates, throttled, lambda _uri: connection), tree,
                            rates, self.root),
            regulator.Regulator(regulator.Settings(*short, capacities=rates)), tree, None,
            throttled, monotonic=clock or (lambda: 0.0), **more)
        return found, connection


def vms(count=2):
    """Return what libvirt says of VMs that do nothing, of which one is pinned to core 0."""
    stats = replay.stats(replay.read()['polls'][0]['domains'][0][0])
    return [(f'vm-{number}', stats) for number in range(count)]


class TestTree(unittest.TestCase):

    def test_limits_as_files(self):
        host = Host(self, 2)
        self.assertEqual([], host.tree().apply('work.slice', LOOSE))
        self.assertEqual(
            ['0', '150000 100000', '0-1,3', str(2**30), '8:0 rbps=1000000 wbps=1000000 riops=50 '
             'wiops=50'],
            [host.line('work.slice', file) for file in (
                'cgroup.freeze', 'cpu.max', 'cpuset.cpus', 'memory.max', 'io.max')])
        host = Host(self, 1)
        self.assertEqual([], host.tree().apply('batch/b', LOOSE))
        self.assertEqual(
            ['THAWED', '150000', '100000', '0-1,3', str(2**30), '8:0 1000000', '8:0 50'],
            [host.line('batch/b', file) for file in (
                'freezer.state', 'cpu.cfs_quota_us', 'cpu.cfs_period_us', 'cpuset.cpus',
                'memory.limit_in_bytes', 'blkio.throttle.read_bps_device',
                'blkio.throttle.write_iops_device')])

    def test_the_background_gives_way_by_policy_or_where_there_is_none_by_weight(self):
        for version, above, other in ((1, 'cpu', 'cpu.shares'), (2, '', 'cpu.weight')):
            host = Host(self, version)
            self.assertEqual([], host.tree().apply('work.slice', LOOSE))
            self.assertEqual(('1', ''), (host.line('work.slice', 'cpu.idle'),
                                         host.line('work.slice', other)))
            host.cgroups.joinpath(above, 'work.slice/cpu.idle').unlink()
            self.assertEqual([], host.tree().apply('work.slice', LOOSE))
            self.assertEqual('2' if version == 1 else '1', host.line('work.slice', other))
            host.tree().apply('work.slice', dataclasses.replace(LOOSE, idle=False))
            self.assertEqual('1024' if version == 1 else '100', host.line('work.slice', other))

    def test_what_stands_there_is_not_written_again_and_what_was_loosened_is(self):
        for version in (1, 2):
            host = Host(self, version)
            tree = host.tree()
            tree.apply('work.slice', LOOSE)
            with mock.patch.object(cgroups.os, 'write', autospec=True) as written:
                tree.apply('work.slice', LOOSE)
            written.assert_not_called()
            file = 'memory.max' if version == 2 else 'memory.limit_in_bytes'
            host.cgroups.joinpath('' if version == 2 else 'memory', 'work.slice', file).write_text(
                'max\n')
            tree.apply('work.slice', LOOSE)
            self.assertEqual(str(2**30), host.line('work.slice', file))

    def test_it_is_paused_first_and_goes_on_last(self):
        for version in (1, 2):
            tree = Host(self, version).tree()
            for limits, place in ((SAFE, 0), (LOOSE, -1)):
                with mock.patch.object(tree, '_write', autospec=True, return_value=[]) as write:
                    tree.apply('work.slice', limits)
                self.assertIn('free', write.call_args_list[place].args[0][0].name)

    @given(strategies.sampled_from([1, 2]), strategies.lists(strategies.tuples(
        strategies.sampled_from(GROUPS), strategies.integers(0, 8),
        strategies.sampled_from(['absent', 'folder', 'rubbish', 'no group'])), max_size=6),
        strategies.lists(strategies.sampled_from([LOOSE, SAFE]), min_size=1, max_size=3))
    def test_in_a_broken_tree_nothing_else_is_touched_and_nothing_let_loose(
            self, version, faults, wanted):
        host = Host(self, version, (*GROUPS, 'other', 'batch'))
        files = [(controller, file) for controller, names in FILES[version].items()
                 for file in names]
        switch = 'cgroup.freeze' if version == 2 else 'freezer.state'
        for name, number, kind in faults:
            controller, file = files[number % len(files)]
            path = host.cgroups / controller / name / file
            if not path.is_file() or file == switch:
                continue
            if kind == 'rubbish':
                path.write_bytes(b'\xff\x00 4711 rubbish\n\n')
            else:
                path.unlink()
            if kind == 'folder':
                path.mkdir()
            elif kind == 'no group' and version == 1 and controller != 'freezer':
                for rest in path.parent.iterdir():
                    rest.unlink() if rest.is_file() else rest.rmdir()
                path.parent.rmdir()
        before = self.foreign(host)
        tree = host.tree()
        tree.uses()
        for limits in wanted:
            for name in GROUPS:
                wrong = tree.apply(name, limits)
                self.assertEqual(limits.paused or bool(wrong), host.paused(name), wrong)
                if not host.paused(name):
                    for path, text in tree._files(name, limits):
                        self.assertEqual(text, path.read_text())
        self.assertEqual(before, self.foreign(host))

    def foreign(self, host):
        return {path: path.read_bytes() for path in host.root.rglob('*')
                if path.is_file() and not any(f'/{name}/' in str(path) for name in GROUPS)}

    def test_memory_that_cannot_be_reclaimed(self):
        for version in (1, 2):
            host = Host(self, version)
            self.assertEqual(dict.fromkeys(GROUPS, 2**20), host.tree().uses())
            above = 'sys/fs/cgroup/memory' if version == 1 else 'sys/fs/cgroup'
            host.write(f'{above}/batch/b/memory.stat', 'x')
            self.assertEqual({'work.slice': 2**20}, host.tree().uses())
            self.assertEqual((2.0**34, 2.0**32 - 2**20),
                             cgroups.memory(host.root, host.tree().uses()))

    def test_killing(self):
        host = Host(self, 1)
        host.write('sys/fs/cgroup/freezer/batch/b/below/cgroup.procs', '17\n18\n')
        with mock.patch.object(cgroups.os, 'kill', autospec=True) as kill:
            self.assertEqual([], host.tree().kill('batch/b'))
        self.assertEqual([17, 18], [call.args[0] for call in kill.call_args_list])
        self.assertFalse(host.paused('batch/b'))
        host = Host(self, 2)
        host.tree().kill('batch/b')
        self.assertEqual('1', host.line('batch/b', 'cgroup.kill'))

    def test_groups_that_are_refused(self):
        host = Host(self, 2)
        for names in ((), ('/a',), ('a/../b',), ('a', 'a'), ('a', 'a/b'), ('machine.slice',),
                      ('system.slice',), ('machine/qemu-1-x.libvirt-qemu',)):
            with self.assertRaisesRegex(errors.InvalidOption, '^groups=', msg=names):
                host.tree(names, own='1:cpu:/\n0::/system.slice/tracon-background.service\n')
        with self.assertRaisesRegex(errors.InvalidOption, '^cgroup_root='):
            cgroups.ControlGroups(['a'], None, host.root)

    def test_cores(self):
        for text in ('0', '0-1,3', '5-7'):
            self.assertEqual(text, cgroups.spelled(cgroups.parsed(f'{text}\n')))
        for text in ('', 'a', '1-', '-1', '1,,2', '0-999999999999'):
            with self.assertRaises(ValueError, msg=text):
                cgroups.parsed(text)


class TestShaper(unittest.TestCase):

    def setUp(self):
        self.net = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.net.joinpath('work0').mkdir()
        self.net.joinpath('work0/ifindex').write_text('7\n')
        self.calls, self.code = [], 0

    def run_tc(self, command, **_more):
        self.calls.append(' '.join(command))
        return types.SimpleNamespace(returncode=self.code, stderr='no such class\n')

    def test_tc_is_called_when_the_rate_or_the_interface_changes(self):
        one = cgroups.Shaper('work0', '1:20', self.net, self.run_tc)
        for rate in (1e6, 1e6, 2e6):
            self.assertEqual([], one.apply(rate))
        self.net.joinpath('work0/ifindex').write_text('8\n')
        one.apply(2e6)
        self.assertEqual(3, len(self.calls))
        self.assertEqual('tc qdisc replace dev work0 parent 1:20 tbf rate 8000000bit burst 65536 '
                         'latency 50ms', self.calls[0])

    def test_what_went_wrong_is_told_and_tried_again(self):
        self.code = 2
        one = cgroups.Shaper('work0', 'root', self.net, self.run_tc)
        self.assertIn('no such class', one.apply(1e6)[0])
        self.code = 0
        self.assertEqual([], one.apply(1e6))
        self.assertEqual(2, len(self.calls))

    def test_interfaces_that_are_refused(self):
        self.net.joinpath('eno1/device').mkdir(parents=True)
        self.net.joinpath('tap0').mkdir()
        self.net.joinpath('tap0/tun_flags').write_text('')
        for name in ('eno1', 'tap0', 'nothing', '../work0'):
            with self.assertRaisesRegex(errors.InvalidOption, '^network_device='):
                cgroups.Shaper(name, 'root', self.net)
        cgroups.Shaper('eno1', '1:20', self.net)


class TestDaemon(unittest.TestCase):

    def steps(self, one, count):
        with self.assertLogs('tracon_watcher.background.daemon', logging.INFO) as logged:
            logging.getLogger('tracon_watcher.background.daemon').info('begin')
            for _step in range(count):
                one.step()
        return [record.getMessage() for record in logged.records[1:]]

    def test_libvirt_goes_away_and_comes_back(self):
        for version in (1, 2):
            host = Host(self, version)
            one, connection = host.daemon(vms())
            self.steps(one, 2)
            self.assertEqual([True, True], [host.paused(name) for name in GROUPS])
            self.assertEqual([], self.steps(one, 10))
            self.assertEqual([False, False], [host.paused(name) for name in GROUPS])
            connection.answers = [replay.failure('gone')]
            logged = self.steps(one, 3)
            self.assertEqual([True, True], [host.paused(name) for name in GROUPS])
            self.assertEqual(1, len(logged), logged)
            self.assertIn('gone', logged[0])
            connection.answers = [vms()]
            self.steps(one, 2)
            self.assertTrue(host.paused('batch/b'))
            self.steps(one, 2)
            self.assertFalse(host.paused('batch/b'))
            host.root.joinpath('proc/meminfo').write_text('MemTotal: 1 kB\n')
            self.steps(one, 1)
            self.assertTrue(host.paused('batch/b'))

    def test_a_look_that_comes_late_is_no_successor(self):
        now = [0.0]
        host = Host(self, 2)
        one, _connection = host.daemon(vms(), clock=lambda: now[0])
        self.steps(one, 6)
        self.assertFalse(host.paused('batch/b'))
        now[0] = 60.0
        self.assertIn('the last look was 60.0 s ago', self.steps(one, 1)[0])
        self.assertTrue(host.paused('batch/b'))

    def test_a_group_that_appears_has_the_safest_limits_at_once(self):
        host = Host(self, 2, ['work.slice'])
        one, _connection = host.daemon(vms())
        self.steps(one, 6)
        self.assertFalse(host.paused('work.slice'))
        host.add('batch/b')
        host.cgroups.joinpath('batch/b/memory.stat').unlink()
        self.steps(one, 1)
        self.assertTrue(host.paused('batch/b'))

    def test_a_group_with_a_vm_in_it_is_left_alone(self):
        host = Host(self, 2)
        one, _connection = host.daemon(vms(1))
        host.write('run/libvirt/qemu/vm-0.pid', '42')
        host.write('proc/42/cmdline', 'qemu vm-0')
        host.write('proc/42/cgroup', '0::/work.slice/vm\n')
        host.write('sys/fs/cgroup/work.slice/vm/cpu.stat', 'throttled_usec 0\n')
        logged = self.steps(one, 2)
        self.assertEqual('', host.line('work.slice', 'cgroup.freeze'))
        self.assertTrue(host.paused('batch/b'))
        self.assertEqual(1, sum('a VM runs in work.slice' in line for line in logged), logged)

    def test_dry_run_writes_nothing(self):
        host = Host(self, 2)
        before = {path: path.read_bytes() for path in host.root.rglob('*') if path.is_file()}
        one, connection = host.daemon(vms(), dry_run=True)
        self.steps(one, 6)
        connection.answers = [replay.failure('gone')]
        self.assertIn('dry run: all', self.steps(one, 1)[0])
        one.tighten()
        self.assertEqual(before, {path: path.read_bytes() for path in host.root.rglob('*')
                                  if path.is_file()})

    def test_what_cannot_be_written_is_logged_once(self):
        host = Host(self, 2)
        host.cgroups.joinpath('work.slice/memory.max').unlink()
        one, _connection = host.daemon(vms())
        logged = self.steps(one, 8)
        self.assertEqual(1, sum('memory.max' in line for line in logged), logged)
        self.assertTrue(host.paused('work.slice'))
        self.assertFalse(host.paused('batch/b'))
        host.write('sys/fs/cgroup/work.slice/memory.max', '')
        self.assertEqual(1, len(self.steps(one, 2)))
        self.assertFalse(host.paused('work.slice'))

    def test_rates_from_counters(self):
        first, second = replay.polls()[:2]
        host = Host(self, 2)
        one, connection = host.daemon(first, second)
        one.step()
        with mock.patch.object(one.regulator, 'decide', autospec=True,
                               side_effect=one.regulator.decide) as decide:
            one.step()
        seen = decide.call_args.args[0]
        self.assertEqual({uuid for uuid, _stats in second}, set(seen.uses))
        self.assertTrue(all(found.running >= 0 for found in seen.uses.values()))
        self.assertTrue(all(found.rates[regulator.BYTES] >= 0 for found in seen.uses.values()))

    def test_what_libvirt_is_asked_for(self):
        stats = {**vms(1)[0][1], 'net.count': 3, 'net.0.tx.bytes': 7, 'net.2.tx.bytes': 5}
        connection = replay.Connection([('vm-0', stats)])
        source = daemon.source('', [regulator.NETWORK], host_counters.ThrottledTimes(
            Host(self, 2).root), lambda _uri: connection)
        with mock.patch.object(replay.Domain, 'vcpuPinInfo', autospec=True, side_effect=[
                [(False, True, False), (False, False, True)], [(True, False, False)]]) as pins:
            for _poll in range(60):
                found = source.poll()
                self.assertEqual({'vm-0': frozenset({1, 2})}, source.pinned)
            self.assertEqual(12, found['vm-0']['net.tx.bytes'])
            self.assertEqual(1, pins.call_count)
            source.poll()
            self.assertEqual({'vm-0': frozenset({0})}, source.pinned)
        groups, _flags = connection.calls[0]
        self.assertTrue(groups & daemon.libvirt.INTERFACES)
        self.assertFalse(groups & daemon.libvirt.DISKS)

    def test_a_vm_that_was_never_throttled_is_read_now_and_then(self):
        host = Host(self, 2)
        path = 'sys/fs/cgroup/machine.slice/machine-qemu\\x2d1\\x2dvm.scope/cpu.stat'
        host.write(path, 'throttled_usec 0\n')
        times = daemon.throttled_times(host.root)
        self.assertEqual({'vm': 0}, times.read([('vm', 1, 'vm')]))
        host.write(path, 'throttled_usec 5\n')
        found = [times.read([('vm', 1, 'vm')])['vm'] for _poll in range(12)]
        self.assertEqual([0] * 8 + [5000] * 4, found)
        host.write(path, 'throttled_usec 6\n')
        self.assertEqual({'vm': 6000}, times.read([('vm', 1, 'vm')]))

    def test_benchmark(self):
        program = app.TraconApp()
        program.stdout = io.StringIO()
        command = bench_background.Background(program, None)
        command.run(command.get_parser('').parse_args(
            ['--domains', '1,3', '--looks', '2', '--pause', '0', '-f', 'json']))
        rows = json.loads(program.stdout.getvalue())
        self.assertLessEqual({(source, vms, what) for source in ('recorded', 'test driver')
                              for vms in (1, 3) for what in ('libvirt alone', 'tracon-background')
                              }, {(row['source'], row['vms'], row['what']) for row in rows})
        self.assertTrue(all(row['percent_of_a_core'] >= 0 for row in rows))

    def test_metrics(self):
        host = Host(self, 2)
        one, _connection = host.daemon(vms())
        self.steps(one, 6)
        found = {(sample.name, *sample.labels.values()): sample.value
                 for family in daemon.Metrics(one).collect() for sample in family.samples}
        self.assertEqual(1.0, found['tracon_background_seeing',])
        self.assertEqual(2.0, found['tracon_background_vms',])
        self.assertEqual(0.0, found['tracon_background_paused', 'work.slice'])
        self.assertGreater(found['tracon_background_memory_limit_bytes', 'batch/b'], 2**30)


class TestService(unittest.TestCase):

    def run_main(self, text, *arguments):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        path = pathlib.Path(folder, 'tracon.conf')
        path.write_text(f'[background]\n{text}\n')
        with contextlib.redirect_stderr(io.StringIO()) as said, mock.patch.object(
                background_service.logging, 'setup', autospec=True), mock.patch.object(
                    background_service.cfg, 'CONF', cfg.ConfigOpts()):
            code = background_service.main(['--config-file', str(path), *arguments])
        return code, said.getvalue()

    def test_bad_configuration_names_option_value_and_remedy(self):
        host = Host(self, 2)
        root = f'cgroup_root = {host.cgroups}\n'
        for text, said in (
                ('', 'groups=\'\': name control groups'),
                ('groups = machine.slice', 'groups=\'machine.slice\': virtual machines'),
                ('groups = a\nnetwork_device = lo', 'network_capacity=None: state what it can'),
                ('groups = a\nnetwork_device = nothing\nnetwork_capacity = 1',
                 'network_device=\'nothing\': there is no such interface'),
                ('groups = a\ndisk_device = /nothing', 'disk_device=\'/nothing\': No such file'),
                ('groups = a\ndisk_device = /dev/null', 'disk_device=\'/dev/null\': no block'),
                ('groups = a\ncpus = x', 'cpus=\'x\': \'x\' is no list of cores'),
                ('groups = a\nquota_decrease = 1', "'1': expected a finite number from 1.01"),
                ('groups = a\nmemory_action = drop', 'memory_action')):
            code, found = self.run_main(root + text)
            self.assertEqual(2, code, text)
            self.assertIn(said, found)
        host.cgroups.joinpath('work.slice/cpu.max').unlink()
        code, found = self.run_main(f'{root}groups = work.slice')
        self.assertEqual(2, code)
        self.assertIn('cpu.max is not there', found)

    def test_the_engine_is_told_each_second_of_what_is_tight(self):
        host = Host(self, 2)
        one, _connection = host.daemon(vms())
        with mock.patch.multiple(
                background_service, signal=mock.DEFAULT, prometheus_client=mock.DEFAULT,
                outbox=mock.DEFAULT, threading=mock.DEFAULT) as found:
            ended = found['threading'].Event.return_value
            for told, engine in ((0, None), (3, found['outbox'].return_value)):
                found['outbox'].return_value = engine
                ended.wait.side_effect = [False] * 3 + [True]
                background_service.run(mock.MagicMock(), one)
        engine.start.assert_called_once_with()
        self.assertEqual([mock.call(one.regulator.episodes)] * told, engine.take.mock_calls)
        self.assertTrue(host.paused('batch/b'))

    def test_a_broken_oslo_messaging_does_not_keep_it_from_throttling(self):
        host = Host(self, 2)
        text = f'cgroup_root = {host.cgroups}\ngroups = {",".join(GROUPS)}'
        with mock.patch.dict('sys.modules', {'tracon_watcher.messaging': None}):
            with self.assertLogs('tracon_watcher.cmd.background_service', 'WARNING') as logged:
                self.assertIsNone(background_service.outbox(mock.Mock()))
            self.assertEqual(1, len(logged.output))
            self.assertEqual((0, ''), self.run_main(text, '--tighten'))

    def test_tighten(self):
        for version in (1, 2):
            host = Host(self, version)
            host.tree().apply('batch/b', LOOSE)
            self.assertFalse(host.paused('batch/b'))
            code, found = self.run_main(
                f'cgroup_root = {host.cgroups}\ngroups = {",".join(GROUPS)}', '--tighten')
            self.assertEqual((0, ''), (code, found))
            self.assertEqual([True, True], [host.paused(name) for name in GROUPS])
