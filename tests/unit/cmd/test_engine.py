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

"""What ``tracon-engine`` makes of its configuration, such as a calibration."""

import contextlib
import dataclasses
import io
import math
import tempfile
import unittest
from unittest import mock

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from nova import context
from oslo_config import cfg

from tests.unit.api import base as api
from tests.unit.engine.storage import base
from tests.unit import folder
from tracon_watcher.api import faults
from tracon_watcher.cmd import engine
from tracon_watcher.contention import calibration
from tracon_watcher.engine import ledger
from tracon_watcher.engine.storage import decisions
from tracon_watcher.engine.storage import errors as storage_errors
from tracon_watcher import errors


class BuildCase(folder.OwnFolderCase, base.StorageCase):
    """Builds engines."""

    def configured(self, **options):
        path = self.folder / 'tracon.conf'
        path.write_text('[DEFAULT]\ntransport_url = fake://\n[service_auth]\nauth_type = none\n'
                        '[engine]\n' + ''.join(
                            f'{name} = {value}\n' for name, value in options.items()),
                        encoding='utf-8')
        conf = cfg.ConfigOpts()
        engine.register_opts(conf)
        conf(['--config-file', str(path)], project='tracon')
        return conf

    def build(self, **options):
        made, _after = engine.build(self.configured(**options), self.storage)
        made._parts.leadership.poll()
        self.addCleanup(made._parts.leadership.resign)
        return made


class TestSample(unittest.TestCase):

    def test_how_the_engine_authenticates_can_be_listed(self):
        (group, options), = engine.list_opts()
        names = [option.dest for option in options]
        self.assertEqual('service_auth', group)
        self.assertEqual([], sorted({'auth_type', 'auth_url', 'username', 'password',
                                     'project_name', 'user_domain_id', 'project_domain_id',
                                     'region_name', 'valid_interfaces'} - set(names)))
        self.assertEqual(len(names), len(set(names)))


class TestRequestAudit(BuildCase):

    def test_it_is_triggered_where_it_is_named(self):
        self.assertNotIn('trigger', self.build().activities)
        self.assertIn('trigger', self.build(request_audit='room').activities)

    def test_watchers_webhook_is_called(self):
        watcher = mock.create_autospec(adapter.Adapter, instance=True)
        engine._trigger_audit(watcher, 'make room/1')
        self.assertEqual('/v1/webhooks/make%20room%2F1', watcher.post.call_args[0][0])
        watcher.post.side_effect = exceptions.NotFound
        with self.assertRaisesRegex(errors.TraconError, 'request_audit names an audit of the'):
            engine._trigger_audit(watcher, 'room')


class TestCalibration(BuildCase):

    def used(self, **options):
        """Return the calibration by which an engine estimates."""
        return self.build(**options)._parts.make_collector()._demands._learnt

    def test_the_packaged_one_is_used_where_none_is_named(self):
        self.assertEqual(calibration.packaged().to_document(), self.used().to_document())

    def test_a_file_is_used(self):
        path = self.folder / 'calibration.json'
        own = dataclasses.replace(calibration.packaged(), slack=0.625)
        calibration.save(own, path)
        self.assertEqual(0.625, self.used(calibration_file=path).slack)

    def test_one_that_cannot_be_used_ends_the_engine(self):
        path = self.folder / 'calibration.json'
        with self.assertRaisesRegex(errors.InvalidDocument, str(path)):
            self.used(calibration_file=path)
        path.write_text('{}', encoding='utf-8')
        with self.assertRaisesRegex(errors.InvalidDocument, str(path)):
            self.used(calibration_file=path)


class TestPatience(BuildCase):

    def test_no_service_of_the_cloud_is_waited_for_for_good(self):
        conf = cfg.ConfigOpts()
        engine.register_opts(conf)
        conf([])
        self.assertEqual(180, conf.service_auth.timeout)
        # In the sample as well.
        shown, = (one for _group, listed in engine.list_opts() for one in listed
                  if one.name == 'timeout')
        self.assertEqual(180, shown.default)
        self.assertEqual(180, engine.connect(self.configured()).session.timeout)

    def test_nova_gives_up_a_cell_that_hangs_before_nova_is_given_up(self):
        conf = cfg.ConfigOpts()
        engine.register_opts(conf)
        conf([])
        self.assertGreaterEqual(conf.service_auth.timeout, 2 * context.CELL_TIMEOUT)
        # A listing asks for the services twice; with that it is not overdue yet.
        listing = self.build().activities['list']
        self.assertLess(conf.service_auth.timeout + 3 * context.CELL_TIMEOUT, listing._overdue)

    def test_a_listing_that_never_ends_is_not_healthy(self):
        made = self.build(repair_interval_seconds=10.0)
        listing = made.activities['list']
        self.assertTrue(listing.works())
        listing._clock = lambda: listing._began_at + 1000.0
        self.assertEqual((None, False), (listing.failure, listing.works()))


