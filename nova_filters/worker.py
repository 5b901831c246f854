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

"""The judge of this scheduler worker, and the guard that keeps its errors from the scheduler."""

from __future__ import annotations

import os
import threading
from typing import Any, Callable
import weakref

import nova.conf
from oslo_log import log as logging

from nova_filters import log_once
from nova_filters import policy
from nova_filters import request_assessor
from tracon_watcher.messaging import protocol

LOG = logging.getLogger('nova_filters')
_faults = log_once.FaultLog(LOG)
_latest: "Worker | None" = None


class Worker:
    """Makes the judge when it is first needed: after the fork, in each worker."""

    def __init__(self) -> None:
        self._pid: int | None = None
        self._judge: request_assessor.RequestAssessor | None = None
        self._lock = threading.Lock()

    def judge(self) -> request_assessor.RequestAssessor:
        """Return the judge of this process.

        :raises ValueError: oslo.config's, for an option that is not allowed
        """
        global _latest
        if self._pid != os.getpid():
            with self._lock:
                if self._pid != os.getpid():
                    self._judge = _judge(nova.conf.CONF)
                    self._pid = os.getpid()
                    _latest = self
        assert self._judge is not None
        return self._judge

    def close(self) -> None:
        """End the judge's thread."""
        if self._judge is not None and self._pid == os.getpid():
            self._judge.close()


def _judge(conf) -> request_assessor.RequestAssessor:
    """Make a judge that follows the options as they are changed while it works."""
    read = policy.read_options(conf)
    made = request_assessor.RequestAssessor(
        read, LOG, connect=protocol.connector(conf, read.transport_url),
        listener=f'nova-scheduler.{conf.host}')
    reference = weakref.ref(made)

    def changed(_conf, _fresh) -> None:
        judge = reference()
        if judge is not None:
            _faults.guarded(lambda: judge.reconfigure(policy.read_options(conf)), None,
                            'The options of [tracon] stay as they were')

    conf.register_mutate_hook(changed)
    return made


def latest() -> Worker | None:
    """Return the worker that the filter has made in this process, for the weigher."""
    found = _latest
    return found if found is not None and found._pid == os.getpid() else None


def guarded(function: Callable[[], Any], neutral: Any) -> Any:
    """Return what ``function`` returns; ``neutral``, and one log line, should it raise."""
    return _faults.guarded(function, neutral, 'Interference is left out of account, since '
                                              'judging it failed')
