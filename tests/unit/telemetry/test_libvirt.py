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

import queue
import threading
import unittest
from unittest import mock

import libvirt as vendor

from tests.unit.telemetry import replay
from tracon_watcher.telemetry import libvirt
from tracon_watcher.telemetry import meters


class Clock:
    """Goes on by a second whenever it is read."""

    def __init__(self):
        self.now = 100 * 10**9

    def __call__(self):
        self.now += 10**9
        return self.now


class Outcome:
    """Brings what a call has brought; patience ends as soon as the call says that it hangs."""

    latest = None
    HANGS = object()

    def __init__(self):
        self._queue = queue.SimpleQueue()
        self.put = self._queue.put
        Outcome.latest = self

    def get(self, timeout):
        found = self._queue.get(timeout=120)
        if found is self.HANGS:
            raise queue.Empty
        return found


class Hanging(replay.Connection):
    """Does not answer until it is let go."""

    def __init__(self, held, *polls):
        super().__init__(*polls)
        self._held = held

    def getAllDomainStats(self, *arguments):
        Outcome.latest.put(Outcome.HANGS)
        self._held.wait()
        return super().getAllDomainStats(*arguments)


class TestSource(unittest.TestCase):

    def source(self, *connections, **named):
        """Return a source that opens these connections, one after the other."""
        self.opened = []
        waiting = list(connections)

        def connect():
            found = waiting.pop(0)
            if isinstance(found, Exception):
                raise found
            self.opened.append(found)
            return found
        return libvirt.Source(connect, monotonic=Clock(), **{'patience': 120.0, **named})

    def test_one_call_a_poll_and_one_connection(self):
        connection = replay.Connection(*replay.polls())
        source = self.source(connection)
        first, second = source.poll(), source.poll()
        self.assertEqual(2, len(connection.calls))
        self.assertEqual(1, len(self.opened))
        self.assertEqual({replay.uuid(name) for name in ('several', 'reads', 'paused')},
                         set(first))
        reads = replay.uuid('reads')
        self.assertGreater(second[reads][meters.READ_REQUESTS.name],
                           first[reads][meters.READ_REQUESTS.name])

    def test_what_is_asked_for_and_nothing_else(self):
        connection = replay.Connection(*replay.polls())
        self.source(connection).poll()
        groups, flags = connection.calls[0]
        self.assertEqual(
            vendor.VIR_DOMAIN_STATS_STATE | vendor.VIR_DOMAIN_STATS_CPU_TOTAL
            | vendor.VIR_DOMAIN_STATS_VCPU | vendor.VIR_DOMAIN_STATS_BLOCK
            | vendor.VIR_DOMAIN_STATS_PERF, groups)
        self.assertEqual(vendor.VIR_CONNECT_GET_ALL_DOMAINS_STATS_ACTIVE
                         | vendor.VIR_CONNECT_GET_ALL_DOMAINS_STATS_NOWAIT, flags)

    def test_each_domain_has_its_share_of_the_time_of_the_call(self):
        stats = replay.stats('reads')
        connection = replay.Connection([(str(number), stats) for number in range(4)])
        found = self.source(connection).poll()
        # from 101 s to 102 s
        self.assertEqual([101_125_000_000, 101_375_000_000, 101_625_000_000, 101_875_000_000],
                         [found[str(number)][meters.CLOCK.name] for number in range(4)])

    def test_no_domains(self):
        self.assertEqual({}, self.source(replay.Connection([])).poll())

    def test_a_connection_that_has_died_is_reopened_in_the_same_poll(self):
        first = replay.Connection(replay.polls()[0], replay.failure('end of file'))
        source = self.source(first, replay.Connection(replay.polls()[1]))
        source.poll()
        self.assertEqual(3, len(source.poll()))
        self.assertEqual(2, len(self.opened))
        self.opened[-1].alive = False
        with self.assertRaises(IndexError):     # it was to be opened a third time
            source.poll()

    def test_without_libvirt_the_next_poll_tries_again(self):
        connection = replay.Connection(*replay.polls())
        source = self.source(replay.failure('Failed to connect socket'),
                             replay.Connection(replay.failure('no stats here')), connection)
        for said in ('Failed to connect socket', 'no stats here'):
            with self.assertRaisesRegex(libvirt.StatisticsUnavailable, said) as raised:
                source.poll()
            self.assertIsInstance(raised.exception.__cause__, vendor.libvirtError)
        self.assertEqual(3, len(source.poll()))

    def hanging(self, *polls):
        """Return connections that hang until an event is set, and that event."""
        self.enterContext(mock.patch.object(
            libvirt, 'queue', mock.Mock(SimpleQueue=Outcome, Empty=queue.Empty)))
        held = threading.Event()
        self.addCleanup(held.set)
        return [Hanging(held, poll) for poll in polls], held

    def test_a_call_that_hangs_is_given_up(self):
        (first, *others), _held = self.hanging([], [], [])
        well = replay.Connection(*replay.polls())
        source = self.source(first, well, *others, patience=0.2)
        with self.assertRaisesRegex(libvirt.StatisticsUnavailable, 'within 0.2 s'):
            source.poll()
        self.assertEqual(3, len(source.poll()))
        self.assertEqual(3, len(source.poll()))
        for _poll in range(2):
            well.alive = False
            with self.assertRaisesRegex(libvirt.StatisticsUnavailable, 'within 0.2 s'):
                source.poll()
        # Neither threads nor connections pile up.
        with self.assertRaisesRegex(libvirt.StatisticsUnavailable, '3 calls have not come back'):
            source.poll()
        self.assertEqual(4, len(self.opened))

    def test_when_calls_come_back_there_are_new_ones(self):
        connections, held = self.hanging(*[replay.polls()[0]] * 3)
        source = self.source(*connections, replay.Connection(*replay.polls()))
        for _poll in range(4):
            with self.assertRaises(libvirt.StatisticsUnavailable):
                source.poll()
        held.set()
        for thread in source._given_up:
            thread.join(120)
        self.assertEqual(3, len(source.poll()))

    def test_polls_of_several_threads_take_turns(self):
        inside, most = [], []
        arrived = threading.Semaphore(0)

        class Slow(replay.Connection):
            def getAllDomainStats(self, *arguments):
                inside.append(1)
                most.append(len(inside))
                if len(most) == 1:
                    # Until all want theirs.
                    for _thread in threads:
                        arrived.acquire(timeout=120)
                inside.pop()
                return super().getAllDomainStats(*arguments)

        source = self.source(Slow(*replay.polls()), patience=600.0)
        lock = source._lock
        source._lock = mock.MagicMock()
        source._lock.__enter__.side_effect = lambda: (arrived.release(), lock.acquire())
        source._lock.__exit__.side_effect = lambda *_error: lock.release()
        threads = [threading.Thread(target=source.poll) for _number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([1, 1, 1, 1], most)


class TestTestDriver(unittest.TestCase):
    """libvirt itself, with the driver it has for tests; that one reports states alone."""

    def test_real_answers_without_counters_are_unknown(self):
        opened = []

        def connect():
            opened.append(vendor.openReadOnly('test:///default'))
            return opened[-1]

        source = libvirt.Source(connect, patience=120.0)
        self.assertEqual({}, source.poll())
        opened[0].close()
        self.assertEqual({}, source.poll())
        self.assertEqual(2, len(opened))

    def test_a_driver_that_is_not_there(self):
        source = libvirt.Source(lambda: vendor.openReadOnly('nowhere:///'), patience=120.0)
        with self.assertRaisesRegex(libvirt.StatisticsUnavailable, 'libvirt: .+ running'):
            source.poll()
