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

"""Modes are changed by a signal, as Nova's services take it, without a restart of the service."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from tests import synthetic
from tests.unit.nova_filters import base
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import snapshot

_ROOT = pathlib.Path(__file__).parents[3]


class ReloadTest(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        state = cluster.build(
            [cluster.Host('a', (cluster.Resident('vm-a', base.BUSY, limits.Limits(1.5)),),
                          synthetic.HOST_TYPE, cluster.LOCAL, time.time(), 1),
             cluster.Host('b', (cluster.Resident('vm-b', base.BUSY),), synthetic.HOST_TYPE,
                          cluster.LOCAL, time.time(), 1)],
            {newcomer_profiles.ALL: newcomer_profiles.Profile(base.BUSY, base.np.zeros(4), 3,
                                                              'all VMs')}, 1,
            time.time())
        snapshot.write(self.folder / 'snapshot', state)

    def configure(self, **options):
        lines = {'snapshot_file': self.folder / 'snapshot', 'initial_wait_seconds': 20,
                 'pending_directory': '', **options}
        (self.folder / 'nova.conf').write_text(
            f'[DEFAULT]\nstate_path = {self.folder}\n[tracon]\n'
            + ''.join(f'{name} = {value}\n' for name, value in lines.items()))

    def start(self, disabled):
        output = open(self.folder / 'output', 'w')
        self.addCleanup(output.close)
        self.log = open(self.folder / 'log', 'w')
        self.addCleanup(self.log.close)
        process = subprocess.Popen(
            [sys.executable, '-W', 'ignore', '-m', 'tests.functional.nova.reload_process',
             str(self.folder / 'nova.conf')], cwd=_ROOT, stdin=subprocess.DEVNULL,
            stdout=output, stderr=self.log, start_new_session=True,
            env={**os.environ, 'OS_NOVA_DISABLE_EVENTLET_PATCHING': disabled,
                 'OMP_NUM_THREADS': '1'})

        def end():
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)

        self.addCleanup(end)
        return process

    def wait_for(self, process, *expected):
        """Wait until two workers judge like this, and none differently; return who they are."""
        end = time.monotonic() + 90
        place = (self.folder / 'output').stat().st_size
        while True:
            self.assertIsNone(process.poll(), (self.folder / 'log').read_text()[-3000:])
            text = (self.folder / 'output').read_text()[place:]
            lines = [line.split() for line in text.splitlines()[1:] if line.count(' ') == 2]
            latest = {line[0]: tuple(line[1:]) for line in lines[-20:]}
            if len(lines) >= 20 and len(latest) == 2 and set(latest.values()) == {expected}:
                return set(latest)
            self.assertLess(time.monotonic(), end, (latest, (
                self.folder / 'log').read_text()[-3000:]))
            time.sleep(0.2)

    def changed(self, disabled):
        """Change options twice; return the workers at each time."""
        self.configure(mode='advise')
        process = self.start(disabled)
        workers = [self.wait_for(process, 'a,b', '40.0')]
        for mode, multiplier, expected in (('enforce', 7.0, ('b', '7.0')),
                                           ('weigh', 9.0, ('a,b', '9.0'))):
            self.configure(mode=mode, weight_multiplier=multiplier)
            process.send_signal(signal.SIGHUP)
            workers.append(self.wait_for(process, *expected))
        return workers

    def test_with_threads(self):
        # Nova ends each worker and starts another, which has the options as they are now.
        workers = self.changed('true')
        self.assertEqual(6, len(set.union(*workers)))

    def test_with_eventlet(self):
        # The workers go on, and are told.
        workers = self.changed('false')
        self.assertEqual(2, len(set.union(*workers)))
