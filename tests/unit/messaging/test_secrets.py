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

"""The password of a message broker is in no log line and in no error."""

import logging
import socket
import unittest

from oslo_config import cfg

from tracon_watcher import errors
from tracon_watcher.messaging import engine_client
from tracon_watcher.messaging import protocol

PASSWORD = 'pa55-of-the-broker'


class TestSecrets(unittest.TestCase):

    def setUp(self):
        self.records = []
        handler = logging.Handler()
        handler.emit = lambda record: self.records.append(
            record.getMessage() + str(record.exc_info or ''))
        root = logging.getLogger()
        before = root.level
        root.addHandler(handler)
        root.setLevel(logging.DEBUG)
        self.addCleanup(root.setLevel, before)
        self.addCleanup(root.removeHandler, handler)

    def test_a_broker_that_is_not_there(self):
        with socket.socket() as taken:
            # Bound and not listening: every call is refused.
            taken.bind(('127.0.0.1', 0))
            port = taken.getsockname()[1]
            # Some of the driver's options are in no other.
            cfg.CONF([], project='tracon-tests')
            self.addCleanup(cfg.CONF.reset)
            url = f'rabbit://tracon:{PASSWORD}@127.0.0.1:{port}/'
            transport = protocol.connector(cfg.CONF, url)()
            self.addCleanup(transport.cleanup)
            with self.assertRaises(engine_client.EngineUnavailable) as caught:
                engine_client.EngineClient(transport, 2.0).hello('tests')
        self.assertNotIn(PASSWORD, str(caught.exception))
        # It was tried, and told of.
        self.assertTrue(any(str(port) in text for text in self.records), self.records)
        for text in self.records:
            self.assertNotIn(PASSWORD, text)

    def test_an_address_that_is_none(self):
        conf = cfg.ConfigOpts()
        conf([])
        with self.assertRaises(errors.InvalidOption) as caught:
            protocol.connector(conf, f'no-such-driver://tracon:{PASSWORD}@host/')()
        self.assertNotIn(PASSWORD, str(caught.exception))
        self.assertIn('transport_url', str(caught.exception))
