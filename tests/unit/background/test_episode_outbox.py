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

"""What a daemon tells the engine of its episodes, and that it never waits for it."""

import json
import pathlib
import tempfile
import threading
import unittest
from unittest import mock

from oslo_config import cfg

from tracon_watcher.background import episode_outbox
from tracon_watcher.background import regulator
from tracon_watcher.cmd import background_service
from tracon_watcher.conf import background as options
from tracon_watcher import errors
from tracon_watcher.messaging import engine_client
from tracon_watcher.messaging import protocol

QUOTA = regulator.Episode(3, 'vm-2', 2.0, 1.0)
LOG = 'tracon_watcher.background.episode_outbox'


class OutboxCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.now = 1000.0
        kind = self.enterContext(mock.patch.object(
            episode_outbox.engine_client, 'EngineClient', autospec=True))
        self.client = kind.return_value
        self.outbox = episode_outbox.EpisodeOutbox(None, 'h1', lambda: self.now)

    def take(self, seconds=1, **episodes):
        """Have it take the same so many times, a second apart."""
        for _second in range(seconds):
            self.now += 1.0
            self.outbox.take(episodes)

    def told(self):
        """Return the documents that it tells now, as the engine gets them."""
        self.client.tell.reset_mock()
        self.outbox.tell()
        return [one for call in self.client.tell.call_args_list
                for one in json.loads(json.dumps(call.args[1], allow_nan=False))]


class TestEpisodes(OutboxCase):

    def test_a_beginning_and_an_end(self):
        self.take(5, processor=QUOTA)
        (begun,) = self.told()
        self.assertEqual({
            'schema': 'tracon-episode/1', 'host': 'h1', 'resource': 'processor', 'vm': 'vm-2',
            'began_at': 1001.0, 'ended_at': None, 'before': 2.0, 'least': 1.0}, begun)
        self.take(processor=regulator.Episode(3, 'vm-2', 2.0, 0.25))
        self.take(60)
        self.assertEqual([], self.told())
        self.take()
        self.assertEqual([{**begun, 'ended_at': 1006.0, 'least': 0.25}], self.told())
        self.take(100)
        self.assertEqual([], self.told())

    def test_short_pauses_do_not_end_it(self):
        for _time in range(10):
            self.take(20, processor=QUOTA)
            self.take(59)
        self.assertEqual([None], [one['ended_at'] for one in self.told()])

    def test_another_vm_has_an_episode_of_its_own(self):
        self.take(processor=QUOTA)
        self.take(processor=regulator.Episode(3, 'vm-1', 2.0, 1.0))
        self.assertEqual([('vm-2', None), ('vm-2', 1001.0), ('vm-1', None)], [
            (one['vm'], one['ended_at']) for one in self.told()])

    def test_what_is_not_known_is_null(self):
        self.take(pause=regulator.Episode(3))
        (one,) = self.told()
        self.assertEqual([None] * 3, [one[name] for name in ('vm', 'before', 'least')])

    def test_a_clock_that_is_put_back_ends_episodes(self):
        self.take(processor=QUOTA)
        self.now -= 500.0
        self.take(processor=QUOTA)
        self.assertEqual([(1001.0, None), (1001.0, 1001.0), (502.0, None)], [
            (one['began_at'], one['ended_at']) for one in self.told()])


