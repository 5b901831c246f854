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

"""The whole path through RabbitMQ, and what happens when a part of it fails."""

import dataclasses
import logging
import re
import signal
import time

import numpy as np

from tests.functional.publication import base
from tests.unit.messaging import test_exchange
from tests.unit.placement import snapshots
from tracon_lab.cmd import bench_cluster
from tracon_watcher.background import episode_outbox
from tracon_watcher.background import regulator
from tracon_watcher.messaging import engine_client
from tracon_watcher.messaging import protocol
from tracon_watcher.placement import snapshot

VM = test_exchange.VM
state = test_exchange.state


class PathTest(base.RabbitCase):

    def test_snapshots_one_way_and_decisions_the_other(self):
        engine, listener = self.engine(), self.listener()
        engine.publish(state((1, 1)))
        self.wait_for(lambda: listener.taken)
        for version in range(2, 5):
            engine.publish(state((1, version), b1=version * VM))
        self.wait_for(lambda: listener.identities()[-1] == (1, 4))
        snapshots.same(self, state((1, 4), b1=4 * VM), listener.current)
        self.assertEqual(1, engine.statistics()['chunk'])
        listener.post(protocol.RECORD_DECISIONS, {'n': 1})
        listener.post(protocol.SETTLED, {'n': 2})
        self.wait_for(lambda: self.settled)
        self.assertEqual(([{'n': 1}], [{'n': 2}]), (self.decisions, self.settled))

    def test_nothing_but_the_interface_can_be_called(self):
        self.engine()
        client = engine_client.EngineClient(self.transport(), 10.0)
        with self.assertLogs('oslo_messaging', logging.ERROR):
            for method in ('listeners', 'counts', '__init__', '_count'):
                with self.assertRaises(engine_client.EngineRefused):
                    client._call(None, method)

    def test_two_engines_that_believe_they_lead(self):
        first, second = self.engine('first'), self.engine('second')
        first.publish(state((1, 70)))
        second.publish(state((2, 1)))
        several = [self.listener(name=f'listener{index}', period=0.5) for index in range(2)]
        for listener in several:
            self.wait_for(lambda listener=listener: listener.current is not None
                          and listener.current.epoch == 2)
            listener.taken.clear()
        for version in range(71, 90):
            first.publish(state((1, version), a1=3 * VM))
            if version % 6 == 0:
                second.publish(state((2, version), b1=version * VM))
            time.sleep(0.1)
        for listener in several:
            self.wait_for(lambda listener=listener: listener.current.identity == (2, 84))
            self.assertEqual({2}, {epoch for epoch, _version in listener.identities()})
            snapshots.same(self, state((2, 84), b1=84 * VM), listener.current)


class LargeTest(base.RabbitCase):
    """A cloud of 10,000 hosts; the broker takes no message of more than 1 MiB."""

    timeout = 60.0

    def test_the_whole_and_a_delta_of_everything(self):
        cluster = bench_cluster.build(10000, 20, 0.1)
        first = snapshot.Snapshot(cluster, 900.0, 4)
        second = dataclasses.replace(first, cluster=dataclasses.replace(
            cluster, version=2, profiles=np.round(cluster.profiles * 0.5, 3)))
        engine = self.engine()
        engine.publish(first)
        listener = self.listener(period=30.0)
        self.wait_for(lambda: listener.taken, 120)
        self.assertGreater(engine.statistics()['chunk'], 5)
        np.testing.assert_array_equal(first.cluster.profiles, listener.current.cluster.profiles)
        engine.publish(second)
        self.wait_for(lambda: len(listener.taken) == 2, 120)
        self.assertGreater(engine.statistics()['delta'], 2)
        snapshots.same(self, second, listener.current)
        self.assertEqual([], listener.reports)


class RestartTest(base.RabbitCase):

    def test_the_broker_is_restarted(self):
        engine = self.engine()
        engine.publish(state((1, 1)))
        # Asking sooner, it would report that there is no snapshot yet.
        listener = self.listener()
        self.wait_for(lambda: listener.taken)
        self.rabbit.stop(signal.SIGKILL)
        self.wait_for(lambda: listener.reports, 60)
        self.assertRegex(listener.reports[0], 'broker cannot be reached|has answered')
        engine.publish(state((1, 2), b1=2 * VM))
        listener.post(protocol.SETTLED, {'n': 1})
        time.sleep(5)
        # However long it lasts.
        self.assertEqual(1, len(listener.reports), listener.reports)
        self.rabbit.start()
        self.wait_for(lambda: listener.current.version == 2, 90)
        self.wait_for(lambda: self.settled, 60)
        # Announcements come again, not only answers to questions.
        self.wait_for(lambda: self.announced(engine, listener), 60)

    @staticmethod
    def announced(engine, listener):
        """Publish; return whether that was taken without asking."""
        asked = engine.statistics()['head']
        identity = (1, engine._shelf.current.version + 1)
        engine.publish(state(identity, b1=identity[1] * VM))
        time.sleep(0.3)
        return listener.current.identity == identity and engine.statistics()['head'] == asked


