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

"""Engines as processes: two at once, stopped, and killed in the middle of what they write."""

import json
import multiprocessing
import os
import random
import signal
import threading
import time
import uuid

import sqlalchemy as sa

from tests.unit.engine.storage import base
from tracon_watcher.engine import leadership
from tracon_watcher.engine.storage import decisions
from tracon_watcher.engine.storage import errors
from tracon_watcher.engine.storage import repository
from tracon_watcher.engine.storage import schema
from tracon_watcher.engine.storage import tables

LEASE = 0.4
FORK = multiprocessing.get_context('fork')


class Engine:
    """A child process that stands for election, and tells its parent what it did.

    :param act: called with storage, leadership and a function that tells, as often as it can be
    """

    def __init__(self, case, act):
        self._case, self._act = case, act
        self._listen, self._tell = os.pipe()
        self._rest = b''
        self.holder = str(uuid.uuid4())
        self.process = FORK.Process(target=self._run, daemon=True)
        self.process.start()
        os.close(self._tell)
        os.set_blocking(self._listen, False)
        case.addCleanup(self.kill)

    def _run(self):
        os.close(self._listen)
        stop = threading.Event()
        signal.signal(signal.SIGUSR1, lambda _number, _frame: stop.set())
        made = repository.Storage(self._case.connect())
        leader = leadership.Leadership(made.lease, self.holder, LEASE)
        polled = -1.0
        while True:
            if time.monotonic() >= polled + leader.interval:
                polled = time.monotonic()
                leader.poll()
            if stop.is_set():
                stop.clear()
                os.kill(os.getpid(), signal.SIGSTOP)
            self._act(made, leader, self.tell)
            time.sleep(0.002)

    def tell(self, *values):
        """Send one line, as a whole."""
        os.write(self._tell, json.dumps(values).encode() + b'\n')

    def heard(self):
        """Return what it told since the last time."""
        try:
            while part := os.read(self._listen, 65536):
                self._rest += part
        except BlockingIOError:
            pass
        *lines, self._rest = self._rest.split(b'\n')
        return [json.loads(line) for line in lines]

    def stop(self):
        """Stop it, at any moment; on SQLite, which it would keep locked, between two writes."""
        self.kill(signal.SIGUSR1 if self._case.backend == 'sqlite' else signal.SIGSTOP)

    def kill(self, number=signal.SIGKILL):
        if self.process.is_alive():
            os.kill(self.process.pid, number)
            if number == signal.SIGKILL:
                self.process.join()


def claim(_storage, leader, tell):
    """Tell each moment at which this engine believes that it leads."""
    # Before it looks at its clock: if it is stopped in between, it was not leading afterwards.
    at = time.monotonic()
    if leader.leading:
        tell(at, leader.term().epoch)


def work(made, leader, tell):
    """Write all that an engine writes; tell each snapshot version once it is committed."""
    now = time.time()
    made.decisions.add([decisions.Decision.of(base.decision(now)) for _turn in range(5)])
    move = base.move(vm=str(uuid.uuid4()), decided_at=now)
    made.moves.add([move])
    made.moves.started(move.id, now)
    made.moves.ended(move.id, now, True)
    try:
        epoch, version = made.lease.next_version(leader.term())
        tell(epoch, version)
        for outcome in made.outcomes.of_move(move.id):
            made.outcomes.record(leader.term(), outcome, made.moves.get(move.id),
                                 {move.own.vm: 1.0}, outcome.due_at)
    except errors.NoLongerLeader:
        pass


