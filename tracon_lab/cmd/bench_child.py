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

"""Work that is measured in a process of its own: time, memory, and an end when it takes too long.

The process is a fork, so that it finds what was prepared, and neither what it changes nor what it
needs is left to the next.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import pathlib
import time
from typing import Any, Callable

from tracon_watcher import errors

#: Given a function that is told which share is done; returns what there is to say.
Work = Callable[[Callable[[float], None]], dict[str, Any]]
_CLEAR_PEAK = '5'


class BenchmarkFailed(errors.TraconError):
    """What was to be measured ended with an error."""


def run(work: Work, report: Callable[[float], None],
        limit: float | None = None) -> dict[str, Any] | None:
    """Do some work in a process of its own.

    :param report: is told which share of the work is done
    :param limit: seconds after which it is ended
    :returns: what it says, with ``seconds`` and the ``mebibytes`` it needed at most beyond what
        was there; None when it was ended
    :raises BenchmarkFailed: when it ends with an error
    """
    context = multiprocessing.get_context('fork')
    receive, send = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(work, send), daemon=True)
    process.start()
    send.close()
    end = None if limit is None else time.monotonic() + limit
    try:
        while True:
            left = None if end is None else max(end - time.monotonic(), 0.0)
            if not receive.poll(left):
                return None
            try:
                kind, value = receive.recv()
            except EOFError:
                process.join()
                raise BenchmarkFailed(f'the process that was measured ended with code '
                                      f'{process.exitcode} and said nothing') from None
            if kind == 'share':
                report(value)
            elif kind == 'error':
                raise BenchmarkFailed(value)
            else:
                report(1.0)
                return dict(value)
    finally:
        process.kill()
        process.join()
        receive.close()


def _child(work: Work, send: multiprocessing.connection.Connection) -> None:
    try:
        # From here on the peak is this work's.
        pathlib.Path('/proc/self/clear_refs').write_text(_CLEAR_PEAK)
        before = _mebibytes('VmRSS')
        start = time.perf_counter()
        said = work(lambda share: send.send(('share', share)))
        said = {'seconds': time.perf_counter() - start, **said,
                'mebibytes': max(_mebibytes('VmHWM') - before, 0.0)}
        send.send(('done', said))
    except Exception as error:
        send.send(('error', f'{type(error).__name__}: {error}'))


def _mebibytes(field: str) -> float:
    for line in pathlib.Path('/proc/self/status').read_text().splitlines():
        if line.startswith(f'{field}:'):
            return int(line.split()[1]) / 1024
    raise BenchmarkFailed(f'/proc/self/status has no {field}; run this on Linux')