class EpisodesTest(base.RabbitCase):

    def test_a_daemon_tells_of_episodes_when_the_broker_is_back(self):
        told = []
        self.engine(on_moves=told.extend)
        one = episode_outbox.EpisodeOutbox(self.transport(), 'h1')
        one.take({'pause': regulator.Episode(3)})
        self.assertTrue(one.tell())
        self.assertEqual(['pause'], [each['resource'] for each in told])
        self.rabbit.stop(signal.SIGKILL)
        one.take({'pause': regulator.Episode(3), 'cores': regulator.Episode(3)})
        with self.assertLogs('tracon_watcher.background.episode_outbox', 'INFO') as logged:
            for _time in range(2):
                self.assertFalse(one.tell())
            self.assertEqual(1, len(logged.output), logged.output)
            self.rabbit.start()
            self.wait_for(one.tell)
        self.assertEqual(2, len(logged.output), logged.output)
        self.assertEqual({'pause', 'cores'}, {each['resource'] for each in told})


class KillTest(base.RabbitCase):

    def test_an_engine_is_killed_and_another_takes_over(self):
        process, output = self.process('engine_process', 1, 'small')
        listener = self.listener()
        self.wait_for(lambda: listener.current and listener.current.version > 3, 60)
        process.send_signal(signal.SIGKILL)
        process.wait()
        kept = listener.current
        self.wait_for(lambda: listener.reports, 60)
        self.assertIn('no tracon-engine has answered', listener.reports[-1])
        listener.post(protocol.SETTLED, {'n': 1})
        self.assertIs(kept, listener.current)
        _process, output = self.process('engine_process', 2, 'small')
        self.wait_for(lambda: listener.current.epoch == 2, 90)
        self.wait_for(lambda: 'settled 1' in output(), 30)
        self.assertEqual((1, 1), (len(listener.reports), listener.times_mended))

    def test_an_engine_dies_in_the_middle_of_a_fetch(self):
        process, output = self.process('engine_process', 1, 'dying')
        listener = self.listener()
        self.wait_for(lambda: 'dies' in output(), 60)
        self.assertEqual(9, process.wait())
        self.assertIsNone(listener.current)
        self.process('engine_process', 2, 'large')
        self.wait_for(lambda: listener.current is not None, 90)
        snapshots.same(self, test_exchange.large((2, 1), 1), listener.current)


class ProcessTest(base.RabbitCase):

    def test_children_of_a_listener(self):
        self.process('engine_process', 1, 'small')
        process, output = self.process('fork_process')
        self.assertEqual(0, process.wait(120), output())
        for said in ('child first', 'child second', 'codes [0, 0]'):
            self.assertIn(said, output())

    def judged(self, backend, disabled):
        cluster = bench_cluster.build(2500, 20, 0.1)
        cluster = dataclasses.replace(cluster, hosts=(
            'host0', 'host1', *cluster.hosts[2:]))
        content = snapshot.Snapshot(cluster, 900.0, 4)
        engine = self.engine()
        engine.publish(content)
        process, output = self.process('nova_process', backend,
                                       OS_NOVA_DISABLE_EVENTLET_PATCHING=disabled)
        self.wait_for(lambda: 'judged 1' in output() or process.poll() is not None, 120)
        engine.publish(dataclasses.replace(content, cluster=dataclasses.replace(
            cluster, version=2, profiles=np.round(cluster.profiles, 1))))
        self.assertEqual(0, process.wait(120), output())
        self.assertIn('judged 1 50000 2', output())
        self.assertIn('judged 2 50000', output())
        # What it decided, and that this VM was given to host0.
        self.assertEqual([4, 1], self.decisions[0]['snapshot'])
        self.assertIn('host0', [one['chosen'] for one in self.settled])
        found = re.search(
            r'executor (\w+) eventlet (\w+) longest ([\d.]+) held up ([\d.]+)', output())
        self.assertIsNotNone(found, output())
        # Others go on while 50,000 VMs are read.
        self.assertLess(float(found[4]), 0.7 * float(found[3]), output())
        return found[1], found[2]

    def test_nova_with_threads(self):
        self.assertEqual('threading', self.judged('threading', 'true')[0])

    def test_nova_with_eventlet(self):
        self.assertEqual(('eventlet', 'True'), self.judged('eventlet', 'false'))
