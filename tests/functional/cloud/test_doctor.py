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

"""Doctor on a whole cloud: nothing is found while it is well, and each thing that is broken."""

import json
import pathlib
import shutil
import subprocess
import tempfile

from tests.functional.cloud import base
from tracon_lab.testcloud import service

# What is appended to a file or replaced in it, and the findings: severity and subject.
OTHER_HOST = '[DEFAULT]\ntransport_url = rabbit://stack:tracon@127.0.0.1:1/\n'
BREAKAGES = {
    'the filter is missing': ('scheduler.conf', ',InterferenceFilter', '', {('error', 'filter')}),
    'the filter is not the last': (
        'scheduler.conf', ',InterferenceFilter', ',InterferenceFilter,ComputeFilter',
        {('warning', 'filter')}),
    "Nova's filters are lost": (
        'scheduler.conf', 'available_filters = nova.scheduler.filters.all_filters\n', '',
        {('error', 'filter')}),
    'the weigher has no weight': (
        'scheduler.conf', '', '[tracon]\nweight_multiplier = 0\n', {('error', 'weigher')}),
    'the weigher is outvoted': (
        'scheduler.conf', '', '[filter_scheduler]\nram_weight_multiplier = 1000\n',
        {('error', 'weigher')}),
    'it is switched off': (
        'scheduler.conf', '', '[tracon]\nmode = off\n', {('error', 'mode')}),
    'notifications cannot be understood': (
        'nova.conf', '', '[notifications]\nnotification_format = unversioned\n',
        {('warning', 'notifications')}),
    'the password is wrong': (
        'tracon.conf', '', '[service_auth]\npassword = wrong\n', {('error', 'mode')}),
    'the database is not there': (
        'tracon.conf', 'tracon?charset', 'another?charset', {('error', 'database')}),
    'data are old at once': (
        'tracon.conf', '', '[engine]\nmaximum_age_seconds = 6\n', {('warning', 'engine')}),
    'Watcher reads a file': (
        'watcher.conf', '', '[tracon]\nsnapshot_source = file\n',
        {('error', 'snapshot'), ('warning', 'snapshot')}),
    'the broker is another': (
        'tracon.conf', '', OTHER_HOST, {('error', 'broker'), ('warning', 'notifications')}),
}


class TestDoctor(base.ProductCase):

    port_base = 29900
    patience = 120.0

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, host in zip(('one', 'two'), cls.settings.hosts):
            cls.cloud.boot(name, host)

    def setUp(self):
        super().setUp()
        self.files = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.files)
        for name in ('nova/nova.conf', 'nova/scheduler.conf', 'watcher/watcher.conf',
                     'tracon/tracon.conf'):
            shutil.copy(self.settings.configuration / name, self.files)

    def doctor(self):
        """Return the exit status, and severity and first subject of each finding."""
        found = subprocess.run([
            service.program('tracon'), 'doctor', '-f', 'json',
            *('--nova-config', self.files / 'nova.conf'),
            *('--nova-config', self.files / 'scheduler.conf'),
            *('--watcher-config', self.files / 'watcher.conf'),
            *('--config-file', self.files / 'tracon.conf')],
            capture_output=True, text=True, check=False)
        rows = json.loads(found.stdout)
        return found.returncode, {(row['Severity'], row['Subject'].split(',')[0])
                                  for row in rows}

    def test_each_thing_that_is_broken_is_found_and_nothing_else(self):
        self.wait('a cloud that is well', lambda: self.doctor() == (0, set()))
        for what, (name, old, new, wanted) in BREAKAGES.items():
            with self.subTest(what):
                path = self.files / name
                text = path.read_text()
                self.assertIn(old, text)
                path.write_text(text.replace(old, new, 1) if old else text + new)
                status, found = self.doctor()
                self.assertEqual(2 if 'error' in dict(wanted) else 1, status)
                self.assertLessEqual(wanted, found)
                self.assertLessEqual(
                    found - wanted,
                    # Who cannot reach the broker cannot tell what notifications do.
                    {('error', 'broker')} if ('error', 'broker') in wanted else set())
                path.write_text(text)

    def test_a_service_that_is_gone_is_named(self):
        self.wait('a cloud that is well', lambda: self.doctor() == (0, set()))
        self.cloud.kill('gnocchi-api')
        self.addCleanup(self.cloud.restart, 'gnocchi-api')
        status, found = self.doctor()
        self.assertEqual(2, status)
        self.assertIn(('error', 'services'), found)
        self.assertIn(('unknown', 'clocks'), found)
