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

"""An engine and who listens to it: nothing gets lost, and nothing old gets through."""

import copy
import logging
import math
import os
import threading
from unittest import mock

import numpy as np
import oslo_messaging

from tests.unit.messaging import base
from tests.unit.placement import snapshots
from tests.unit.placement import test_delta
from tracon_watcher.engine.storage import errors as storage_errors
from tracon_watcher import errors
from tracon_watcher.messaging import chunked_payload
from tracon_watcher.messaging import engine_client
from tracon_watcher.messaging import protocol
from tracon_watcher.messaging import subscriber
from tracon_watcher.placement import delta

VM = test_delta.VM
state = test_delta.state
#: Seconds without news after which an engine is asked, where it is asked by the test alone.
NEVER = 3600.0


def large(identity, seed):
    """Return a snapshot whose whole text takes several messages, and so do its deltas."""
    rng = np.random.default_rng(seed)
    return state(identity, hosts=tuple(f'host{index}' for index in range(2000)), vms=10, at=1.0,
                 **{f'host{index}{vm}': rng.uniform(0, 100, 4) for index in range(2000)
                    for vm in range(10)})


class FollowTest(base.MessagingCase):

    def test_first_the_whole_then_deltas(self):
        engine, listener = self.engine(), self.listener(period=NEVER)
        engine.publish(state((1, 1)))
        self.wait_for(lambda: listener.taken)
        for version in (2, 3):
            engine.publish(state((1, version), b1=version * VM))
        self.wait_for(lambda: listener.identities() == [(1, 1), (1, 2), (1, 3)])
        snapshots.same(self, state((1, 3), b1=3 * VM), listener.current)
        counts = engine.statistics()
        self.assertEqual((1, 0, 1), (counts['chunk'], counts['delta'], counts['listeners']))

    def test_who_comes_late_gets_the_whole(self):
        engine = self.engine()
        for version in range(1, 4):
            engine.publish(state((1, version), b1=version * VM))
        listener = self.listener()
        self.wait_for(lambda: listener.identities() == [(1, 3)])
        snapshots.same(self, state((1, 3), b1=3 * VM), listener.current)

    def test_an_announcement_that_was_lost_is_made_up_for_by_deltas(self):
        engine, listener = self.engine(), self.listener(period=NEVER)
        engine.publish(state((1, 1)))
        self.wait_for(lambda: listener.taken)
        with mock.patch.object(engine, '_announce', autospec=True):
            for version in (2, 3):
                engine.publish(state((1, version), b1=version * VM))
        self.ask(listener)
        self.wait_for(lambda: listener.identities()[-1] == (1, 3))
        snapshots.same(self, state((1, 3), b1=3 * VM), listener.current)
        self.assertEqual(1, engine.statistics()['chunk'])

    def test_an_announcement_that_starts_from_a_lost_one(self):
        engine, listener = self.engine(), self.listener(period=NEVER)
        engine.publish(state((1, 1)))
        self.wait_for(lambda: listener.taken)
        with mock.patch.object(engine, '_announce', autospec=True):
            engine.publish(state((1, 2), b1=2 * VM))
        engine.publish(state((1, 3), b1=3 * VM))
        self.wait_for(lambda: listener.identities()[-1] == (1, 3))
        self.assertEqual((1, 1), (engine.statistics()['chunk'], len(listener.taken) - 1))

    def test_too_many_deltas_are_no_shorter_way(self):
        engine, listener = self.engine(), self.listener(period=NEVER)
        engine.publish(state((1, 1)))
        self.wait_for(lambda: listener.taken)
        with mock.patch.object(engine, '_announce', autospec=True):
            for version in range(2, 12):
                engine.publish(state((1, version)))
        self.ask(listener)
        self.wait_for(lambda: listener.identities()[-1] == (1, 11))
        self.assertEqual(2, engine.statistics()['chunk'])

    def test_large_ones_come_in_pieces(self):
        engine, listener = self.engine(), self.listener(period=NEVER)
        engine.publish(large((1, 1), 1))
        self.wait_for(lambda: listener.taken)
        pieces = engine.statistics()['chunk']
        self.assertGreater(pieces, 1)
        engine.publish(large((1, 2), 2))
        self.wait_for(lambda: len(listener.taken) == 2)
        counts = engine.statistics()
        self.assertEqual(pieces, counts['chunk'])
        self.assertGreater(counts['delta'], 1)
        snapshots.same(self, large((1, 2), 2), listener.current)

    def test_a_fetch_is_finished_while_newer_ones_are_published(self):
        engine = self.engine()
        engine.publish(large((1, 1), 1))
        found = engine_client.EngineClient(self.transport())
        head = found.head('it', None)
        engine.publish(state((1, 2)))
        found.head('it', None)
        self.assertEqual(head.body.packed, len(found.body(head)))
        engine.publish(state((1, 3)))
        found.head('it', None)
        self.assertIsNone(found.body(head))

    def test_an_engine_without_a_snapshot_is_waited_for(self):
        engine, listener = self.engine(), self.listener()
        self.wait_for(lambda: listener.reports)
        self.assertIn('no snapshot yet', listener.reports[0])
        engine.publish(state((1, 1)))
        self.wait_for(lambda: listener.times_mended == 1)
        self.assertEqual((1, 1), (len(listener.reports), len(listener.taken)))

    def test_only_newer_ones_are_published(self):
        engine = self.engine(start=False)
        engine.publish(state((2, 5)))
        for identity in ((2, 5), (2, 4), (1, 6)):
            with self.assertRaisesRegex(errors.InvalidOption, 'newer than 2.5'):
                engine.publish(state(identity))

    def test_nothing_but_the_interface_can_be_called(self):
        engine = self.engine()
        client = engine_client.EngineClient(self.transport())
        self.assertEqual(0, engine.statistics()['listeners'])
        with self.assertLogs('oslo_messaging', logging.ERROR):
            for method in ('listeners', 'counts', '__init__', '_count'):
                with self.assertRaises(errors.TraconError):
                    client._call(None, method)


