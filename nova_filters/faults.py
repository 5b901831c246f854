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

"""One log line for each distinct fault, however often it occurs."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from typing import Any, Callable

_REPEAT_AFTER = 3600.0
_MOST = 256


class FaultLog:
    """Says each fault once, and once more every hour that it lasts.

    :param log: logger
    :param clock: seconds, monotonic
    """

    def __init__(self, log: logging.LoggerAdapter | logging.Logger,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._said: dict[tuple[str, str], float] = {}
        self._lock = threading.Lock()

    def report(self, kind: str, text: str, exc_info: bool = False,
               key: str | None = None) -> bool:
        """Log a warning unless the same one was logged within the last hour.

        :param kind: which part is at fault; see :meth:`mended`
        :param key: what makes two faults the same; None: their text
        :returns: whether it was logged
        """
        now = self._clock()
        with self._lock:
            key = text if key is None else key
            last = self._said.get((kind, key))
            if last is not None and now - last < _REPEAT_AFTER:
                return False
            while len(self._said) >= _MOST:
                del self._said[next(iter(self._said))]
            self._said[kind, key] = now
        self._log.warning('%s', text, exc_info=exc_info)
        return True

    def guarded(self, function: Callable[[], Any], neutral: Any, what: str) -> Any:
        """Return what ``function`` returns; ``neutral``, and one log line, should it raise.

        No mistake of ours may make a request fail or end our thread, so this is the one place
        that catches everything. The log line has the traceback.

        :param what: how the log line begins: what failed, and what is done without it
        """
        try:
            return function()
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            self.report('unexpected', f'{what}: {type(error).__name__}: {error}', exc_info=True,
                        key=f'{type(error).__name__} {place.filename}:{place.lineno}')
            return neutral

    def mended(self, kind: str) -> None:
        """Forget the faults of this kind, so that they are said anew should they come back."""
        with self._lock:
            for said in [said for said in self._said if said[0] == kind]:
                del self._said[said]
