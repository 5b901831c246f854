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

"""``tracon lab measure --cloud`` in a real cloud: Nova boots VMs, and telemetry tells of them."""

import dataclasses
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from tests.functional.cloud import base
from tracon_lab.models import dataset

HOST = 'cmp1'
POLLING = 5
COMMAND = 'import sys; from tracon_watcher.cmd import app; sys.exit(app.main(sys.argv[1:]))'


class TestMeasure(base.CloudCase):

    port_base = 29200
    polling_seconds = POLLING

    @classmethod
    def configured(cls, made):
        return dataclasses.replace(made, hosts=(HOST,))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))

    def start(self, *arguments, user='admin'):
        environment = {name: value for name, value in os.environ.items()
                       if not name.startswith('OS_')}
        process = subprocess.Popen(
            [sys.executable, '-c', COMMAND, 'lab', 'measure', '--cloud', '--host', HOST + '=trial',
             '--output', str(self.folder / 'measured'), '--polling-interval', str(POLLING),
             '--memory-mib', '256', '--disk-gib', '1', *arguments],
            env={**environment, **self.cloud.environment(
                user, 'admin' if user == 'admin' else 'demo')},
            stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def finish(self, process, patience):
        _out, err = process.communicate(timeout=patience)
        return process.returncode, err

    def ours(self):
        """Return the names of all that is there of a measurement."""
        connection = self.cloud.connection()
        found = [one.name for one in self.cloud.servers.all()]
        found += [one['name'] for one in connection.image.get('/images').json()['images']]
        found += [one['name'] for one in connection.compute.get(
            '/flavors', params={'is_public': 'None'}).json()['flavors']]
        return [name for name in found if name.startswith('tracon-measure-')]

    def test_a_point_is_measured_and_everything_is_removed(self):
        code, err = self.finish(self.start('--points', '1'), 1500)
        self.assertEqual(0, code, err)
        found = dataset.read(self.folder / 'measured' / 'trial.csv')
        self.assertEqual('trial', found.host_type)
        self.assertEqual(['solo', 'solo', 'background', 'reverse'], list(found.text['kind']))
        both = found.text['kind'] != 'solo'
        # Both are full of requests that one disk and one core have to serve.
        self.assertTrue((found.numbers['slowdown'][both] > 1.1).all(), found.numbers['slowdown'])
        self.assertTrue((found.numbers['iops_ratio'][both] < 0.95).all())
        for name in ('target_alone_guest_cpu', 'target_observed_host_cpu'):
            self.assertTrue((found.numbers[name] > 0.01).all(), name)
        self.assertEqual([], self.ours())
        # There is nothing left to do, and nothing is done.
        text = (self.folder / 'measured' / 'trial.csv').read_text()
        process = self.start('--points', '1')
        seen = set()
        while process.poll() is None:
            seen.update(self.ours())
            time.sleep(0.5)
        self.assertEqual(0, self.finish(process, 60)[0])
        self.assertEqual((set(), text),
                         (seen, (self.folder / 'measured' / 'trial.csv').read_text()))

    def test_an_interruption_removes_everything(self):
        process = self.start('--output', str(self.folder / 'interrupted'))
        deadline = time.monotonic() + 300
        while 'tracon-measure-cmp1-target' not in self.ours():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        code, err = self.finish(process, 300)
        self.assertNotEqual(0, code)
        self.assertNotIn('Traceback', err)
        self.assertEqual([], self.ours())

    def test_a_host_that_is_not_empty_is_left_alone(self):
        tenant = self.cloud.boot('tenant', HOST)
        self.addCleanup(self.cloud.servers.delete, tenant)
        code, err = self.finish(self.start('--output', str(self.folder / 'refused')), 300)
        self.assertEqual(2, code)
        self.assertIn('host cmp1 has 1 other VMs: tenant (', err)
        self.assertEqual([], self.ours())

    def test_who_is_no_administrator_is_told(self):
        code, err = self.finish(self.start(user='demo'), 300)
        self.assertEqual(2, code)
        self.assertIn('has to be an administrator', ' '.join(err.split()))
        self.assertNotIn('Traceback', err)
