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

"""What the DevStack plugin writes, with DevStack's own functions played by some of a few lines."""

import importlib.util
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from oslo_config import cfg
import yaml

from tracon_watcher.cmd import engine

ROOT = pathlib.Path(__file__).parents[3]
PLUGIN = ROOT / 'devstack'
PLAY = pathlib.Path(__file__).parent / 'play.sh'


@unittest.skipUnless(shutil.which('bash'), 'bash is not installed')
class TestPlugin(unittest.TestCase):

    def play(self, enabled, disabled=''):
        """Return the lines of each section by file, and what was called."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        subprocess.run(
            ['bash', PLAY], check=True,
            env={'OUT': str(folder), 'PLUGIN': str(PLUGIN), 'ENABLED': enabled,
                 'DISABLED': disabled, 'PATH': '/usr/bin:/bin'})
        self.linked = {path.name: path.resolve().parent for path in (
            folder / 'horizon/openstack_dashboard/local/enabled').iterdir()}
        files = {}
        for line in (folder / 'ini').read_text().splitlines():
            path, section, name, value = line.split('\t')
            files.setdefault(pathlib.Path(path).name, {}).setdefault(section, []).append(
                (name, value))
        return files, (folder / 'calls').read_text().splitlines()

    def test_a_controller(self):
        files, calls = self.play('n-sch watcher-decision-engine')
        nova = {(section, name): value for section, lines in files['nova.conf'].items()
                for name, value in lines}
        self.assertEqual('ComputeFilter,SameHostFilter,InterferenceFilter',
                         nova['filter_scheduler', 'enabled_filters'])
        for name in ('soft_affinity', 'soft_anti_affinity'):
            self.assertEqual('40', nova['filter_scheduler', f'{name}_weight_multiplier'])
        self.assertEqual('engine', nova['tracon', 'snapshot_source'])
        self.assertEqual('advise', nova['tracon', 'mode'])
        self.assertEqual('both', nova['notifications', 'notification_format'])
        self.assertEqual([('snapshot_source', 'engine')], files['watcher.conf']['tracon'])
        order = [next(index for index, call in enumerate(calls) if call.startswith(wanted))
                 for wanted in ('setup_develop', 'create_service_user tracon admin',
                                'recreate_database tracon', 'tracon db upgrade',
                                'run_process tracon-engine',
                                'stop_process tracon-engine')]
        self.assertEqual(sorted(order), order)

    def test_pages_in_horizon(self):
        self.play('n-sch')
        self.assertEqual({}, self.linked)
        self.play('n-sch horizon')
        enabled = ROOT / 'tracon_dashboard/enabled'
        self.assertEqual({path.name: enabled for path in enabled.glob('_*.py')}, self.linked)

    def test_the_engine_takes_its_configuration(self):
        files, _calls = self.play('n-sch')
        with tempfile.NamedTemporaryFile('w', suffix='.conf') as written:
            for section, lines in files['tracon.conf'].items():
                written.write(f'[{section}]\n' + ''.join(
                    f'{name} = {value}\n' for name, value in lines))
            written.flush()
            conf = cfg.ConfigOpts()
            engine.register_opts(conf)
            conf(['--config-file', written.name], project='tracon')
        self.assertEqual('mysql+pymysql://root:secret@127.0.0.1/tracon', conf.database.connection)
        self.assertEqual(['public'], conf.service_auth.valid_interfaces)
        for section, lines in files['tracon.conf'].items():
            if section in ('keystone_authtoken', 'service_auth', 'DEFAULT', 'database',
                           'oslo_messaging_rabbit'):
                continue
            for name, value in lines:
                # An option that there is not would raise.
                self.assertEqual(value, str(conf[section][name]))
        self.assertIn('engine', files['tracon.conf'])

    def test_exchanges_are_declared_as_nova_declares_them(self):
        files, _calls = self.play('n-sch')
        self.assertEqual([('rabbit_quorum_queue', 'True')],
                         files['tracon.conf']['oslo_messaging_rabbit'])

    def test_without_the_engine(self):
        files, calls = self.play('n-sch watcher-decision-engine', 'tracon-engine')
        self.assertNotIn('tracon.conf', files)
        for name in ('nova.conf', 'watcher.conf'):
            (option, value), = [line for line in files[name]['tracon'] if line[0] != 'mode']
            self.assertEqual('snapshot_file', option)
            self.assertTrue(value.endswith('/tracon/snapshot.jsonl'))
        self.assertFalse([call for call in calls if call.startswith('run_process')])


class TestMerge(unittest.TestCase):

    def setUp(self):
        spec = importlib.util.spec_from_file_location('merge', PLUGIN / 'merge_ceilometer.py')
        self.merge = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.merge)
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def read(self, name):
        return yaml.safe_load((self.folder / name).read_text())

    def test_what_takes_everything_leaves_ours_out(self):
        (self.folder / 'polling.yaml').write_text(
            'sources:\n- name: all\n  interval: 300\n  meters: ["*"]\n')
        (self.folder / 'pipeline.yaml').write_text(
            'sources:\n- {name: meter_source, meters: ["*"], sinks: [meter_sink]}\n'
            '- {name: cpu_source, meters: [cpu], sinks: [meter_sink]}\n'
            'sinks:\n- {name: meter_sink, publishers: ["gnocchi://?archive_policy=low"]}\n')
        for _turn in range(2):
            self.merge.main(ROOT / 'etc' / 'ceilometer', self.folder)
            polling, pipeline = self.read('polling.yaml'), self.read('pipeline.yaml')
            self.assertEqual([('all', ['*', '!tracon.*']),
                              ('tracon', ['tracon.vm', 'tracon.host'])],
                             [(one['name'], one['meters']) for one in polling['sources']])
            self.assertEqual([('meter_source', ['*', '!tracon.*']), ('cpu_source', ['cpu']),
                              ('tracon', ['tracon.*'])],
                             [(one['name'], one['meters']) for one in pipeline['sources']])
            self.assertEqual(['gnocchi://?archive_policy=low'],
                             pipeline['sinks'][0]['publishers'])
            self.assertEqual(['meter_sink', 'tracon_gnocchi'],
                             [one['name'] for one in pipeline['sinks']])
        self.assertTrue((self.folder / 'tracon_gnocchi_resources.yaml').exists())

    def test_a_host_with_one_agent(self):
        (self.folder / 'polling.yaml').write_text('sources: []\n')
        self.merge.main(ROOT / 'etc' / 'ceilometer', self.folder)
        self.assertEqual(['tracon'], [one['name'] for one in self.read('polling.yaml')['sources']])
        self.assertFalse((self.folder / 'pipeline.yaml').exists())
