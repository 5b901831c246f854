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

"""Looks at RabbitMQ's exchanges before oslo.messaging declares any.

Who declares an exchange first decides what it is like; who wants it otherwise is refused, for as
long as it exists. So what belongs to Nova is never declared here, only led to an exchange of our
own (RabbitMQ's exchange-to-exchange bindings), and what is our own is compared first.
"""

from __future__ import annotations

import random
import ssl
from typing import Any, Callable, Sequence

import amqp
import kombu
import oslo_messaging
from oslo_utils import strutils

from tracon_watcher import errors

_GROUP = 'oslo_messaging_rabbit'
_DRIVERS = ('rabbit', 'kombu')
#: Seconds to reach a host, and to get an answer.
_CONNECT, _ANSWER = 5.0, 10.0


class BrokerUnavailable(errors.TraconError):
    """The message broker cannot be reached."""


class ExchangeMissing(errors.TraconError):
    """An exchange that others make is not there."""


class ExchangeDiffers(errors.TraconError):
    """An exchange or a queue is not as this process's configuration would declare it.

    :param what: kind and name
    :param options: that decide it
    :param reason: what the broker says
    """

    def __init__(self, what: str, options: str, reason: str) -> None:
        super().__init__(
            f'{what} of the message broker differs from what [{_GROUP}] {options} make of it here '
            f'({reason}): give them the values that they have in nova.conf, in the configuration '
            'of tracon-engine and of Watcher; after a change of these values stop all of them, '
            'and delete it')


