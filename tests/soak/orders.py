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

"""Orders to a process of the soak's and its answers: lines of JSON over its input and output."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import threading
from typing import Any, Callable, Mapping

_ROOT = pathlib.Path(__file__).parents[2]


class Process:
    """A process that answers one order after the other.

    :param module: of this package, which calls :func:`serve`
    """

    def __init__(self, module: str, log: pathlib.Path, *arguments: object) -> None:
        self.log = log
        with open(log, 'ab') as errors:
            self.process = subprocess.Popen(
                [sys.executable, '-W', 'ignore', '-m', f'tests.soak.{module}',
                 *map(str, arguments)],
                cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
                env={**os.environ, 'OMP_NUM_THREADS': '1', 'OPENBLAS_NUM_THREADS': '1'})
        self._lock = threading.Lock()

    @property
    def pid(self) -> int:
        """Number of the process."""
        return self.process.pid

    def ask(self, **order: Any) -> dict[str, Any]:
        """Give an order and wait for the answer.

        :raises RuntimeError: when the process has ended
        """
        assert self.process.stdin is not None and self.process.stdout is not None
        with self._lock:
            try:
                self.process.stdin.write(json.dumps(order) + '\n')
                self.process.stdin.flush()
                line = self.process.stdout.readline()
            except OSError:
                line = ''
        if not line:
            raise RuntimeError(f'{self.process.args[-2:]} has ended: see {self.log}')
        found: dict[str, Any] = json.loads(line)
        return found

    def stop(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


def serve(answer: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> None:
    """Answer orders until there are no more."""
    # What anybody else prints is no answer.
    out, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        out.write(json.dumps(answer(json.loads(line))) + '\n')
        out.flush()
