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


"""A RabbitMQ of three nodes, of which one after the other is killed and comes back."""

import logging
import signal
import time

from tests.functional import messaging
from tests.functional.publication import exchanges_case
from tests.unit.messaging import test_exchange
from tracon_watcher.inventory import cloud
from tracon_watcher.messaging import protocol
from tracon_watcher.messaging import publisher
from tracon_watcher.messaging import subscriber

_VM = test_exchange.VM
_ADMIN = ('-q', '--no-table-headers')


class ClusterTest(exchanges_case.ExchangesCase):
    """Quorum queues, as OpenStack's deployments have them."""

    kind = messaging.RabbitCluster

    def setUp(self):
        super().setUp()
        self.decisions, self.taken, self.reports = [], [[], []], []
        connect = protocol.connector(self.conf(**exchanges_case.QUORUM), self.url)
        self.engine = publisher.Publisher(connect, 'one', self.decisions.extend, list,
                                          logging.getLogger(__name__))
        self.engine.start()
        self.addCleanup(self.engine.stop)
        self.listeners = [subscriber.Subscriber(connect, f'scheduler-{number}', taken.append,
                                                self.reports.append, period=2.0)
                          for number, taken in enumerate(self.taken)]
        for one in self.listeners:
            one.start()
            self.addCleanup(one.stop)

    def assert_published(self, version):
        """Publish; both listeners get it."""
        self.engine.publish(test_exchange.state((1, version), b1=version * _VM))
        self.wait_for(lambda: all(taken and taken[-1].identity == (1, version)
                                  for taken in self.taken), 90)

    def replicas(self):
        """Return how many replicas each quorum queue has that answer."""
        listed = self.rabbit.control('list_queues', '-p', self.host, *_ADMIN, 'name', 'type',
                                     'online')
        return {name: online.count('tests') for name, kind, online in (
            line.split('\t') for line in listed.splitlines()) if kind == 'quorum'}

    def test_each_node_is_killed_and_comes_back(self):
        client, notifier = self.nova(**exchanges_case.QUORUM)
        made, heard = self.listen(**exchanges_case.QUORUM)
        self.assert_heard(made, heard, notifier)
        self.assert_published(1)
        self.assertEqual(3, self.replicas()['tracon-engine'])
        for number, node in enumerate(self.rabbit.nodes, start=1):
            node.stop(signal.SIGKILL)
            self.assert_published(2 * number)
            self.listeners[0].post(protocol.RECORD_DECISIONS, {'n': number})
            self.wait_for(lambda number=number: {'n': number} in self.decisions, 90)
            heard.replace(cloud.Inventory({}, {}, (), {}, time.time()))
            self.assert_heard(made, heard, notifier)
            self.assert_nova_works(client)
            node.start()
            self.wait_for(lambda: set(self.replicas().values()) == {3})
            self.assert_published(2 * number + 1)
        self.assertLessEqual(len(self.reports), 6, self.reports)

    def test_two_nodes_are_killed_and_nothing_that_was_posted_is_lost(self):
        self.assert_published(1)
        self.wait_for(lambda: self.replicas().get('tracon-engine') == 3)
        for node in self.rabbit.nodes[1:]:
            node.stop(signal.SIGKILL)
        self.engine.publish(test_exchange.state((1, 2), b1=2 * _VM))
        for number in range(10):
            self.listeners[number % 2].post(protocol.RECORD_DECISIONS, {'n': number})
        self.wait_for(lambda: self.reports, 90)
        for node in self.rabbit.nodes[1:]:
            node.start()
        self.wait_for(lambda: all(taken[-1].identity == (1, 2) for taken in self.taken), 120)
        self.wait_for(lambda: len({one['n'] for one in self.decisions}) == 10, 120)
        self.assertLessEqual(len(self.reports), 4, self.reports)
