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

"""From a daemon over the broker to the ledger, and between releases."""

from unittest import mock

from oslo_messaging.rpc import server

from tests.unit.background import test_regulator
from tests.unit.engine.storage import base as storage
from tests.unit.engine import test_episodes
from tests.unit.messaging import base
from tests.unit.messaging import test_exchange
from tracon_watcher.background import episode_outbox
from tracon_watcher import errors

LOG = 'tracon_watcher.background.episode_outbox'


class EpisodesTest(base.MessagingCase, test_episodes.EpisodeCase):

    def outbox(self):
        """Return an outbox of a daemon on host h1."""
        return episode_outbox.EpisodeOutbox(self.transport(), 'h1', lambda: self.now)

    def throttle(self, outbox, vm):
        """Have a regulator cut the quota for a VM, and the outbox take it."""
        decider, _found = test_regulator.after(30)
        decider.decide(test_regulator.host({
            'other': test_regulator.use(), vm: test_regulator.use(1.0, 0.03)}))
        outbox.take(decider.episodes)

    def test_from_the_regulator_to_the_ledger(self):
        self.observe(storage.NOW - 40.0, a=1.5)
        outbox = self.outbox()
        self.throttle(outbox, 'a')
        self.engine(on_moves=self.tracker.recommended).publish(test_exchange.state((1, 1)))
        self.assertTrue(outbox.tell())
        self.now += 100.0
        outbox.take({})
        self.assertTrue(outbox.tell())
        self.observe(self.now, a=1.1)
        self.tracker.measure()
        (one,) = self.shown()
        self.assertEqual(('throttle', storage.NOW, 1.5, 1.1), tuple(
            one[name] for name in ('remedy', 'at', 'before', 'after')))
        self.assertEqual(('processor', storage.NOW, 'cores', None), tuple(
            one['episode'][name] for name in ('resource', 'until', 'unit', 'reason')))
        self.assertAlmostEqual(one['episode']['before'] / 2, one['episode']['least'])
        self.assertEqual({'recorded': 2, 'dropped': 0}, self.counts())

    def test_an_engine_that_has_no_view_yet_is_told_later(self):
        self.engine(on_moves=self.tracker.recommended)
        outbox = self.outbox()
        self.throttle(outbox, 'a')
        with self.assertLogs(LOG, 'WARNING'):
            self.assertFalse(outbox.tell())
        self.observe(storage.NOW - 40.0, a=1.5)
        self.assertTrue(outbox.tell())
        self.assertEqual(1, len(self.shown()))

    def test_an_engine_that_is_away_is_told_later_by_the_thread(self):
        self.observe(storage.NOW - 40.0, a=1.5)
        self.enterContext(mock.patch.multiple(episode_outbox, _INTERVAL=0.01, _PAUSE=0.01))
        with self.waiting(0.1):
            outbox = self.outbox()
        with self.assertLogs(LOG, 'INFO') as logged:
            outbox.start()
            self.throttle(outbox, 'a')
            self.wait_for(lambda: logged.output)
            outbox._client._timeout = self.timeout
            self.engine(on_moves=self.tracker.recommended)
            self.wait_for(lambda: len(logged.output) > 1)
        self.assertIn('no tracon-engine has answered', logged.output[0])
        self.assertEqual(1, len(self.shown()))

    def test_an_engine_of_an_earlier_release_logs_no_error_and_is_not_told_again(self):
        refused = []

        def recommended(documents):
            """Refuse, as its tracker of moves does with another schema than its own."""
            refused.extend(one['vm'] for one in documents)
            raise errors.InvalidDocument('a move', 'schema', documents[0]['schema'],
                                         'expected one of tracon-move/1')

        self.engine(on_moves=recommended)
        outbox = self.outbox()
        with self.assertLogs(LOG, 'WARNING') as logged, self.assertNoLogs(
                server.LOG.name, 'INFO'):
            for vm in ('a', 'b'):
                self.throttle(outbox, vm)
                self.assertTrue(outbox.tell())
        self.assertEqual(1, len(logged.output))
        self.assertEqual(['a', 'a', 'b'], refused)