class LeadTest(base.MessagingCase):
    """Another engine takes the lead, or two believe that they have it."""

    def test_a_newer_epoch_wins_whatever_the_version(self):
        first, second = self.engine('first'), self.engine('second')
        listener = self.listener(period=NEVER)
        first.publish(state((1, 90)))
        self.wait_for(lambda: listener.identities() == [(1, 90)])
        second.publish(state((2, 1), b1=2 * VM))
        self.wait_for(lambda: listener.identities()[-1] == (2, 1))
        snapshots.same(self, state((2, 1), b1=2 * VM), listener.current)

    def test_an_older_epoch_is_passed_over(self):
        first, second = self.engine('first'), self.engine('second')
        first.publish(state((1, 0)))
        second.publish(state((2, 1)))
        listener = self.listener(period=NEVER)
        # Whom it asks at first is the broker's choice, but it hears both.
        self.wait_for(lambda: listener.current)
        second.publish(state((2, 2)))
        self.wait_for(lambda: listener.identities()[-1:] == [(2, 2)])
        listener.taken.clear()
        for version in range(3, 31):
            first.publish(state((1, version)))
            if version % 10 == 0:
                second.publish(state((2, version), b1=version * VM))
                self.wait_for(lambda version=version:
                              listener.identities()[-1:] == [(2, version)])
        self.assertEqual([(2, 10), (2, 20), (2, 30)], listener.identities())
        # It is asked, as no other is left, and its answer is passed over as well.
        asked = first.statistics()['head']
        second.stop()
        self.ask(listener)
        self.wait_for(lambda: first.statistics()['head'] > asked)
        self.wait_for(lambda: listener._session._look_at > 0)
        self.assertEqual((2, 30), listener.current.identity)
        self.assertEqual(3, len(listener.taken))
        self.assertEqual([], listener.reports)

    def test_that_only_an_older_one_is_left_is_said(self):
        first, second = self.engine('first'), self.engine('second')
        first.publish(state((1, 4)))
        second.publish(state((2, 1)))
        listener = self.listener(period=NEVER)
        self.wait_for(lambda: listener.current)
        second.publish(state((2, 2)))
        self.wait_for(lambda: listener.current.epoch == 2)
        second.stop()
        first.publish(state((1, 5)))
        # The leader has not been heard of for three periods.
        listener.period = 0.0
        self.ask(listener)
        self.wait_for(lambda: listener.reports)
        self.assertIn('epoch 1, which has lost the lead', listener.reports[0])
        self.assertEqual((2, 2), listener.current.identity)

    def test_an_engine_that_has_listened_hands_out_a_delta(self):
        first, listener = self.engine('first'), self.listener(period=NEVER)
        first.publish(state((1, 5)))
        self.wait_for(lambda: listener.taken)
        first.stop()
        second = self.engine('second', start=False)
        second.adopt(listener.current)
        second.start()
        self.addCleanup(second.stop)
        self.wait_for(lambda: second._transport is not None)
        second.publish(state((2, 6), b1=2 * VM))
        self.wait_for(lambda: listener.identities()[-1] == (2, 6))
        self.assertEqual(0, second.statistics()['chunk'])
        snapshots.same(self, state((2, 6), b1=2 * VM), listener.current)