class TestTelling(OutboxCase):

    def test_it_waits_for_an_engine_that_is_away_and_says_so_once(self):
        self.client.hello.side_effect = engine_client.EngineUnavailable('the broker is away')
        with self.assertLogs(LOG, 'INFO') as logged:
            for second in range(3):
                self.take(62 * (second % 2) + 1, **({} if second % 2 else {'network': QUOTA}))
                self.assertFalse(self.outbox.tell())
            self.client.tell.assert_not_called()
            self.client.hello.side_effect = None
            self.client.tell.side_effect = engine_client.EngineBusy('no view yet')
            self.assertFalse(self.outbox.tell())
            self.assertEqual(1, len(logged.output), logged.output)
            self.client.tell.side_effect = None
            self.assertEqual(3, len(self.told()))
            self.assertTrue(self.outbox.tell())
        self.assertEqual(2, len(logged.output))
        self.assertIn('the broker is away', logged.output[0])
        self.assertIn('told of throttling again; 0 messages were dropped', logged.output[1])

    def test_of_too_many_the_oldest_are_dropped(self):
        self.client.hello.side_effect = engine_client.EngineUnavailable('away')
        with self.assertLogs(LOG, 'INFO') as logged:
            self.outbox.tell()
            for number in range(1200):
                self.take(network=regulator.Episode(3, f'vm-{number}'))
            self.client.hello.side_effect = None
            found = self.told()
        self.assertEqual(2000, len(found))
        self.assertEqual('vm-1199', found[-1]['vm'])
        self.assertIn('399 messages were dropped', logged.output[-1])

    def test_taking_does_not_wait_for_a_call_that_hangs(self):
        hanging, called = threading.Event(), threading.Event()
        self.addCleanup(hanging.set)
        self.client.hello.side_effect = lambda _name: called.set() or hanging.wait()
        self.outbox.start()
        self.take(processor=QUOTA)
        self.assertTrue(called.wait(60.0))
        self.take(100)
        self.take(processor=QUOTA)
        self.assertFalse(hanging.is_set())
        self.client.tell.assert_not_called()
        self.assertEqual(3, sum(len(one.documents) for one in self.outbox._waiting.batches()
                                if not self.outbox._waiting.discard(one)))


class TestService(unittest.TestCase):

    def outbox(self, text, **more):
        """Return what the configuration gives, and the mock that would have been made."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        path = pathlib.Path(folder, 'tracon.conf')
        path.write_text(text)
        conf = cfg.ConfigOpts()
        options.register_opts(conf)
        conf(['--config-file', str(path)], project='tracon')
        with mock.patch.object(episode_outbox, 'EpisodeOutbox', autospec=True) as kind:
            return background_service.outbox(conf), kind

    def test_nothing_is_told_unless_it_is_wanted_and_in_a_dry_run(self):
        for text in ('', 'dry_run = true\ntell_engine = true\n'):
            found, kind = self.outbox(f'[DEFAULT]\ntransport_url = fake://\n[background]\n{text}')
            self.assertIsNone(found, text)
            kind.assert_not_called()

    def test_without_a_broker_it_says_so(self):
        for text in ('', '[DEFAULT]\ntransport_url = rabbit://\n'):
            with self.assertRaisesRegex(errors.InvalidOption, 'transport_url=.*tell_engine'):
                self.outbox(f'{text}[background]\ntell_engine = true\n')

    def test_by_the_name_that_nova_has_for_this_host(self):
        with mock.patch.object(background_service.socket, 'gethostname', autospec=True,
                               return_value='h1'):
            for text, host in (('', 'h1'), ('host = h2\n', 'h2')):
                _found, kind = self.outbox('[DEFAULT]\ntransport_url = fake://\n[background]\n'
                                           f'tell_engine = true\n{text}')
                self.assertEqual(host, kind.call_args.args[1])

    def test_a_url_that_is_none_is_not_shown(self):
        for url in ('user:secret@host', 'nothing://user:secret@host/'):
            with self.assertRaisesRegex(errors.InvalidOption, 'transport_url') as raised:
                self.outbox(f'[DEFAULT]\ntransport_url = {url}\n[background]\n'
                            'tell_engine = true\n')
            self.assertNotIn('secret', str(raised.exception))

    def test_a_url_of_its_own(self):
        for url, found in ((None, False), ('rabbit://', False), ('rabbit://h:5672/', True),
                           ('fake://', True), ('none at all', True)):
            self.assertEqual(found, protocol.connector(cfg.ConfigOpts(), url).configured, url)
