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

"""Who leads, with clocks that the tests move."""

import contextlib
import random
from unittest import mock

from tests.unit.engine.storage import base
from tracon_watcher.engine import leadership
from tracon_watcher.engine.storage import errors
from tracon_watcher.engine.storage import lease

LEASE = 10.0
LOG = 'tracon_watcher.engine.leadership'


class Clock:
    """A monotonic clock."""

    def __init__(self, start):
        self.now = start

    def __call__(self):
        return self.now


class FaultyLease(lease.Lease):
    """A lease whose operations a test may replace: ``faults[name]`` is given the real one."""

    def __init__(self, database):
        super().__init__(database)
        self.faults = {}

    def look(self):
        return self._run('look', super().look)

    def take(self, *given):
        return self._run('take', super().take, *given)

    def renew(self, *given):
        return self._run('renew', super().renew, *given)

    def release(self, *given):
        return self._run('release', super().release, *given)

    def _run(self, name, real, *given):
        return self.faults[name](real, *given) if name in self.faults else real(*given)


def unavailable(_real, *_given):
    raise errors.StorageUnavailable('there', 'no answer', 'wait')


class LeadershipCase(base.StorageCase):

    def setUp(self):
        super().setUp()
        # Monotonic clocks of two hosts have nothing to do with each other.
        self.clocks = {'a': Clock(5.0), 'b': Clock(70000.0)}
        self.lease = FaultyLease(self.database)
        self.engines = {name: leadership.Leadership(self.lease, name, LEASE, clock)
                        for name, clock in self.clocks.items()}
        self.a, self.b = self.engines.values()

    def wait(self, seconds):
        for clock in self.clocks.values():
            clock.now += seconds

    @contextlib.contextmanager
    def fault(self, name='renew', how=unavailable):
        """Let an operation on the lease go wrong."""
        self.lease.faults[name] = how
        yield
        del self.lease.faults[name]