class DamageTest(base.MessagingCase):
    """What is sent is not what it should be."""

    def setUp(self):
        super().setUp()
        self.publisher = self.engine()
        # First: a listener that asks before there is a snapshot reports that.
        self.publisher.publish(state((1, 1)))
        self.subscriber = self.listener(period=NEVER)
        self.wait_for(lambda: self.subscriber.taken)

    def announce(self, change):
        """Publish the next snapshot with a changed announcement."""
        real = self.publisher._announce

        def changed(content):
            content = copy.deepcopy(content)
            change(content)
            real(content)

        with mock.patch.object(self.publisher, '_announce', changed):
            self.publisher.publish(state((1, 2), b1=2 * VM))

    def test_a_damaged_delta_is_made_up_for_by_the_whole(self):
        def change(content):
            data = content['deltas'][0]['data']
            content['deltas'][0]['data'] = data[:40] + 'AAAA' + data[44:]
        self.announce(change)
        self.wait_for(lambda: len(self.subscriber.taken) == 2)
        self.assertIn('the whole snapshot is fetched', self.subscriber.reports[0])
        snapshots.same(self, state((1, 2), b1=2 * VM), self.subscriber.current)

    def test_an_announcement_that_is_none(self):
        for change, said in ((lambda content: content.clear(), 'epoch is None'),
                             (lambda content: content.update(deltas=[5]), 'deltas'),
                             (lambda content: content.update(epoch='x'), "epoch is 'x'"),
                             (lambda content: content.update(version=1e300), 'version is 1e')):
            listener = self.listener(name='other', period=NEVER)
            self.wait_for(lambda listener=listener: listener.taken)
            content = {'epoch': 1, 'version': 9, 'server': 'engine', 'deltas': None}
            change(content)
            self.publisher._announce(content)
            self.wait_for(lambda listener=listener: listener.reports)
            self.assertIn(said, listener.reports[0])
            # It asks by itself, then.
            self.assertEqual((1, 1), listener.current.identity)
            listener.stop()

    def test_a_damaged_whole_is_refused_and_the_last_good_one_kept(self):
        good = self.subscriber.current
        # It is asked again by the test.
        self.enterContext(mock.patch('tracon_watcher.messaging.subscriber._SHORTEST_PAUSE', NEVER))
        self.enterContext(mock.patch('tracon_watcher.messaging.subscriber._LONGEST_PAUSE', NEVER))
        with mock.patch.object(chunked_payload.ChunkedPayload, 'chunk', lambda _self,
                               _index: 'AAAA'):
            self.announce(lambda content: content.update(deltas=None))
            self.wait_for(lambda: len(self.subscriber.reports) == 2)
        for what, said in zip(('a delta', 'the snapshot'), self.subscriber.reports):
            self.assertRegex(said, f'^{what}: the SHA-256 of what has come')
        self.assertIs(good, self.subscriber.current)
        self.ask(self.subscriber)
        self.wait_for(lambda: self.subscriber.current.identity == (1, 2))
        self.wait_for(lambda: self.subscriber.times_mended == 1)

    def test_what_cannot_be_read_is_not_fetched_at_each_announcement(self):
        fetched, heard = [], []
        session = self.subscriber._session
        announced = session.announced
        session.announced = lambda content: (announced(content), heard.append(content))
        self.enterContext(mock.patch('tracon_watcher.messaging.subscriber._FIRST_DEAF', NEVER))
        self.enterContext(mock.patch('tracon_watcher.messaging.subscriber._LONGEST_DEAF', NEVER))

        def refuse(*_given):
            fetched.append(1)
            raise errors.InvalidDocument('the snapshot', 'schema', 'tracon-snapshot/9', 'upgrade')

        with mock.patch.object(subscriber, '_applied', autospec=True, side_effect=refuse), \
                mock.patch.object(subscriber, '_whole', autospec=True, side_effect=refuse):
            for version in range(2, 30):
                self.publisher.publish(state((1, version), b1=version * VM))
                # Each is worked on before the next one comes.
                self.wait_for(lambda version=version: len(heard) == version - 1
                              and not session._announced)
                self.wait_for(lambda version=version: session._refusals >= min(version - 1, 2))
        # A delta, and the whole; once more, since the first may have been damaged on its way.
        self.assertEqual(4, len(fetched))
        self.assertIn('tracon-snapshot/9', self.subscriber.reports[-1])

    def test_a_delta_that_leads_elsewhere_is_not_taken(self):
        real = delta.encode
        with mock.patch.object(delta, 'encode', lambda old, _new: real(old, state((1, 7)))):
            self.publisher.publish(state((1, 2), b1=2 * VM))
        self.wait_for(lambda: self.subscriber.current.identity == (1, 2))
        snapshots.same(self, state((1, 2), b1=2 * VM), self.subscriber.current)

    def test_neither_does_one_in_what_is_told_of_it(self):
        with mock.patch.object(self.subscriber, 'take', mock.Mock(side_effect=LookupError('oh'))):
            self.subscriber.report = mock.Mock(side_effect=TypeError('ah'))
            with self.assertLogs('tracon_watcher.messaging.subscriber', logging.ERROR) as logs:
                self.publisher.publish(state((1, 2)))
                self.wait_for(lambda: self.subscriber.report.called)
                self.wait_for(lambda: logs.records)
        self.assertIn('LookupError: oh', logs.records[0].getMessage())
        self.publisher.publish(state((1, 3)))
        self.wait_for(lambda: self.subscriber.identities()[-1] == (1, 3))

    def test_a_mistake_in_what_takes_it_ends_nothing(self):
        with mock.patch.object(self.subscriber, 'take', mock.Mock(side_effect=LookupError('oh'))):
            self.publisher.publish(state((1, 2)))
            self.wait_for(lambda: self.subscriber.reports)
        self.assertIn('unexpected LookupError: oh', self.subscriber.reports[0])
        self.publisher.publish(state((1, 3)))
        self.wait_for(lambda: self.subscriber.identities()[-1] == (1, 3))


