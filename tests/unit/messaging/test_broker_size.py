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

"""How many messages and consumers a queue of the message broker has."""

import collections
import contextlib
import unittest

import amqp

from tracon_watcher.messaging import broker

Declared = collections.namedtuple('Declared', 'queue message_count consumer_count')


class Connection:
    """Stands for kombu's; it has one queue, and lets none be made."""

    channel_errors = (amqp.ChannelError,)
    connection_errors = (amqp.ConnectionError,)

    @contextlib.contextmanager
    def channel(self):
        yield self

    def queue_declare(self, queue, passive=False):
        assert passive
        if queue != 'there':
            raise amqp.NotFound('no queue')
        return Declared(queue, 7, 2)


class TestSize(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.broker = broker.Broker(None, None)
        self.broker._connection = Connection()

    def test_of_a_queue(self):
        self.assertEqual((7, 2), self.broker.size('there'))

    def test_of_none(self):
        self.assertIsNone(self.broker.size('elsewhere'))
