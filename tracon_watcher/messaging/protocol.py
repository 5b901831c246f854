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

"""What the engine and those who listen to it agree upon: topics, versions, the size of messages.

The engine answers on one topic (:func:`engine`) and announces each snapshot to all who listen on
another (:func:`snapshots`). The exchange is named, so that it does not depend on which service's
configuration the transport is made of.
"""

from __future__ import annotations

from typing import Any, Callable

import oslo_messaging

from tracon_watcher import errors
from tracon_watcher.messaging import broker

EXCHANGE = 'tracon'
NAMESPACE = 'tracon'
VERSION = '1.0'
ENGINE = 'tracon-engine'
SNAPSHOTS = 'tracon-snapshots'

#: Bytes that a message has at most: brokers and their clients handle larger ones badly.
LARGEST_MESSAGE = 1 << 20
#: Bytes of it that a payload may take up: the rest is for the envelope.
LARGEST_PAYLOAD = LARGEST_MESSAGE - (1 << 14)

#: Names of the remote methods that take documents.
RECORD_DECISIONS = 'record_decisions'
SETTLED = 'settled'
#: Recommended moves, results of audits, and episodes. Their schemas tell them apart: an engine of
#: an earlier release refuses a schema without an error in its log, unlike a method.
RECORD_MOVES = 'record_moves'

#: Makes a transport; called in the process, and when it is needed.
Connect = Callable[[], Any]


def engine(server: str | None = None) -> oslo_messaging.Target:
    """Return the target on which the engine that leads answers.

    :param server: name of one engine; None for whichever listens
    """
    return oslo_messaging.Target(exchange=EXCHANGE, topic=ENGINE, server=server,
                                 namespace=NAMESPACE, version=VERSION)


def snapshots(server: str | None = None) -> oslo_messaging.Target:
    """Return the target on which snapshots are announced.

    :param server: name of a listener; None for all of them
    """
    return oslo_messaging.Target(exchange=EXCHANGE, topic=SNAPSHOTS, server=server,
                                 fanout=None if server else True, namespace=NAMESPACE,
                                 version=VERSION)


def endpoint_target() -> oslo_messaging.Target:
    """Return what an endpoint states as its namespace and version."""
    return oslo_messaging.Target(namespace=NAMESPACE, version=VERSION)


class Connector:
    """Makes transports of its own: they share no connection with others'.

    :param conf: ``oslo_config.cfg.CONF``, which is Nova's and Watcher's too: oslo.messaging
        registers some of its options nowhere else
    :param url: as ``transport_url``; None for the configuration's
    """

    def __init__(self, conf: Any, url: str | None = None) -> None:
        self._conf = conf
        self._url = url

    def __call__(self) -> Any:
        try:
            return oslo_messaging.get_rpc_transport(self._conf, url=self._url)
        except (oslo_messaging.InvalidTransportURL, oslo_messaging.DriverLoadFailure):
            # It holds a password, so neither it nor the text of the error is shown.
            raise errors.InvalidOption(
                'transport_url', '(not shown)',
                'expected a URL such as rabbit://user:password@host:5672/') from None

    @property
    def configured(self) -> bool:
        """Whether the URL is stated; oslo.messaging's default is a broker on this host."""
        try:
            parsed = oslo_messaging.TransportURL.parse(self._conf, self._url)
        except oslo_messaging.InvalidTransportURL:
            return True
        return bool(parsed.hosts) or parsed.transport != 'rabbit'

    def compare(self, *queues: str) -> None:
        """See whether the broker's exchanges, and some queues, are as a transport would make them.

        :raises tracon_watcher.errors.TraconError: naming the options that differ
        """
        found = broker.Broker.of(self._conf, self._url)
        if found is not None:
            try:
                found.compare(EXCHANGE, (ENGINE, SNAPSHOTS), queues)
            finally:
                found.close()


def connector(conf: Any, url: str | None = None) -> Connector:
    """Return what makes a transport, see :class:`Connector`."""
    return Connector(conf, url)


def compare(connect: Connect, topic: str, server: str) -> None:
    """See whether a broker's exchanges and queues are as a server would make them.

    :param topic: on which it listens, and ``server``, its name
    :raises tracon_watcher.errors.TraconError: naming the options that differ
    """
    if isinstance(connect, Connector):
        connect.compare(topic, f'{topic}.{server}')
