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

"""``tracon doctor``: files read as services read them, and the whole command."""

import importlib.metadata
import json
import logging
import os
from unittest import mock

from nova.conf import notifications
from nova.conf import scheduler
from oslo_config import cfg

from tests.unit import command_line
from tests.unit.doctor import cloud
from tests.unit import folder
from tracon_watcher.cmd import database
from tracon_watcher.cmd import doctor
from tracon_watcher.cmd import doctor_files
from tracon_watcher.doctor import configuration
from tracon_watcher.doctor.findings import Severity
from tracon_watcher.doctor.findings import Unread
from tracon_watcher.engine.storage import schema

NOVA = '''
[DEFAULT]
transport_url = fake://nova:secret@127.0.0.1:5672/
[filter_scheduler]
available_filters = nova.scheduler.filters.all_filters
available_filters = nova_filters.interference_filter.InterferenceFilter
enabled_filters = ComputeFilter,InterferenceFilter
weight_classes = nova.scheduler.weights.all_weighers,\
nova_filters.interference_weigher.InterferenceWeigher
[notifications]
notification_format = both
[oslo_messaging_notifications]
driver = messagingv2
[tracon]
snapshot_source = engine
mode = weigh
'''
WATCHER = '''
[DEFAULT]
transport_url = fake://watcher:secret@127.0.0.1:5672/
[tracon]
snapshot_source = engine
'''
ENGINE = '''
[DEFAULT]
transport_url = fake://tracon:secret@127.0.0.1:5672/
[database]
connection = sqlite:///%(database)s
[service_auth]
auth_type = password
auth_url = %(url)s/identity/v3
username = tracon
password = secret
project_name = service
user_domain_id = default
project_domain_id = default
region_name = R
valid_interfaces = internal
[engine]
polling_interval_seconds = 60
'''


class FilesCase(folder.FolderCase):

    def write(self, name, text):
        path = self.folder / f'{self.id()}-{name}'
        path.write_text(text, encoding='utf-8')
        return str(path)

    def nova(self, text=NOVA):
        return doctor_files.read_nova([self.write('nova.conf', text)])

    def engine(self, text):
        return doctor_files.read_engine([self.write('tracon.conf', text)])[0]


class TestFiles(FilesCase):

    def test_options_of_nova_are_as_nova_has_them(self):
        theirs = {'filter_scheduler': scheduler.filter_scheduler_opts,
                  'notifications': notifications.ALL_OPTS}
        for group, options in doctor_files.NOVA.items():
            known = {one.dest: one for one in theirs[group]}
            for one in options:
                with self.subTest(f'[{group}] {one.dest}'):
                    other = known[one.dest]
                    self.assertIs(type(other), type(one))
                    self.assertEqual(other.default, one.default)
                    self.assertEqual([(old.name, old.group) for old in other.deprecated_opts],
                                     [(old.name, old.group) for old in one.deprecated_opts])
        # Each weigher of Nova's counts, but for that of metrics, which is off by default.
        self.assertEqual(
            {one.dest for one in doctor_files.NOVA['filter_scheduler']
             if one.dest.endswith('_weight_multiplier')},
            {name for name in {one.dest for one in theirs['filter_scheduler']}
             if name.endswith('_weight_multiplier')})

    def test_what_nova_states(self):
        found = self.nova()
        self.assertEqual(('ComputeFilter', 'InterferenceFilter'), found.enabled_filters)
        self.assertEqual((configuration.ALL_FILTERS, configuration.FILTER),
                         found.available_filters)
        self.assertEqual('nova', found.exchange)
        self.assertEqual(('messagingv2',), found.drivers)
        self.assertEqual((40.0, 'weigh'), (found.weight_multiplier, found.mode))
        self.assertEqual('127.0.0.1:5672 /', found.notified.shown)
        self.assertNotIn('secret', repr(found))

    def test_files_add_up(self):
        more = self.write('more.conf', '[tracon]\nmode = enforce\n')
        found = doctor_files.read_nova([self.write('nova.conf', NOVA), more])
        self.assertEqual('enforce', found.mode)
        self.assertEqual(('ComputeFilter', 'InterferenceFilter'), found.enabled_filters)

    def test_brokers_are_told_apart_by_hosts_and_virtual_host(self):
        def broker(url):
            return self.nova(f'[DEFAULT]\ntransport_url = {url}\n').notified

        self.assertFalse(broker('rabbit://a:b@127.0.0.1/').differs(
            broker('rabbit://c:d@localhost:5672,c:d@192.0.2.1//')))
        self.assertTrue(broker('rabbit://a:b@127.0.0.1/').differs(broker('rabbit://127.0.0.1/x')))
        self.assertTrue(broker('rabbit://a:b@127.0.0.1/').differs(broker('rabbit://192.0.2.1/')))

    def test_what_cannot_be_read_is_unread(self):
        found = doctor_files.read_nova([str(self.folder / 'none.conf')])
        self.assertRegex(found.why, 'none.conf cannot be read')
        self.assertEqual(Severity.UNKNOWN, found.severity)
        with mock.patch.dict(os.environ, HOME=str(self.folder)), mock.patch.object(
                cfg, 'find_config_files', autospec=True, return_value=[]):
            self.assertRegex(doctor_files.read_watcher([]).why, 'there is no watcher.conf')
            self.assertFalse(doctor_files.there([]))

    def test_what_is_no_value_is_an_error(self):
        for text in ('[tracon]\nmode = sometimes\n', 'no option\n',
                     '[DEFAULT]\ntransport_url = rabbit://a:secret@[::1\n'):
            with self.subTest(text):
                found = self.nova(text)
                self.assertIsInstance(found, Unread)
                self.assertEqual(Severity.ERROR, found.severity)
                self.assertNotIn('secret', found.why)

    def test_a_calibration_that_cannot_be_used(self):
        self.assertIsNone(self.engine('[engine]\npolling_interval_seconds = 30\n').calibration)
        found = self.engine(f'[engine]\ncalibration_file = {self.folder}/none.json\n')
        self.assertIn('none.json', found.calibration)

    def test_a_file_of_a_snapshot(self):
        path = self.write('snapshot.jsonl', '')
        for name, there in ((path, True), (f'{path}.old', False)):
            found = self.nova(f'[tracon]\nsnapshot_file = {name}\n').plugin
            self.assertEqual(('file', there), (found.snapshot_source, found.snapshot_there))


