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

"""Hears Nova's versioned notifications through oslo.messaging."""

from __future__ import annotations

import time
from typing import Any, Callable, Mapping

import oslo_messaging

from tracon_watcher.engine import residency as residency_module
from tracon_watcher.messaging import broker
from tracon_watcher.messaging import protocol

TOPIC = 'versioned_notifications'
#: Where Nova publishes, unless its option control_exchange says otherwise.
EXCHANGE = 'nova'
_PRIORITY = 'info'
#: Listeners of one pool share a copy of each notification; others, such as Watcher, get theirs.
#: It is the name of a queue, so it must be that of no topic of ours.
POOL = 'tracon-notifications'
_MOST_REPORTED = 100


class Endpoint:
    """Hands what Nova tells to the residency.

    :param report: called with a notification's type and error when it cannot be read, once for
        each type of both
    """

    filter_rule = oslo_messaging.NotificationFilter(
        event_type=r'^(instance|aggregate|service)\.')

    def __init__(self, residency: residency_module.Residency,
                 report: Callable[[str, Exception], None],
                 clock: Callable[[], float] = time.time) -> None:
        self._residency = residency
        self._report = report
        self._reported: set[tuple[str, str]] = set()
        self._clock = clock

    def info(self, context: Any, publisher: str, event: str, payload: Mapping[str, Any],
             metadata: Any) -> None:
        """Take a notification of priority INFO; Nova has no other that matters here."""
        try:
            self._residency.tell(event, residency_module.unwrapped(payload), self._clock())
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            # Raised, it would come again and again.
            kind = (event, type(error).__name__)
            if kind not in self._reported and len(self._reported) < _MOST_REPORTED:
                self._reported.add(kind)
                self._report(event, error)
            self._residency.repair_wanted.set()


class Listener:
    """Hears Nova.

    On RabbitMQ it listens to our own exchange, to which Nova's is led. Listening to Nova's,
    oslo.messaging would declare it, each time it reaches the broker; and where it does so before
    Nova and by other options, Nova's services cannot declare it any more.

    :param conf: of which ``oslo_messaging.get_notification_transport`` makes a transport
    :param endpoint: takes the notifications
    :param exchange: that Nova publishes to
    """

    def __init__(self, conf: Any, endpoint: Endpoint, exchange: str = EXCHANGE) -> None:
        transport = oslo_messaging.get_notification_transport(conf)
        self._exchange = exchange
        self._broker = broker.Broker.of(conf, conf.oslo_messaging_notifications.transport_url)
        if self._broker is not None:
            self._broker.compare(protocol.EXCHANGE, ())
        self._listener = oslo_messaging.get_notification_listener(
            transport, [oslo_messaging.Target(
                exchange=exchange if self._broker is None else protocol.EXCHANGE, topic=TOPIC)],
            [endpoint], executor='threading', pool=POOL, allow_requeue=False)

    def start(self) -> None:
        """Begin; on RabbitMQ nothing is heard before :meth:`check`."""
        self._listener.start()

    def check(self) -> None:
        """Have Nova's exchange lead to ours, which it may have lost with a reset of the broker.

        :raises tracon_watcher.errors.TraconError: when that cannot be
        """
        if self._broker is None:
            return
        try:
            self._broker.lead(self._exchange, protocol.EXCHANGE, f'{TOPIC}.{_PRIORITY}')
        except broker.ExchangeMissing as error:
            raise broker.ExchangeMissing(
                f'{error}; Nova makes its own when it starts, and [engine] nova_exchange has to '
                'be what control_exchange is in nova.conf') from None

    def stop(self) -> None:
        """End."""
        self._listener.stop()
        if self._broker is not None:
            self._broker.close()
