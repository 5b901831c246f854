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

import datetime
from unittest import mock

from tests.unit.engine.storage import base
from tracon_watcher.engine.storage import errors
from tracon_watcher.engine.storage import records

NOVEMBER = datetime.datetime(2026, 11, 30, 23, 59, tzinfo=datetime.timezone.utc).timestamp()


class TestBreaches(base.StorageCase):

    def test_sums_by_month(self):
        found = self.storage.breaches
        many = [f'vm-{number}' for number in range(1201)]
        found.add(many, 60.0, NOVEMBER)
        found.add(['vm-7', 'new'], 30.5, NOVEMBER + 59)
        found.add(['vm-7'], 5.0, NOVEMBER + 61)
        self.assertEqual({'vm-7': 90.5, 'new': 30.5, 'vm-1200': 60.0},
                         found.seconds(['vm-7', 'new', 'vm-1200', 'other'], NOVEMBER))
        self.assertEqual({'vm-7': 5.0}, found.seconds(many, NOVEMBER + 120))
        self.assertEqual({}, found.seconds([], NOVEMBER))


class TestClock(base.StorageCase):

    def setUp(self):
        super().setUp()
        self.clock = records.Clock(self.storage.breaches, 180.0)

    def seconds(self, *vms):
        return self.storage.breaches.seconds(vms, base.NOW)

    def test_counts_from_view_to_view(self):
        for after, vms in ((0, ['a']), (60, ['a']), (90, []), (150, ['a', 'b'])):
            self.clock.take(1, vms, base.NOW + after)
        self.assertEqual({'a': 120.0, 'b': 60.0}, self.seconds('a', 'b'))

    def test_what_it_did_not_see_counts_little_or_nothing(self):
        self.clock.take(1, ['a'], base.NOW)
        # The clock was put back; then for an hour there was no view.
        self.clock.take(1, ['a'], base.NOW - 50)
        self.clock.take(1, ['a'], base.NOW + 3550)
        self.assertEqual({'a': 180.0}, self.seconds('a'))
        # Another engine led meanwhile, and has counted that time.
        self.clock.take(3, ['a'], base.NOW + 3600)
        self.assertEqual({'a': 180.0}, self.seconds('a'))
        self.clock.take(3, ['a'], base.NOW + 3610)
        self.assertEqual({'a': 190.0}, self.seconds('a'))

    def test_a_database_that_is_away_costs_what_was_not_counted(self):
        self.clock.take(1, ['a'], base.NOW)
        away = errors.StorageUnavailable('sqlite://', 'away', 'wait')
        with mock.patch.object(self.storage.breaches, 'add', autospec=True, side_effect=away):
            with self.assertLogs('tracon_watcher.engine.storage.records', 'WARNING'):
                self.clock.take(1, ['a'], base.NOW + 60)
        self.clock.take(1, ['a'], base.NOW + 90)
        self.assertEqual({'a': 30.0}, self.seconds('a'))
