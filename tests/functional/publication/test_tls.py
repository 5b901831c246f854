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

"""Snapshots through a RabbitMQ that speaks TLS and asks its clients for certificates."""

import logging
import pathlib
import tempfile
import time
import unittest

from oslo_config import cfg
from oslo_messaging import conffixture

from tests.functional import authority
from tests.functional import messaging
from tests.unit.messaging import test_exchange
from tracon_watcher.messaging import broker
from tracon_watcher.messaging import protocol
from tracon_watcher.messaging import publisher
from tracon_watcher.messaging import subscriber


class TLSTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if messaging.missing():
            raise unittest.SkipTest(messaging.missing())
        folder = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.known = authority.Authority(folder / 'known')
        cls.unknown = authority.Authority(folder / 'unknown')
        cls.rabbit = messaging.RabbitMQ(authority=cls.known)
        cls.rabbit.setUp()
        cls.addClassCleanup(cls.rabbit.cleanUp)

    def connector(self, ca, own):
        """Return what makes transports.

        :param ca: whose authority is trusted
        :param own: whose certificate is shown; None: none
        """
        conf = cfg.ConfigOpts()
        conf([])
        fixture = conffixture.ConfFixture(conf)
        fixture.setUp()
        self.addCleanup(fixture.cleanUp)
        fixture.transport_url = self.rabbit.tls_url
        given = {'ssl': True, 'ssl_ca_file': ca.ca}
        if own is not None:
            given |= {'ssl_cert_file': own.certificate, 'ssl_key_file': own.key}
        for name, value in {**given, 'rabbit_quorum_queue': True,
                            'rabbit_transient_quorum_queue': True}.items():
            conf.set_override(name, value, 'oslo_messaging_rabbit')
        return protocol.connector(conf)

    def listen(self, connect):
        """Return what is taken, and what is reported."""
        taken, reports = [], []
        made = subscriber.Subscriber(connect, 'scheduler', taken.append, reports.append,
                                     period=1.0)
        made.start()
        self.addCleanup(made.stop)
        return taken, reports

    def wait_for(self, condition):
        end = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), end, 'waited in vain')
            time.sleep(0.05)

    def test_snapshots_come(self):
        connect = self.connector(self.known, self.known)
        engine = publisher.Publisher(connect, 'one', list, list, logging.getLogger(__name__))
        engine.start()
        self.addCleanup(engine.stop)
        taken, reports = self.listen(connect)
        engine.publish(test_exchange.state((1, 1)))
        self.wait_for(lambda: taken)
        self.assertEqual((1, 1), taken[0].identity)
        listed = self.rabbit.control('list_connections', '-q', 'ssl')
        self.assertIn('true', listed)
        self.assertNotIn('false', listed)

    def test_another_authority_is_named_with_its_option_and_once(self):
        taken, reports = self.listen(self.connector(self.unknown, self.known))
        self.wait_for(lambda: reports)
        # It is tried again meanwhile, and not said again.
        time.sleep(5)
        self.assertEqual((1, []), (len(reports), taken))
        self.assertRegex(reports[0], 'certificate verify failed')

    def test_our_own_connection_takes_the_same_options(self):
        for ca, own, works in ((self.known, self.known, True), (self.unknown, self.known, False),
                               (self.known, self.unknown, False), (self.known, None, False)):
            with self.subTest(ca=ca.ca, own=own and own.certificate):
                found = broker.Broker.of(self.connector(ca, own)._conf)
                self.addCleanup(found.close)
                if works:
                    found.compare(protocol.EXCHANGE, ())
                    continue
                with self.assertRaisesRegex(broker.BrokerUnavailable, 'ssl') as caught:
                    found.compare(protocol.EXCHANGE, ())
                self.assertNotIn('secret', str(caught.exception))