class LossTest(base.MessagingCase):
    """No engine answers."""

    def test_it_is_said_once_and_the_last_snapshot_kept(self):
        engine = self.engine()
        engine.publish(state((1, 1)))
        listener = self.listener(period=NEVER)
        self.wait_for(lambda: listener.taken)
        engine.stop()
        with mock.patch('tracon_watcher.messaging.subscriber._SHORTEST_PAUSE', 0.01):
            self.ask(listener, 0.05)
            self.wait_for(lambda: listener._session._failures > 2)
        self.assertEqual(1, len(listener.reports), listener.reports)
        self.assertIn('no tracon-engine has answered within 0.05 s', listener.reports[0])
        self.assertEqual((1, 1), listener.current.identity)
        again = self.engine('again')
        again.publish(state((2, 2)))
        self.ask(listener, self.timeout)
        self.wait_for(lambda: listener.current.identity == (2, 2))
        self.wait_for(lambda: listener.times_mended == 1)

    def test_it_is_asked_less_and_less_often(self):
        session = subscriber._Session(self.listener(start=False, period=60.0))
        pauses = [session._failed('') for _again in range(12)]
        self.assertTrue(0.8 <= pauses[0] <= 1.2, pauses)
        self.assertTrue(all(48 <= pause <= 72 for pause in pauses[6:]), pauses)
        for earlier, later in zip(pauses[:6], pauses[1:6]):
            self.assertGreater(later, 1.3 * earlier)

    def test_decisions_wait_until_it_answers(self):
        with self.waiting(0.05):
            listener = self.listener(period=NEVER)
        for number in range(3):
            listener.post(protocol.RECORD_DECISIONS, {'n': number})
        listener.post(protocol.SETTLED, {'vm': 'a'})
        self.wait_for(lambda: listener.reports)
        self.assertEqual(4, len(listener.outbox._waiting))
        self.engine().publish(state((1, 1)))
        self.ask(listener, self.timeout)
        self.wait_for(lambda: self.settled)
        self.assertEqual(([{'n': 0}, {'n': 1}, {'n': 2}], [{'vm': 'a'}]),
                         (self.decisions, self.settled))

    def test_snapshots_come_however_much_there_is_to_tell(self):
        engine, listener = self.engine(), self.listener(period=NEVER)

        def more(documents):
            # A scheduler decides faster than the engine's database takes it down.
            for _document in documents:
                listener.post(protocol.RECORD_DECISIONS, {'again': True})

        engine._endpoint._on_decisions = more
        self.addCleanup(setattr, engine._endpoint, '_on_decisions', list)
        engine.publish(state((1, 1)))
        self.wait_for(lambda: listener.taken)
        listener.post(protocol.RECORD_DECISIONS, {'first': True})
        self.wait_for(lambda: engine.statistics()['decisions'] > 2)
        for version in (2, 3, 4):
            engine.publish(state((1, version)))
            self.wait_for(lambda: listener.identities()[-1:] == [(1, version)])
        told = engine.statistics()['decisions']
        self.wait_for(lambda: engine.statistics()['decisions'] > told)

    def test_those_that_were_dropped_are_counted(self):
        listener = self.listener(start=False, period=NEVER)
        listener.outbox._most = 2
        for number in range(12):
            listener.outbox.put(protocol.RECORD_DECISIONS, {'n': number})
        with self.waiting(0.05):
            listener.start()
            self.wait_for(lambda: listener._session._link is not None)
        self.wait_for(lambda: any('10 records' in text for text in listener.reports))

    def test_what_the_engine_cannot_use_is_dropped(self):
        engine = self.engine()
        engine._endpoint._on_decisions = mock.Mock(side_effect=[
            errors.TraconError('no such schema'), None])
        engine.publish(state((1, 1)))
        listener = self.listener(period=NEVER)
        self.wait_for(lambda: listener.taken)
        listener.post(protocol.RECORD_DECISIONS, {'n': 1})
        self.wait_for(lambda: listener.reports)
        self.assertIn('TraconError: no such schema', listener.reports[0])
        listener.post(protocol.RECORD_DECISIONS, {'n': 2})
        self.wait_for(lambda: engine.statistics()['decisions'] == 1)
        engine._endpoint._on_decisions.assert_called_with([{'n': 2}])

    def test_decisions_wait_while_the_engines_database_does_not_answer(self):
        away = storage_errors.StorageUnavailable('mysql://galera/tracon', 'lost', 'see to it')
        engine, asked = self.engine(), []

        def take(documents):
            asked.append(len(documents))
            if len(asked) < 4:
                raise away
            self.decisions.extend(documents)

        engine._endpoint._on_decisions = take
        engine.publish(state((1, 1)))
        listener = self.listener(period=NEVER)
        self.wait_for(lambda: listener.taken)
        with mock.patch('tracon_watcher.messaging.subscriber._SHORTEST_PAUSE', 0.01):
            for number in range(3):
                listener.post(protocol.RECORD_DECISIONS, {'n': number})
            self.wait_for(lambda: not listener.outbox)
        self.assertEqual([{'n': 0}, {'n': 1}, {'n': 2}], self.decisions)
        # The engine answers, and snapshots come: it is said once, and not that it was lost.
        self.assertEqual((1, 0), (len(listener.reports), listener.times_mended))
        self.assertIn('records of decisions wait', listener.reports[0])

    def test_a_busy_engine_is_told_less_and_less_often(self):
        # Its thread's rounds, one by one.
        session, asked = subscriber._Session(self.listener(start=False, period=NEVER)), []
        clock = mock.Mock(monotonic=lambda: clock.now, now=1000.0)
        self.enterContext(mock.patch.object(subscriber, 'time', clock))
        session._look_at = math.inf
        session._link = mock.Mock()
        session._link.tell = mock.Mock(side_effect=engine_client.EngineBusy('lost'))
        for least in (0.8, 1.6, 3.2, 6.4):
            session._owner.outbox.put(protocol.RECORD_DECISIONS, {})
            pause = session._round()
            asked.append(1)
            self.assertEqual(len(asked), session._link.tell.call_count)
            self.assertTrue(least <= pause <= 1.5 * least + 1e-6, pause)
            # New decisions do not make it hurry, nor does what wakes it.
            session._owner.outbox.put(protocol.RECORD_DECISIONS, {})
            clock.now += 0.9 * pause
            self.assertAlmostEqual(0.1 * pause, session._round())
            self.assertEqual(len(asked), session._link.tell.call_count)
            clock.now += 0.1 * pause + 1e-6

    def test_what_may_succeed_later_is_told_from_what_cannot(self):
        client = engine_client.EngineClient(self.transport())
        for name, kind in (('StorageUnavailable', engine_client.EngineBusy),
                           ('NoLongerLeader', engine_client.EngineBusy),
                           ('InvalidDocument', engine_client.EngineRefused),
                           ('StorageFailed', engine_client.EngineRefused),
                           ('KeyError', engine_client.EngineRefused),
                           (None, engine_client.EngineRefused)):
            answer = mock.Mock(side_effect=oslo_messaging.RemoteError(name, 'why'))
            with self.assertRaisesRegex(kind, 'why'):
                client._send(answer, 'settled')

    def test_documents_that_are_none_are_refused(self):
        self.engine()
        client = engine_client.EngineClient(self.transport(), 120.0)
        for documents in ('x', [1]):
            with self.assertRaisesRegex(engine_client.EngineRefused, 'list of objects'):
                client._call(None, protocol.SETTLED, documents=documents)

    def test_a_url_that_is_none_is_not_shown(self):
        self.url = 'nonsense://user:secret@host/'
        with self.assertRaises(errors.InvalidOption) as caught:
            self.engine()
        self.assertNotIn('secret', str(caught.exception))
        listener = base.Listener(self.transport)
        self.addCleanup(listener.stop)
        listener.start()
        self.wait_for(lambda: listener.reports)
        self.assertIn('transport_url', listener.reports[0])
        self.assertNotIn('secret', listener.reports[0])


class ForkTest(base.MessagingCase):

    def test_a_child_begins_anew_and_keeps_the_snapshot(self):
        engine, listener = self.engine(), self.listener(period=NEVER)
        engine.publish(state((1, 1)))
        self.wait_for(lambda: listener.taken)
        with listener._lock:        # held by some other thread, as it may be
            child = os.fork()
            if not child:
                code = 1
                try:
                    if listener._session is None and listener.current.identity == (1, 1):
                        listener.start()
                        code = int(not listener._session._thread.is_alive())
                finally:
                    os._exit(code)
        self.assertEqual(0, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        engine.publish(state((1, 2)))
        self.wait_for(lambda: listener.identities() == [(1, 1), (1, 2)])

    def test_starting_from_many_threads_starts_once(self):
        self.enterContext(self.waiting(0.05))
        listener = self.listener(start=False)
        threads = [threading.Thread(target=listener.start) for _index in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        names = [thread for thread in threading.enumerate()
                 if thread is listener._session._thread]
        self.assertEqual(1, len(names))
