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

"""A service of Nova's and an engine that hears it, on a RabbitMQ of the tests' own."""

import time
import unittest
import uuid

from oslo_config import cfg
import oslo_messaging
from oslo_messaging import conffixture

from tests.functional import messaging
from tests.unit.engine import test_notifications
from tracon_watcher.engine import inventory_cache
from tracon_watcher.engine import listener
from tracon_watcher.inventory import cloud
from tracon_watcher.messaging import nova

QUORUM = {'rabbit_quorum_queue': True, 'rabbit_transient_quorum_queue': True}


class Conductor:
    """Answers as one of Nova's services does."""

    @oslo_messaging.expose
    def ping(self, _context):
        return 'pong'


class ExchangesCase(unittest.TestCase):
    """A broker for all tests of the class, and on it a virtual host for each."""

    kind = messaging.RabbitMQ

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.rabbit = messaging.of_class(cls, cls.kind)

    def setUp(self):
        super().setUp()
        # A virtual host of its own is a broker that was reset.
        self.host = uuid.uuid4().hex
        self.rabbit.control('add_vhost', self.host)
        self.addCleanup(self.rabbit.control, 'delete_vhost', self.host)
        self.rabbit.control('set_permissions', '-p', self.host, 'tests', '.*', '.*', '.*')
        self.url = self.rabbit.url + self.host

    def conf(self, **options):
        conf = cfg.ConfigOpts()
        conf([])
        # oslo.messaging registers some of its options for no configuration but the global one.
        fixture = conffixture.ConfFixture(conf)
        fixture.setUp()
        self.addCleanup(fixture.cleanUp)
        fixture.transport_url = self.url
        for name, value in options.items():
            conf.set_override(name, value, 'oslo_messaging_rabbit')
        return conf

    def wait_for(self, condition, seconds=60.0):
        deadline = time.monotonic() + seconds
        while not (found := condition()):
            self.assertLess(time.monotonic(), deadline, 'waited in vain')
            time.sleep(0.05)
        return found

    def nova(self, **options):
        """Start a service of Nova's; return what asks it, and what publishes for it."""
        conf = self.conf(**options)
        transport = oslo_messaging.get_rpc_transport(conf)
        self.addCleanup(transport.cleanup)
        target = oslo_messaging.Target(exchange='nova', topic='conductor', server='one')
        server = oslo_messaging.get_rpc_server(transport, target, [Conductor()])
        server.start()
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)
        conf.set_override('control_exchange', 'nova')
        notifying = oslo_messaging.get_notification_transport(conf)
        self.addCleanup(notifying.cleanup)
        notifier = oslo_messaging.Notifier(notifying, 'nova-compute:h1', driver='messagingv2',
                                           topics=[nova.TOPIC], retry=2)
        return oslo_messaging.get_rpc_client(transport, oslo_messaging.Target(
            exchange='nova', topic='conductor'), timeout=20), notifier

    def listen(self, **options):
        """Have an engine listen; return it, and what it hears."""
        heard = inventory_cache.InventoryCache()
        heard.replace(cloud.Inventory({}, {}, (), {}, 0.0))
        conf = self.conf(**options)
        self.trigger = listener.AuditTrigger(lambda: None)
        made = listener.Listening(lambda: nova.Listener(conf, listener.Endpoint(
            heard, lambda event, error: self.fail(str(error)), trigger=self.trigger)))
        made.start()
        self.addCleanup(made.stop)
        return made, heard

    def exchanges(self):
        listed = self.rabbit.control('list_exchanges', '-p', self.host, '-q', 'name', 'durable')
        return dict(line.split('\t') for line in listed.splitlines() if not line.startswith(
            ('\t', 'name', 'amq.')))

    def assert_nova_works(self, client):
        self.assertEqual('pong', client.call({}, 'ping'))

    def assert_heard(self, made, heard, notifier):
        def arrived():
            try:
                made.check()
            except listener.NotListening:
                return False
            notifier.info({}, 'instance.create.end', {'nova_object.data': {
                'uuid': 'a', 'host': 'h1', 'image_uuid': 'i', 'state': 'active'}})
            notifier.error({}, test_notifications.BUILD_FAILED,
                           {'nova_object.data': test_notifications.build()})
            return 'a' in heard.current().servers and self.trigger.wanted.is_set()
        self.wait_for(arrived)