class TestNumbers(unittest.TestCase):

    def test_a_number_that_is_not_allowed_is_an_error_at_the_start(self):
        for group, name, value in (('engine', 'lease_seconds', 'nan'),
                                   ('database', 'moves_kept_days', 'inf'),
                                   ('prometheus', 'scrape_seconds', '3_0'),
                                   ('api', 'threads', '１０')):
            with tempfile.NamedTemporaryFile('w', suffix='.conf') as file, \
                    mock.patch.object(engine.cfg, 'CONF', cfg.ConfigOpts()), \
                    mock.patch.object(engine.logging, 'setup', autospec=True), \
                    mock.patch.object(engine, 'run', autospec=True) as run, \
                    contextlib.redirect_stderr(io.StringIO()) as told:
                file.write(f'[{group}]\n{name} = {value}\n')
                file.flush()
                self.assertEqual(2, engine.main(['--config-file', file.name]))
            run.assert_not_called()
            self.assertRegex(told.getvalue(), f"^tracon-engine: .*{name} .*'{value}': expected a")


class DecisionsTestCase(base.StorageCase):

    def test_a_database_that_is_away_is_said_to_be_so(self):
        found = engine.Records(self.storage)
        self.assertEqual(([], None), (found.find('a'), found.audit('a')))
        away = storage_errors.StorageUnavailable('sqlite://', 'away', 'wait')
        with mock.patch.object(self.storage.decisions, 'find', autospec=True, side_effect=away):
            with self.assertLogs('tracon_watcher.cmd.engine', 'WARNING') as logged:
                self.assertRaisesRegex(faults.Unavailable, 'database.*Try again', found.find, 'a')
        self.assertEqual(1, len(logged.output))
        with mock.patch.object(self.storage.audits, 'get', autospec=True, side_effect=away):
            with self.assertLogs('tracon_watcher.cmd.engine', 'WARNING'):
                self.assertRaisesRegex(faults.Unavailable, 'database.*Try again', found.audit, 'a')
        with mock.patch.object(self.storage.moves, 'find', autospec=True, side_effect=away):
            with self.assertLogs('tracon_watcher.cmd.engine', 'WARNING'):
                self.assertRaisesRegex(faults.Unavailable, 'database.*Try again', found.moves,
                                       {}, None, 9)
        with mock.patch.object(self.storage.breaches, 'seconds', autospec=True, side_effect=away):
            with self.assertLogs('tracon_watcher.cmd.engine', 'WARNING'):
                self.assertIsNone(found.breaches(['a'], base.NOW))

    def test_moves_with_their_outcomes_the_latest_first(self):
        prediction = {'predicted': 1.8, 'lower': 1.7, 'upper': None, 'in_breach': True}
        changes = tuple({'vm': vm, 'before': prediction, 'after': prediction}
                        for vm in ('vm-2', 'vm-9'))
        self.storage.moves.add([
            base.move('m1', audit='a', changes=changes),
            *(base.move(name, decided_at=base.NOW + 1) for name in ('m2', 'm3'))])
        self.storage.moves.ended('m1', base.NOW + 60, True)
        found = engine.Records(self.storage)
        everything = dict.fromkeys(('audit', 'state', 'vm'))
        self.assertEqual(['m3', 'm2', 'm1'], [one['id'] for one in found.moves(
            everything, None, 9)])
        self.assertEqual(['m2'], [one['id'] for one in found.moves(everything, 'm3', 1)])
        self.assertIsNone(found.moves(everything, 'm4', 1))
        (one,) = found.moves({**everything, 'audit': 'a'}, 'm2', 9)
        self.assertEqual([{**changes[0], 'relieved': True}, {**changes[1], 'relieved': False}],
                         one['changes'])
        self.assertEqual([300, 86400], [each['delay'] for each in one['outcomes']])

    def test_the_remedies_of_what_is_stored(self):
        self.storage.decisions.add([decisions.Decision.of(api.refusal(base.NOW))])
        self.storage.audits.put({**api.audit(base.NOW + 1), 'removals': [api.removal()]})
        self.storage.episodes.put('e1', api.episode(base.NOW + 2))
        records = engine.Records(self.storage)
        self.assertEqual(['refuse', 'remove', 'throttle'], [
            one['remedy'] for one in ledger.remedies(
                api.identity('web'), *records.told(api.identity('web'), 'alpha'), ())])
        with mock.patch.object(type(self.storage.episodes), 'of_vm', autospec=True,
                               side_effect=storage_errors.StorageFailed('here', 'away', 'wait')):
            self.assertRaises(faults.Unavailable, records.told, '', None)

    def test_the_ledger_of_stored_moves(self):
        change = {'vm': 'vm-9', 'limit': 1.5, **{
            name: {'predicted': slow, 'lower': slow - 0.1, 'upper': slow + 0.1,
                   'in_breach': slow > 1.5} for name, slow in (('before', 2.0), ('after', 1.1))}}
        self.storage.moves.add([base.move('m1', changes=(change,)), base.move('m2')])
        for name in ('m1', 'm2'):
            self.storage.moves.ended(name, base.NOW + 60, True)
        made = engine.Records(self.storage).moves(
            {'audit': None, 'vm': None, 'state': 'succeeded'}, None, 1000)
        found = {one['id']: one for one in ledger.entries(made, 0.1, base.NOW + 60 + 7200)}
        # Nothing is measured yet, so that the prediction stands.
        self.assertEqual({'lower': 2.0, 'hours': 2.0, 'upper': 2.0}, found['m1']['avoided'])
        self.assertEqual(('unknown', True), (
            found['m1']['verdict'], math.isnan(found['m2']['avoided']['hours'])))
