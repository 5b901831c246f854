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

"""Daemon thread for all input and output, off the path of requests."""

from __future__ import annotations

import sys
import threading
from typing import Any, Callable

from nova_filters import log_once

_PAUSE_AFTER_ERROR = 5.0


class PeriodicWorker:
    """Calls ``work`` again and again, in a thread that starts with the first :meth:`wake`.

    It must be created after the process has forked: a thread does not survive that. Under
    eventlet's monkey patching the thread is a green one.

    :param work: returns after how many seconds it wants to be called again; it is called sooner
        after :meth:`wake`
    """

    def __init__(self, work: Callable[[], float], faults: log_once.FaultLog) -> None:
        self._work = work
        self._faults = faults
        self._wanted = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stopped = False

    def wake(self) -> None:
        """Have the work done soon. Never blocks."""
        if self._thread is None:
            with self._lock:
                if self._thread is None and not self._stopped:
                    thread = threading.Thread(target=self._run, name='tracon', daemon=True)
                    # Where none can be started now, one may be with the next request.
                    thread.start()
                    self._thread = thread
        self._wanted.set()

    def stop(self) -> None:
        """End the thread after the work at hand."""
        self._stopped = True
        self._wanted.set()
        if self._thread is not None:
            self._thread.join(10)

    def _run(self) -> None:
        while not self._stopped:
            self._wanted.clear()
            # Whatever is wrong, the thread lives on.
            self._wanted.wait(self._faults.guarded(
                self._work, _PAUSE_AFTER_ERROR, 'The background work of the interference filter '
                f'failed, and is tried again in {_PAUSE_AFTER_ERROR:g} s or with the next '
                f'request'))


def patched() -> bool:
    """Say whether eventlet has made this process's threads green ones."""
    if 'eventlet' not in sys.modules:
        return False
    from eventlet import patcher
    return bool(patcher.is_monkey_patched('thread'))


def native_lock() -> Any:
    """Return a lock for what runs natively, too: one that eventlet has not patched.

    A patched lock belongs to the green threads of one thread. Where another thread has to wait for
    it, it waits for ever. Never do anything that lets other green threads run while you hold this
    one: those would wait for it without letting you go on.
    """
    if patched():
        from eventlet import patcher
        return patcher.original('_thread').allocate_lock()
    return threading.Lock()


def natively(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call ``function`` so that green threads are not held up by it.

    Under eventlet it runs in a native thread; else the caller's thread is a native one already.
    A lock that it takes is one of :func:`native_lock`.
    """
    if patched():
        from eventlet import tpool
        return tpool.execute(function, *arguments)
    return function(*arguments)