class Broker:
    """A connection of its own to RabbitMQ, made when it is needed, and again when it is lost.

    :param conf: in which oslo.messaging has registered the options of its driver
    :param url: of the transport
    """

    def __init__(self, conf: Any, url: oslo_messaging.TransportURL) -> None:
        self._conf = conf
        self._url = url
        self._connection: Any = None

    @classmethod
    def of(cls, conf: Any, url: str | None = None) -> Broker | None:
        """Return the broker of a transport; None where that is none of RabbitMQ's.

        :param url: as ``transport_url``; None for the configuration's
        """
        parsed = oslo_messaging.TransportURL.parse(conf, url)
        return cls(conf, parsed) if parsed.transport in _DRIVERS and parsed.hosts else None

    def compare(self, exchange: str, topics: Sequence[str], queues: Sequence[str] = ()) -> None:
        """See whether our exchanges and queues are as this process would declare them.

        Those that are missing are left to oslo.messaging.

        :param exchange: name of the one of all topics
        :param topics: that have one for messages to all of their listeners
        :param queues: names of those that this process is about to declare
        :raises Differs: if one of them is not
        :raises BrokerUnavailable: when no host answers
        """
        durable = self._flag('amqp_durable_queues') or self._flag('rabbit_quorum_queue')
        options = 'amqp_durable_queues, rabbit_quorum_queue and amqp_auto_delete'
        self._compare(exchange, 'topic', options, durable=durable,
                      auto_delete=self._flag('amqp_auto_delete'))
        for topic in topics:
            self._compare(f'{topic}_fanout', 'fanout',
                          'rabbit_transient_quorum_queue and rabbit_stream_fanout',
                          durable=self._flag('rabbit_transient_quorum_queue')
                          or self._flag('rabbit_stream_fanout'), auto_delete=True)
        kind = {'x-queue-type': 'quorum'} if self._flag('rabbit_quorum_queue') else {}
        for name in queues:
            self._compare_queue(name, options, durable=durable, arguments=kind,
                                auto_delete=self._flag('amqp_auto_delete'))

    def lead(self, source: str, exchange: str, key: str) -> None:
        """Have what is published to an exchange reach another one; that it did is no error.

        :param source: name of the first, and ``exchange``, of the second; neither is made
        :param key: routing key of what is wanted
        :raises ExchangeMissing: naming the exchange
        :raises BrokerUnavailable: when no host answers
        """
        for name in (source, exchange):
            if not self._exists(name):
                raise ExchangeMissing(f'the message broker has no exchange {name}')
        self._do(lambda channel: channel.exchange_bind(exchange, source, key))

    def size(self, queue: str) -> tuple[int, int] | None:
        """Return how many messages and consumers a queue has, None where there is none.

        :raises BrokerUnavailable: when no host answers
        """
        found: list[tuple[int, int]] = []

        def work(channel: Any) -> None:
            declared = channel.queue_declare(queue, passive=True)
            found.append((declared.message_count, declared.consumer_count))
        try:
            self._do(work)
        except amqp.NotFound:
            return None
        return found[0]

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                connection.close()
            except (*connection.connection_errors, *connection.channel_errors):
                return

    def _compare(self, name: str, kind: str, options: str, **wanted: bool) -> None:
        if not self._exists(name):
            return
        try:
            self._do(lambda channel: channel.exchange_declare(name, kind, **wanted))
        except amqp.PreconditionFailed as error:
            raise ExchangeDiffers(f'exchange {name}', options, str(error.reply_text)) from None

    def _compare_queue(self, name: str, options: str, **wanted: Any) -> None:
        try:
            self._do(lambda channel: channel.queue_declare(name, passive=True))
        except amqp.NotFound:
            return
        try:
            self._do(lambda channel: channel.queue_declare(name, **wanted))
        except amqp.PreconditionFailed as error:
            # What else oslo.messaging gives a queue is not of interest.
            reason = str(error.reply_text)
            if any(f"'{one}'" in reason for one in ('durable', 'auto_delete', 'x-queue-type')):
                raise ExchangeDiffers(f'queue {name}', options, reason) from None

    def _exists(self, name: str) -> bool:
        try:
            self._do(lambda channel: channel.exchange_declare(name, 'topic', passive=True))
        except amqp.NotFound:
            return False
        return True

    def _do(self, work: Callable[[Any], object]) -> None:
        """Do something with a channel; an error closes it, so that each has its own."""
        if self._connection is None:
            self._connection = self._connect()
        connection = self._connection
        try:
            with connection.channel() as channel:
                work(channel)
        except (amqp.NotFound, amqp.PreconditionFailed):
            raise
        except connection.channel_errors as error:
            raise BrokerUnavailable(f'the message broker refuses what is asked of it ({error}): '
                                    'see what its user may do, and who else uses it') from None
        except (*connection.connection_errors, OSError) as error:
            self.close()
            raise BrokerUnavailable(f'the message broker does not answer any more '
                                    f'({type(error).__name__}: {error})') from None

    def _connect(self) -> Any:
        reason = 'it has no hosts'
        for host in random.sample(self._url.hosts, len(self._url.hosts)):
            connection = kombu.Connection(
                hostname=host.hostname, port=host.port, userid=host.username,
                password=host.password, virtual_host=self._url.virtual_host or '/',
                transport='pyamqp', ssl=self._tls(host.hostname), connect_timeout=_CONNECT,
                login_method=self._value('rabbit_login_method'),
                transport_options={'read_timeout': _ANSWER, 'write_timeout': _ANSWER})
            try:
                connection.connect()
            except (*connection.connection_errors, *connection.channel_errors, OSError) as error:
                reason = f'{host.hostname}: {type(error).__name__}: {error}'
                if self._flag('ssl'):
                    reason += (f'; [{_GROUP}] ssl is true, and ssl_ca_file is '
                               f'{self._value("ssl_ca_file") or "not set"}')
                continue
            return connection
        raise BrokerUnavailable(f'the message broker cannot be reached ({reason})')

    def _tls(self, host: str) -> Any:
        if not self._flag('ssl'):
            return False
        found: dict[str, Any] = {}
        for name, option in (('keyfile', 'ssl_key_file'), ('certfile', 'ssl_cert_file'),
                             ('ca_certs', 'ssl_ca_file')):
            if self._value(option):
                found[name] = self._value(option)
        if 'ca_certs' in found:
            found['cert_reqs'] = ssl.CERT_REQUIRED
            found['server_hostname'] = host
        return found or True

    def _flag(self, name: str) -> bool:
        return strutils.bool_from_string(self._value(name))

    def _value(self, name: str) -> Any:
        """Return an option; the URL's query comes before the configuration."""
        return self._url.query.get(name, self._conf[_GROUP].get(name))
