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

"""Engines and listeners on a RabbitMQ, in this process or in others."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile

from tests.functional import messaging
from tests.unit.messaging import base

_ROOT = pathlib.Path(__file__).parents[3]


class RabbitCase(base.MessagingCase):
    """One RabbitMQ for all tests of a class; it ends when they have."""

    timeout = 10.0
    kind = messaging.RabbitMQ

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.rabbit = messaging.of_class(cls, cls.kind)
        cls.url = cls.rabbit.url

    def listener(self, **options):
        return super().listener(**{'period': 2.0, **options})

    def process(self, module, *arguments, **environment):
        """Start a module of the tests in a process of its own; return it, with its output."""
        output = tempfile.NamedTemporaryFile('w+')
        self.addCleanup(output.close)
        started = subprocess.Popen(
            [sys.executable, '-W', 'ignore', '-m', f'tests.functional.publication.{module}',
             self.url, *map(str, arguments)], cwd=_ROOT, stdin=subprocess.DEVNULL, stdout=output,
            stderr=subprocess.STDOUT, start_new_session=True,
            env={**os.environ, 'OMP_NUM_THREADS': '1', **environment})
        self.addCleanup(self._end, started)
        return started, lambda: pathlib.Path(output.name).read_text()

    @staticmethod
    def _end(started):
        try:
            os.killpg(started.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        started.wait(30)
