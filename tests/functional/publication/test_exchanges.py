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

"""Exchanges of a real RabbitMQ that Nova and the product want by the same, or by other options."""

import logging
import time

import amqp
import kombu

from tests.functional import ports
from tests.functional.publication import exchanges_case
from tests.unit.messaging import test_exchange
from tests.unit.placement import snapshots
from tracon_watcher.engine import listener
from tracon_watcher.inventory import cloud
from tracon_watcher.messaging import broker
from tracon_watcher.messaging import nova
from tracon_watcher.messaging import protocol
from tracon_watcher.messaging import publisher
from tracon_watcher.messaging import subscriber

NONE = {'rabbit_quorum_queue': False, 'amqp_durable_queues': False,
        'rabbit_transient_quorum_queue': False}


class ExchangesTest(exchanges_case.ExchangesCase):

    def test_an_engine_that_comes_first_leaves_novas_exchange_to_nova(self):
        for options in ({}, exchanges_case.QUORUM):
            with self.subTest(options):
                self.setUp()
                # As in tracon.conf without that group, whatever nova.conf has.
                made, heard = self.listen()
                self.wait_for(lambda made=made: made._listener is not None)
                with self.assertRaisesRegex(listener.NotListening,
                                            'no exchange nova; .* nova_exchange'):
                    made.check()
                self.assertNotIn('nova', self.exchanges())
                client, notifier = self.nova(**options)
                self.assert_nova_works(client)
                self.assertEqual('true' if options else 'false', self.exchanges()['nova'])
                # And it hears Nova, by whatever options.
                self.assert_heard(made, heard, notifier)
                self.doCleanups()

    def test_one_that_comes_later_hears_too_and_hears_again_after_a_loss(self):
        client, notifier = self.nova(**exchanges_case.QUORUM)
        made, heard = self.listen(**exchanges_case.QUORUM)
        self.assert_heard(made, heard, notifier)
        with kombu.Connection(self.url.replace('rabbit', 'amqp', 1)) as connection:
            connection.channel().exchange_unbind(
                protocol.EXCHANGE, 'nova', f'{nova.TOPIC}.info')
        heard.replace(cloud.Inventory({}, {}, (), {}, time.time()))
        self.assert_heard(made, heard, notifier)
        self.assert_nova_works(client)

    def test_engine_and_scheduler_with_other_options_say_which(self):
        taken, reports = [], []
        engine = publisher.Publisher(protocol.connector(self.conf(**NONE), self.url), 'one', list,
                                     list, logging.getLogger(__name__))
        engine.start()
        self.addCleanup(engine.stop)
        self.wait_for(lambda: 'tracon' in self.exchanges())
        engine.publish(test_exchange.state((1, 1)))

        def listener(options):
            made = subscriber.Subscriber(
                protocol.connector(self.conf(**options), self.url), 'scheduler', taken.append,
                reports.append, period=1.0)
            made.start()
            self.addCleanup(made.stop)
        with self.assertNoLogs('oslo_messaging', 'ERROR'):
            listener(exchanges_case.QUORUM)
            said = self.wait_for(lambda: reports)
        self.assertRegex(said[0], r'exchange tracon.* differs from what \[oslo_messaging_rabbit\] '
                                  r'.*rabbit_.*quorum_queue.*nova.conf')
        self.assertEqual([], taken)
        # It is said once.
        time.sleep(3)
        self.assertEqual(1, len(said))
        listener(NONE)
        self.wait_for(lambda: taken)
        snapshots.same(self, test_exchange.state((1, 1)), taken[0])

    def test_queues_of_another_type_are_named_and_no_log_is_flooded(self):
        durable = {'amqp_durable_queues': True}
        for name, start in (('tracon-snapshots', self.subscriber), ('tracon-notifications', None)):
            with self.subTest(name):
                with kombu.Connection(self.url.replace('rabbit', 'amqp', 1)) as connection:
                    connection.channel().queue_declare(
                        name, durable=True, auto_delete=False,
                        arguments={'x-queue-type': 'quorum'})
                with self.assertNoLogs('oslo_messaging', 'ERROR'):
                    if start is None:
                        made, _heard = self.listen(**durable)
                        self.wait_for(lambda made=made: made._reason)
                        with self.assertRaises(listener.NotListening) as caught:
                            made.check()
                        said = str(caught.exception)
                    else:
                        reports = start(durable)
                        said = self.wait_for(lambda reports=reports: reports)[0]
                    time.sleep(5)
                self.assertRegex(said, rf'queue {name} .*amqp_durable_queues.*x-queue-type')

    def subscriber(self, options):
        reports = []
        made = subscriber.Subscriber(
            protocol.connector(self.conf(**options), self.url), 'scheduler', lambda found: None,
            reports.append, period=1.0)
        made.start()
        self.addCleanup(made.stop)
        return reports

    def test_quorum_queues_on_both_sides(self):
        taken, reports = [], []
        connect = protocol.connector(self.conf(**exchanges_case.QUORUM), self.url)
        engine = publisher.Publisher(connect, 'one', list, list, logging.getLogger(__name__))
        engine.start()
        self.addCleanup(engine.stop)
        made = subscriber.Subscriber(connect, 'scheduler', taken.append, reports.append,
                                     period=1.0)
        made.start()
        self.addCleanup(made.stop)
        engine.publish(test_exchange.state((1, 1)))
        self.wait_for(lambda: taken)
        kinds = self.rabbit.control('list_queues', '-p', self.host, '-q', 'name', 'type')
        self.assertIn('tracon-engine\tquorum', kinds)

    def test_a_user_who_may_not_is_told_so(self):
        self.rabbit.control('add_user', 'guarded', 'secret')
        self.addCleanup(self.rabbit.control, 'delete_user', 'guarded')
        self.rabbit.control('set_permissions', '-p', self.host, 'guarded', '^$', '.*', '.*')
        connect = protocol.connector(self.conf(**exchanges_case.QUORUM), self.url)
        engine = publisher.Publisher(connect, 'one', list, list, logging.getLogger(__name__))
        engine.start()
        self.addCleanup(engine.stop)
        self.wait_for(lambda: 'tracon' in self.exchanges())
        found = broker.Broker.of(self.conf(**exchanges_case.QUORUM),
                                 self.url.replace('tests:secret', 'guarded:secret'))
        self.addCleanup(found.close)
        with self.assertRaisesRegex(broker.BrokerUnavailable, '(?s)refuses.*ACCESS_REFUSED.*may'):
            found.compare('tracon', ('tracon-engine',))

    def test_a_broker_that_does_not_answer_is_named_without_its_password(self):
        conf = self.conf()
        found = broker.Broker.of(conf, f'rabbit://tests:secret@127.0.0.1:{ports.free()}/')
        with self.assertRaisesRegex(broker.BrokerUnavailable, '127.0.0.1: .*refused') as caught:
            found.compare('tracon', ())
        self.assertNotIn('secret', str(caught.exception))
        self.assertIsNone(broker.Broker.of(conf, 'fake://'))
        # What is missing is not made.
        found = broker.Broker.of(conf, self.url)
        self.addCleanup(found.close)
        found.compare('tracon', ('x',))
        with self.assertRaises(broker.ExchangeMissing):
            found.lead('nova', 'tracon', 'key')
        self.assertEqual({}, self.exchanges())
        with self.assertRaises(amqp.NotFound):
            found._do(lambda channel: channel.exchange_declare('nova', 'topic', passive=True))
