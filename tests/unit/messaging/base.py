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

"""Engines and listeners in one process, on oslo.messaging's driver for tests."""

import logging
import time
import unittest
from unittest import mock

from oslo_config import cfg

from tests.unit import brokers
from tracon_watcher.messaging import engine_client
from tracon_watcher.messaging import protocol
from tracon_watcher.messaging import publisher
from tracon_watcher.messaging import subscriber

LOG = logging.getLogger('messaging')


class Listener(subscriber.Subscriber):
    """Remembers what it was given."""

    def __init__(self, connect, name='listener', **options):
        self.taken = []
        self.reports = []
        self.times_mended = 0
        super().__init__(connect, name, self.taken.append, self.reports.append, self._count,
                         **options)

    def _count(self):
        self.times_mended += 1

    def identities(self):
        """Return epoch and version of each snapshot."""
        return [one.identity for one in self.taken]


class MessagingCase(unittest.TestCase):
    """Makes engines and listeners, and ends them."""

    url = 'fake://'
    #: Seconds to wait for an answer.
    timeout = 120.0

    def setUp(self):
        super().setUp()
        broker = brokers.of_its_own()
        broker.start()
        self.addCleanup(broker.stop)
        self.enterContext(self.waiting(self.timeout))
        self.decisions = []
        self.settled = []
        self.listeners = []

    def transport(self):
        """Return a transport."""
        return protocol.connector(cfg.CONF, self.url)()

    def engine(self, name='engine', start=True, **options):
        """Return a publisher that serves, unless said otherwise."""
        made = publisher.Publisher(self.transport, name, self.decisions.extend,
                                   self.settled.extend, LOG, **options)
        if start:
            made.start()
            self.addCleanup(made.stop)
            self.wait_for(lambda: made._transport is not None)
        return made

    def listener(self, start=True, **options):
        """Return a subscriber that listens already, unless said otherwise."""
        made = Listener(self.transport, **{'period': 0.5, **options})
        self.listeners.append(made)
        self.addCleanup(made.stop)
        if start:
            made.start()
            self.wait_for(lambda: made._session._link is not None)
        return made

    @staticmethod
    def waiting(seconds):
        """Return a patch under which those who begin wait for answers for so long."""
        return mock.patch.object(engine_client.EngineClient.__init__, '__defaults__', (seconds,))

    @staticmethod
    def ask(listener, timeout=None):
        """Have a listener ask the engine now, and wait for its answer for so long from now on."""
        session = listener._session
        if timeout is not None:
            session._link._timeout = timeout
        session._look_at = 0.0
        session.wanted.set()

    def said(self):
        """Return what the listeners have reported."""
        return [one.reports for one in self.listeners]

    def wait_for(self, condition, seconds=120.0):
        """Wait until ``condition()`` holds."""
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, f'waited in vain: {self.said()}')
            time.sleep(0.01)