class TestLeadership(LeadershipCase):

    def test_the_first_leads_at_once(self):
        self.assertFalse(self.a.leading)
        with self.assertRaises(errors.NoLongerLeader):
            self.a.term()
        self.assertTrue(self.a.poll())
        self.assertEqual(('a', 1), (self.a.term().holder, self.a.term().epoch))
        self.assertFalse(self.b.poll())

    def test_as_long_as_it_renews(self):
        for _turn in range(100):
            self.assertEqual((True, False), (self.a.poll(), self.b.poll()))
            self.wait(self.a.interval)
        self.assertEqual(1, self.a.term().epoch)

    def test_taken_over_when_the_beat_stands_still(self):
        self.a.poll()
        self.b.poll()
        self.wait(LEASE)
        self.assertFalse(self.a.leading)
        self.assertFalse(self.b.poll(), 'a little longer than a lease')
        self.wait(LEASE / 10 + 0.001)
        self.assertTrue(self.b.poll())
        self.assertEqual(2, self.b.term().epoch)
        with self.assertLogs(LOG, 'WARNING'):
            self.assertFalse(self.a.poll())

    def test_a_candidate_counts_from_what_it_saw_itself(self):
        """However long the row may have been like that before."""
        self.a.poll()
        self.wait(1000)
        self.assertFalse(self.b.poll())
        self.wait(LEASE * 1.2)
        self.assertTrue(self.b.poll())

    def test_wall_clocks_do_not_matter(self):
        self.a.poll()
        self.b.poll()
        for moment in (0.0, 4e9):
            with mock.patch('time.time', autospec=True, return_value=moment):
                self.wait(LEASE / 2)
                self.assertEqual((True, False), (self.a.poll(), self.b.poll()))

    def test_steps_down_when_it_cannot_renew(self):
        self.a.poll()
        self.b.poll()
        with self.fault(), self.assertLogs(LOG, 'WARNING') as logged:
            self.wait(LEASE * 0.9)
            self.assertTrue(self.a.poll())
            self.wait(LEASE * 0.1)
            # By its own clock, without being asked and without asking anybody.
            self.assertFalse(self.a.leading)
        self.assertIn('could not be renewed', logged.output[0])
        self.wait(LEASE * 0.11)
        self.assertTrue(self.b.poll())

    def test_a_database_that_is_away_is_told_of_once(self):
        self.a.poll()
        for _time in range(2):
            with self.fault(), self.fault('look'), self.assertLogs(LOG, 'WARNING') as logged:
                for _poll in range(20):
                    self.wait(LEASE / leadership.POLLS)
                    self.a.poll()
            self.assertEqual(
                ['could not be renewed', 'the lease ran out'],
                [next(text for text in ('the lease ran out', 'could not be renewed')
                      if text in line) for line in logged.output])
            with self.assertLogs(LOG, 'INFO') as logged:
                self.assertTrue(self.a.poll())
            self.assertIn('The database answers again', logged.output[-1])

    def test_a_lease_counts_from_before_it_was_asked_for(self):
        self.a.poll()

        def slowly(renew, term):
            self.wait(LEASE * 0.6)
            renew(term)
            self.wait(LEASE * 0.3)

        with self.fault('renew', slowly):
            self.assertTrue(self.a.poll())
        self.wait(LEASE * 0.2)
        self.assertFalse(self.a.leading)

    def test_an_answer_that_came_too_late_or_not_at_all(self):
        """The database has renewed it; the engine stepped down, and begins a new epoch."""
        self.a.poll()

        def lost(renew, term):
            renew(term)
            self.wait(LEASE * 1.5)
            unavailable(renew)

        with self.fault('renew', lost), self.assertLogs(LOG, 'WARNING'):
            self.assertFalse(self.a.poll())
        with self.assertLogs(LOG, 'WARNING'):
            self.assertTrue(self.a.poll())
        self.assertEqual(2, self.a.term().epoch)

    def test_taken_but_never_heard_of_it(self):
        def lost(take, sight, holder):
            take(sight, holder)
            unavailable(take)

        with self.fault('take', lost), self.assertLogs(LOG, 'WARNING'):
            self.assertFalse(self.a.poll())
        self.assertFalse(self.b.poll())
        self.assertTrue(self.a.poll())
        self.assertEqual(2, self.a.term().epoch)

    def test_told_that_another_leads(self):
        self.a.poll()
        self.lead('c')
        with self.assertLogs(LOG, 'WARNING') as logged:
            self.assertFalse(self.a.poll())
        self.assertIn('epoch 1 is over', logged.output[0])
        self.assertFalse(self.a.leading)

    def test_resigned(self):
        self.a.poll()
        self.b.poll()
        self.a.resign()
        self.assertFalse(self.a.leading)
        self.assertTrue(self.b.poll())
        self.a.resign()
        self.b.poll()
        with self.subTest('without the database'), self.fault('release'):
            self.b.resign()
            self.assertFalse(self.b.leading)

    def test_stopped_for_minutes_in_the_middle(self):
        """What it does when it wakes up, before it looks at its clock, is refused."""
        self.a.poll()
        self.b.poll()
        term = self.a.term()
        self.clocks['b'].now += LEASE * 1.2
        self.assertTrue(self.b.poll())
        for write in (self.storage.lease.next_version,
                      lambda term: self.storage.kinds.resume(term, 'live migration')):
            with self.assertRaises(errors.NoLongerLeader):
                write(term)

    def test_never_two_whatever_happens(self):
        """Random pauses, faults and restarts of the engines' polls."""
        rng = random.Random(7)
        epochs = [0]
        with self.assertLogs(LOG, 'WARNING'):
            for turn in range(600):
                self.wait(rng.uniform(0, LEASE / 2))
                engine = rng.choice((self.a, self.b))
                if rng.random() < 0.2:
                    with self.fault(rng.choice(('renew', 'look', 'take'))):
                        engine.poll()
                elif rng.random() < 0.05:
                    engine.resign()
                else:
                    engine.poll()
                leading = [one for one in (self.a, self.b) if one.leading]
                self.assertLessEqual(len(leading), 1, turn)
                for one in leading:
                    self.assertGreaterEqual(one.term().epoch, epochs[-1])
                    epochs.append(one.term().epoch)
        self.assertGreater(epochs[-1], 20)