class TestEngines(base.StorageCase):

    synchronous = True

    def wait_for(self, what, found, seconds=120.0):
        """Return what ``found`` returns as soon as it is not empty."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            result = found()
            if result:
                return result
            time.sleep(0.005)
        raise AssertionError(f'{what}: not within {seconds} seconds')

    def test_exactly_one_leads(self):
        """Three contend; the one that leads is stopped, killed or left alone, as chance has it."""
        rng = random.Random(3)
        engines = [Engine(self, claim) for _turn in range(3)]
        claims = []

        def listen():
            new = [(at, epoch, engine.holder) for engine in engines
                   for at, epoch in engine.heard()]
            claims.extend(new)
            # Who was stopped between believing and telling tells late, of a time long ago.
            latest = max((epoch for _at, epoch, _holder in claims), default=0)
            return [one for one in new if one[1] == latest]

        for _turn in range(12):
            leader = self.wait_for('a leader', listen)[-1]
            engine = next(one for one in engines if one.holder == leader[2])
            what = rng.choice(('stop', 'kill', 'leave'))
            if what == 'leave':
                time.sleep(LEASE)
                continue
            engine.stop() if what == 'stop' else engine.kill()
            self.wait_for('a higher epoch', lambda: [one for one in listen()
                                                     if one[1] > leader[1]])
            if what == 'stop':
                # It wakes up, and believes for no moment that it still leads.
                engine.kill(signal.SIGCONT)
            else:
                listen()
                engines[engines.index(engine)] = Engine(self, claim)
        time.sleep(LEASE)
        listen()
        spans = {}
        for at, epoch, holder in claims:
            first, last = spans.get((epoch, holder), (at, at))
            spans[epoch, holder] = (min(first, at), max(last, at))
        self.assertEqual(len(spans), len({epoch for epoch, _holder in spans}),
                         'an epoch has two leaders')
        ordered = [spans[key] for key in sorted(spans)]
        for (_first, before), (after, _last) in zip(ordered, ordered[1:]):
            self.assertLess(before, after, 'two lead at once')
        self.assertGreater(len(ordered), 4)

    def test_killed_in_the_middle_of_a_write(self):
        rng = random.Random(11)
        told = [(0, 0)]
        for turn in range(20):
            engine = Engine(self, work)
            epoch = told[-1][0]
            new = self.wait_for('the next leader', engine.heard)
            self.assertGreater(new[0][0], epoch, 'another takes over, with a higher epoch')
            time.sleep(rng.uniform(0, 0.3))
            engine.kill()
            told += [tuple(one) for one in new + engine.heard()]
            with self.subTest(turn):
                self.check(told)
        self.assertEqual(told, sorted(set(told)), '(epoch, version) rises strictly')

    def check(self, told):
        """See that the database is consistent."""
        self.assertEqual([], schema.faults(self.database))
        sight = self.storage.lease.look()
        self.assertGreaterEqual((sight.epoch, sight.version), told[-1])
        for one in self.storage.decisions.find(limit=5):
            self.assertEqual(one.id, one.document['id'])

        def counts(connection):
            decided = connection.scalar(sa.select(sa.func.count()).select_from(tables.DECISIONS))
            # Each move that succeeded has both its outcomes, and its VM cools down.
            left = sa.select(sa.func.count()).select_from(tables.MOVES).where(
                tables.MOVES.c.state == 'succeeded', sa.or_(
                    sa.select(sa.func.count()).where(
                        tables.OUTCOMES.c.move == tables.MOVES.c.id).scalar_subquery() != 2,
                    tables.MOVES.c.vm.not_in(sa.select(tables.COOLDOWNS.c.vm))))
            measured = sa.select(sa.func.count(sa.distinct(tables.OUTCOMES.c.move))).where(
                tables.OUTCOMES.c.verdict.is_not(None))
            counted = sa.select(tables.KINDS.c.measured)
            return (decided, connection.scalar(left), connection.scalar(measured),
                    connection.scalar(counted))

        decided, half_made, measured, counted = self.database.read(counts)
        self.assertEqual((0, 0), (decided % 5, half_made))
        self.assertEqual(measured, counted or 0)


class TestSlowStorage(base.StorageCase):

    def test_one_that_waits_in_a_write_when_it_is_killed_does_not_hold_up_the_next(self):
        ready = FORK.Event()

        def hold():
            def write(connection):
                connection.execute(sa.update(tables.LEASES).values(beat=99))
                ready.set()
                time.sleep(600)

            self.connect().write(write)

        process = FORK.Process(target=hold, daemon=True)
        process.start()
        self.addCleanup(process.kill)
        self.assertTrue(ready.wait(120))
        process.kill()
        process.join()
        self.assertEqual(0, self.storage.lease.look().beat)
        began = time.monotonic()
        self.lead()
        self.assertLess(time.monotonic() - began, 20)
