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

"""Hears Nova's versioned notifications."""

from __future__ import annotations

from typing import Any

import oslo_messaging

from tracon_watcher.messaging import broker
from tracon_watcher.messaging import protocol

TOPIC = 'versioned_notifications'
#: Where Nova publishes, unless its option control_exchange says otherwise.
EXCHANGE = 'nova'
_PRIORITIES = ('info', 'error')
#: Listeners of one pool share a copy of each notification; others, such as Watcher, get theirs.
#: It is the name of a queue, so it must be that of no topic of ours.
POOL = 'tracon-notifications'


class Listener:
    """Hears Nova.

    On RabbitMQ it listens to our own exchange, to which Nova's is led. Listening to Nova's,
    oslo.messaging would declare it, each time it reaches the broker; and where it does so before
    Nova and by other options, Nova's services cannot declare it any more.

    :param conf: of which ``oslo_messaging.get_notification_transport`` makes a transport
    :param endpoint: takes the notifications, with a method for each priority
    :param exchange: that Nova publishes to
    """

    def __init__(self, conf: Any, endpoint: Any, exchange: str = EXCHANGE) -> None:
        self._transport = oslo_messaging.get_notification_transport(conf)
        self._exchange = exchange
        self._broker = broker.Broker.of(conf, conf.oslo_messaging_notifications.transport_url)
        if self._broker is not None:
            self._broker.compare(protocol.EXCHANGE, (), (POOL,))
        self._listener = oslo_messaging.get_notification_listener(
            self._transport, [oslo_messaging.Target(
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
            for priority in _PRIORITIES:
                self._broker.lead(self._exchange, protocol.EXCHANGE, f'{TOPIC}.{priority}')
        except broker.ExchangeMissing as error:
            raise broker.ExchangeMissing(
                f'{error}; Nova makes its own when it starts, and [engine] nova_exchange has to '
                'be what control_exchange is in nova.conf') from None

    def stop(self) -> None:
        """End, with all connections; while the broker is away this does not return."""
        if self._broker is not None:
            self._broker.close()
        self._listener.stop()
        self._listener.wait()
        self._transport.cleanup()
