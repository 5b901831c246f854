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

"""Listeners, each in its own thread, and the endpoint for Nova's versioned notifications."""

from __future__ import annotations

import logging
import re
import threading
import time
from typing import Any, Callable, Mapping, Protocol

import oslo_messaging

from tracon_watcher.engine import inventory_cache
from tracon_watcher import errors
from tracon_watcher.placement import limits

LOG = logging.getLogger(__name__)
#: Seconds after which a listener that has not begun yet counts as one that does not work.
PATIENCE = 10.0
#: Seconds that its end is waited for; it goes on in its thread.
_END = 3.0
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 30.0
_REMEDY = ('see whether the message broker that transport_url names runs and lets this user in')


class Startable(Protocol):
    """Something that runs while the engine leads."""

    def start(self) -> None:
        """Begin."""

    def stop(self) -> None:
        """End."""


class Hearing(Startable, Protocol):
    """A listener."""

    def check(self) -> None:
        """See whether anything can be heard.

        :raises tracon_watcher.errors.TraconError: saying why not
        """


class NotListening(errors.TraconError):
    """Notifications are not heard.

    :param reason: why, and what to do
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f'Nova\'s notifications are not heard: {reason}. Until then changes are '
                         'seen with full listings alone')


class Listening:
    """One listener, from its beginning to its end; neither keeps anybody waiting.

    oslo.messaging tries for ever to reach its broker, in the call that starts a listener as in the
    one that stops it, and this cannot be changed.

    :param make: makes the listener; called in the thread, again after a pause where it fails
    :param patience: seconds after which a listener that has not begun yet does not work
    """

    def __init__(self, make: Callable[[], Hearing], patience: float = PATIENCE,
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._make = make
        self._patience = patience
        self._clock = clock
        self._since = clock()
        self._reason: str | None = None
        self._listener: Hearing | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name='tracon-notifications', daemon=True)

    def start(self) -> None:
        """Begin; returns at once."""
        self._since = self._clock()
        self._thread.start()

    def stop(self) -> None:
        """End; one that hangs is left behind, and ends when it does not hang any more."""
        self._stopped.set()
        self._thread.join(_END)

    def check(self) -> None:
        """See whether it listens, or has begun to only now.

        :raises NotListening: otherwise
        """
        listener = self._listener
        if listener is not None:
            try:
                listener.check()
            except errors.TraconError as error:
                raise NotListening(str(error)) from None
            return
        if self._reason is not None:
            raise NotListening(self._reason)
        if self._clock() - self._since >= self._patience:
            # Without the number of seconds, so that it is logged once.
            raise NotListening(f'the broker has not answered for {self._patience:g} seconds; '
                               f'{_REMEDY}')

    def _run(self) -> None:
        pause = _FIRST_PAUSE
        while not self._stopped.is_set():
            try:
                listener = self._make()
                listener.start()
            except Exception as error:
                # Each driver lets errors of its own library through; check() tells of them.
                self._reason = (str(error) if isinstance(error, errors.TraconError) else
                                f'{type(error).__name__}: {error}; {_REMEDY}')
                self._stopped.wait(pause)
                pause = min(2.0 * pause, _LONGEST_PAUSE)
                continue
            try:
                listener.check()
            except errors.TraconError:
                # The next check, which comes soon, finds and tells the same.
                LOG.debug('Nothing is heard yet', exc_info=True)
            self._reason, self._listener = None, listener
            self._stopped.wait()
            self._listener = None
            listener.stop()


_MOST_REPORTED = 100
_UNREADABLE = (KeyError, TypeError, ValueError, AttributeError)
#: Nova's conductor tells it of each VM that it could not build.
_BUILD_FAILED = 'compute_task.build_instances.error'
#: Seconds in which requests that found no host are gathered before the audit.
_GATHER = 3.0


class AuditTrigger:
    """Has an audit run after requests of the foreground found no host.

    :param post: triggers the audit
    """

    def __init__(self, post: Callable[[], object],
                 sleep: Callable[[float], None] = time.sleep) -> None:
        #: Set when there is such a request.
        self.wanted = threading.Event()
        self._post = post
        self._sleep = sleep
        self._due = False

    def tell(self, payload: Mapping[str, Any]) -> None:
        """Take what Nova tells of a VM that could not be built."""
        data = inventory_cache.unwrapped
        # An error that has come from nova-scheduler has a suffix to its name.
        reason = str(data(payload.get('reason') or {}).get('exception'))
        flavor = data(data(payload.get('request_spec') or {}).get('flavor') or {})
        if reason.startswith('NoValidHost') and flavor and not limits.of_flavor(
                flavor.get('extra_specs') or {}).background:
            self._due = True
            self.wanted.set()

    def trigger(self) -> None:
        """Trigger the audit if it is due; it stays due when that fails."""
        if self._due:
            self._sleep(_GATHER)
            self._due = False
            try:
                self._post()
            except BaseException:
                self._due = True
                raise


class Endpoint:
    """Hands what Nova tells to the residency, and to the trigger of an audit.

    :param report: called with a notification's type and error when it cannot be read, once for
        each type of both
    :param trigger: told of builds that failed; None for none
    """

    filter_rule = oslo_messaging.NotificationFilter(
        event_type=rf'^((instance|aggregate|service)\.|{re.escape(_BUILD_FAILED)}$)')

    def __init__(self, residency: inventory_cache.InventoryCache,
                 report: Callable[[str, Exception], None],
                 clock: Callable[[], float] = time.time,
                 trigger: AuditTrigger | None = None) -> None:
        self._residency = residency
        self._trigger = trigger
        self._report = report
        self._reported: set[tuple[str, str]] = set()
        self._clock = clock

    def info(self, context: Any, publisher: str, event: str, payload: Mapping[str, Any],
             metadata: Any) -> None:
        """Take a notification of priority INFO."""
        try:
            self._residency.tell(event, inventory_cache.unwrapped(payload), self._clock())
        except _UNREADABLE as error:
            self._report_once(event, error)
            self._residency.repair_wanted.set()

    def error(self, context: Any, publisher: str, event: str, payload: Mapping[str, Any],
              metadata: Any) -> None:
        """Take one of priority ERROR, of which only builds that failed matter."""
        if event == _BUILD_FAILED and self._trigger is not None:
            try:
                self._trigger.tell(inventory_cache.unwrapped(payload))
            except _UNREADABLE as error:
                self._report_once(event, error)

    def _report_once(self, event: str, error: Exception) -> None:
        # Raised, it would come again and again.
        kind = (event, type(error).__name__)
        if kind not in self._reported and len(self._reported) < _MOST_REPORTED:
            self._reported.add(kind)
            self._report(event, error)