class TestPackages(FilesCase):

    def test_what_is_installed_fits(self):
        self.assertEqual((), doctor.unfit_packages())

    def test_what_is_too_old(self):
        with mock.patch.object(importlib.metadata, 'version', autospec=True,
                               side_effect=lambda name: '30.0' if name == 'nova' else '999'):
            self.assertEqual(('nova 30.0 is installed, >=34.0.0 is supported',),
                             doctor.unfit_packages())


class TestCommand(FilesCase):

    def setUp(self):
        super().setUp()
        for name in doctor._QUIET:
            logger = logging.getLogger(name)
            self.addCleanup(logger.setLevel, logger.level)
        self.cloud = cloud.Cloud()
        self.addCleanup(self.cloud.server.stop)
        self.cloud.measured()
        self.database = self.folder / f'{self.id()}.db'
        text = ENGINE % {'database': self.database, 'url': self.cloud.url}
        self.files = {'--nova-config': self.write('nova.conf', NOVA),
                      '--watcher-config': self.write('watcher.conf', WATCHER),
                      '--config-file': self.write('tracon.conf', text)}
        connected = database.connect(database.read_configuration([self.files['--config-file']]))
        schema.upgrade(connected)
        connected.close()

    def run_program(self):
        """Return the exit status, what was found, and the standard error."""
        code, out, err = command_line.run('doctor', '-f', 'json', *(
            part for pair in self.files.items() for part in pair), doctor=doctor.Doctor)
        return code, json.loads(out), err

    def test_a_healthy_installation(self):
        self.assertEqual((0, []), self.run_program()[:2])

    def test_the_standard_error_says_how_many_checks_there_were(self):
        self.assertRegex(self.run_program()[2], r'checks: 0 error, 0 warning, 0 unknown')

    def test_a_warning(self):
        self.files['--nova-config'] = self.write('nova.conf', NOVA.replace('both', 'unversioned'))
        code, found, _err = self.run_program()
        self.assertEqual(1, code)
        self.assertEqual([('warning', 'notifications')],
                         [(one['Severity'], one['Subject']) for one in found])

    def test_an_error(self):
        self.database.unlink()
        code, found, _err = self.run_program()
        self.assertEqual(2, code)
        self.assertEqual([('error', 'database')],
                         [(one['Severity'], one['Subject']) for one in found])
        self.assertIn('tracon db upgrade', found[0]['Remedy'])
        self.assertFalse(self.database.exists())

    def test_without_the_engines_file_nothing_is_fine(self):
        self.files['--config-file'] = str(self.folder / 'none.conf')
        code, found, _err = self.run_program()
        self.assertEqual(1, code)
        unknown, = found
        self.assertEqual('unknown', unknown['Severity'])
        for subject in ('services', 'telemetry', 'database', 'audits', 'broker'):
            self.assertIn(subject, unknown['Subject'])

    def test_a_session_that_cannot_be_made(self):
        self.files['--config-file'] = self.write('tracon.conf', (
            ENGINE % {'database': self.database, 'url': self.cloud.url}).replace(
                'auth_type = password', 'auth_type = magic'))
        code, found, _err = self.run_program()
        self.assertEqual(2, code)
        self.assertEqual(1, len(found))
        self.assertIn('[service_auth]', found[0]['Finding'])
        self.assertIn('magic', found[0]['Remedy'])

    def test_a_value_that_only_the_api_reads(self):
        self.files['--config-file'] = self.write('tracon.conf', (
            ENGINE % {'database': self.database, 'url': self.cloud.url}) + '[api]\nport = none\n')
        code, found, _err = self.run_program()
        self.assertEqual(2, code)
        self.assertEqual(1, len(found))
        self.assertIn('option port', found[0]['Finding'])

    def test_no_secret_is_shown(self):
        self.cloud.answers.clear()
        code, found, err = self.run_program()
        self.assertTrue(code)
        self.assertNotIn('secret', json.dumps(found) + err)
