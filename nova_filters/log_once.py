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

import dataclasses
import logging
import threading
import time
import traceback
from typing import Any, Callable

_REPEAT_AFTER = 3600.0
#: How often a fault that comes and goes is said within that time.
_OFTEN = 5
#: Different faults of one kind that are said within that time.
_MOST = 32


@dataclasses.dataclass
class _Said:
    """When a fault was said lately, the latest last, and whether it was mended since."""

    at: list[float] = dataclasses.field(default_factory=list)
    mended: bool = False


class FaultLog:
    """Says each fault once, when it comes back, and once more every hour that it lasts.

    One that comes and goes is said five times an hour, and of one kind 32 faults are said an hour:
    whatever happens, the log is not flooded.

    :param log: logger
    :param clock: seconds, monotonic
    """

    def __init__(self, log: logging.LoggerAdapter | logging.Logger,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._log = log
        self._clock = clock
        self._said: dict[str, dict[str, _Said]] = {}
        self._lock = threading.Lock()

    def report(self, kind: str, text: str, exc_info: bool = False,
               key: str | None = None) -> bool:
        """Log a warning unless the same one was logged within the last hour.

        :param kind: which part is at fault, one of a few; see :meth:`mended`
        :param key: what makes two faults the same; None: their text
        :returns: whether it was logged
        """
        with self._lock:
            if not self._worth_saying(kind, text if key is None else key, self._clock()):
                return False
        self._log.warning('%s', text, exc_info=exc_info)
        return True

    def _worth_saying(self, kind: str, key: str, now: float) -> bool:
        """Say whether a fault is to be said, and note that it is."""
        of_kind = self._said.setdefault(kind, {})
        if key not in of_kind and len(of_kind) >= _MOST:
            for old in [old for old, said in of_kind.items()
                        if now - said.at[-1] >= _REPEAT_AFTER]:
                del of_kind[old]
            if len(of_kind) >= _MOST:
                return False
        said = of_kind.setdefault(key, _Said())
        said.at = [at for at in said.at if now - at < _REPEAT_AFTER]
        if said.at and (not said.mended or len(said.at) >= _OFTEN):
            return False
        said.at.append(now)
        said.mended = False
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
        """Note that the faults of this kind are over: they are said again if they come back."""
        with self._lock:
            for said in self._said.get(kind, {}).values():
                said.mended = True


class PostponedFaults:
    """Takes what a :class:`FaultLog` takes where nothing may be logged, and passes it on later.

    Under eventlet, a handler's lock belongs to green threads.

    :param faults: gets it with :meth:`pass_on`
    """

    def __init__(self, faults: FaultLog) -> None:
        self._faults = faults
        self._held: list[Callable[[], Any]] = []

    def report(self, kind: str, text: str, key: str | None = None) -> None:
        """Take a fault; see :meth:`FaultLog.report`."""
        if len(self._held) < _MOST:
            self._held.append(lambda: self._faults.report(kind, text, key=key))

    def mended(self, kind: str) -> None:
        """Take that the faults of a kind are over."""
        if len(self._held) < _MOST:
            self._held.append(lambda: self._faults.mended(kind))

    def pass_on(self) -> None:
        """Log what was taken."""
        held, self._held = self._held, []
        for one in held:
            one()
