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

"""The snapshot in the scheduler: the last good one is kept, and a fault is said once."""

import logging
import pathlib
from unittest import mock

import fixtures
import testtools

from nova_filters import log_once
from nova_filters import snapshot_client
from tests.unit.nova_filters import base
from tests.unit.placement import test_delta
from tracon_watcher import errors
from tracon_watcher.placement import snapshot


class FileTest(base.JudgeCase):

    def setUp(self):
        super().setUp()
        self.client = snapshot_client.SnapshotClient(
            snapshot_client.AssessmentOptions(),
            log_once.FaultLog(logging.getLogger('nova_filters')),
            base.LOG)
        self.files = snapshot_client.FileSource(self.snapshot_file, self.client)

    def lines(self):
        return [line for line in self.log.output.splitlines() if 'read from' not in line]

    def test_missing_is_said_once(self):
        for _again in range(3):
            self.files.refresh()
        self.assertIsNone(self.client.current)
        line, = self.lines()
        self.assertIn(self.snapshot_file, line)

    def test_broken_is_said_once_and_the_last_good_one_kept(self):
        self.write({'a': {}})
        self.files.refresh()
        good = self.client.current
        path = pathlib.Path(self.snapshot_file)
        path.write_bytes(path.read_bytes()[:-10])
        for _again in range(3):
            self.files.refresh()
        self.assertIs(good, self.client.current)
        line, = self.lines()
        self.assertIn('stays in use', line)

    def test_it_is_read_again_only_when_it_has_changed(self):
        self.write({'a': {}})
        self.files.refresh()
        good = self.client.current
        self.files.refresh()
        self.assertIs(good, self.client.current)
        self.write({'a': {}, 'b': {}})
        self.files.refresh()
        self.assertEqual(('a', 'b'), self.client.current.cluster.hosts)

    def test_it_is_read_again_when_it_may_be_read(self):
        self.write({'a': {}})
        with mock.patch.object(snapshot, 'read', autospec=True,
                               side_effect=errors.TraconError('forbidden')):
            self.files.refresh()
        self.files.refresh()
        self.assertIsNone(self.client.current)
        pathlib.Path(self.snapshot_file).chmod(0o640)
        self.files.refresh()
        self.assertEqual(('a',), self.client.current.cluster.hosts)

    def test_a_fault_that_comes_back_is_said_again(self):
        self.files.refresh()
        self.write({'a': {}})
        self.files.refresh()
        pathlib.Path(self.snapshot_file).unlink()
        self.files.refresh()
        self.assertEqual(2, len(self.lines()))


class WaitTest(testtools.TestCase):
    """An engine that does not answer is waited for once, not by each request."""

    def setUp(self):
        super().setUp()
        self.client = snapshot_client.SnapshotClient(
            snapshot_client.AssessmentOptions(), log_once.FaultLog(base.LOG), base.LOG)
        self.waited = []
        self.now = 100.0
        self.useFixture(fixtures.MockPatchObject(
            self.client._tried, 'wait', side_effect=self.waited.append))
        self.useFixture(fixtures.MonkeyPatch(
            'time.monotonic', lambda: self.now))

    def test_a_request_that_comes_later_does_not_wait(self):
        for _request in range(5):
            self.client.wait(2.0)
            self.now += 2.0
        self.assertEqual([2.0], self.waited)

    def test_those_that_come_with_the_first_wait_no_longer_than_it(self):
        for _request in range(8):
            self.client.wait(2.0)
            self.now += 0.5
        self.assertEqual([2.0, 1.5, 1.0, 0.5], self.waited)

    def test_no_request_waits_where_that_is_switched_off_or_all_is_known(self):
        self.client.wait(0.0)
        self.client.tried()
        self.client.wait(2.0)
        self.assertEqual([], self.waited)


class PreparedTest(base.JudgeCase):

    def client(self, **options):
        return snapshot_client.SnapshotClient(
            snapshot_client.AssessmentOptions(),
            log_once.FaultLog(logging.getLogger('nova_filters')),
            base.LOG, **options)

    def test_other_wishes_are_met_by_the_same_snapshot(self):
        client = self.client()
        client.take(test_delta.state(), 'it')
        first = client.current
        client.renew()
        self.assertIs(first, client.current)
        client.wish(snapshot_client.AssessmentOptions(0.9, 0.1, 77.0))
        self.assertIs(first, client.current)
        client.renew()
        settings = client.current.assessor.settings
        self.assertEqual((0.9, 0.1, 77.0),
                         (settings.confidence, settings.margin, settings.maximum_age))
        self.assertIs(first.content, client.current.content)
        client.take(test_delta.state((3, 8)), 'it')
        self.assertEqual(0.9, client.current.assessor.settings.confidence)

    def test_what_the_snapshot_states_holds_where_nothing_else_is_wished(self):
        client = self.client()
        client.take(test_delta.state(), 'it')
        self.assertEqual(300.0, client.current.assessor.settings.maximum_age)

    def test_it_is_made_ready_before_requests_see_it(self):
        seen = []
        client = self.client(ready=lambda prepared: seen.append((prepared, client.current)))
        client.take(test_delta.state(), 'it')
        self.assertEqual([(client.current, None)], seen)

    def test_those_that_come_often_are_no_news(self):
        client = self.client()
        client.take(test_delta.state(), 'the engine')
        client.take(test_delta.state((3, 8)), 'the engine', often=True)
        self.assertIn('Snapshot 3.7 read from the engine: 3 hosts, 6 VMs', self.log.output)
        self.assertNotIn('3.8', self.log.output)
