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

from tests.unit.engine.storage import base
from tracon_watcher.engine.storage import errors
from tracon_watcher.engine.storage import lease


class TestLease(base.StorageCase):

    def setUp(self):
        super().setUp()
        self.lease = self.storage.lease

    def test_free_at_first(self):
        sight = self.lease.look()
        self.assertEqual((None, 0, 0), (sight.holder, sight.epoch, sight.version))

    def test_one_of_two_who_saw_the_same_takes_it(self):
        sight = self.lease.look()
        self.assertEqual(1, self.lease.take(sight, 'a').epoch)
        self.assertIsNone(self.lease.take(sight, 'b'))
        self.assertEqual('a', self.lease.look().holder)

    def test_a_renewal_comes_before_a_taker_that_did_not_see_it(self):
        term = self.lead('a')
        sight = self.lease.look()
        self.lease.renew(term)
        self.assertIsNone(self.lease.take(sight, 'b'))
        self.lease.renew(term)

    def test_a_fenced_write_is_a_sign_of_life(self):
        term = self.lead('a')
        sight = self.lease.look()
        self.lease.next_version(term)
        self.assertIsNone(self.lease.take(sight, 'b'))

    def test_who_lost_it_writes_nothing(self):
        old = self.lead('a')
        self.lease.next_version(old)
        new = self.lead('b')
        for call in (self.lease.renew, self.lease.release, self.lease.next_version):
            with self.assertRaisesRegex(errors.NoLongerLeader, 'epoch 1 is over'):
                call(old)
        self.assertEqual(('b', 2, 1), (self.lease.look().holder, self.lease.look().epoch,
                                       self.lease.look().version))
        self.lease.renew(new)

    def test_a_term_is_that_of_its_holder(self):
        """An epoch alone, had it been lost by the database, would not do."""
        term = self.lead('a')
        with self.assertRaises(errors.NoLongerLeader):
            self.lease.renew(type(term)('b', term.epoch))

    def test_released(self):
        term = self.lead('a')
        self.lease.release(term)
        self.assertIsNone(self.lease.look().holder)
        with self.assertRaises(errors.NoLongerLeader):
            self.lease.next_version(term)
        self.assertEqual(2, self.lead('a').epoch)

    def test_versions_rise_over_epochs_and_restarts(self):
        told = []
        for holder in ('a', 'b', 'a'):
            term = self.lead(holder)
            told += [self.lease.next_version(term) for _turn in range(3)]
            self.storage.close()
        self.assertEqual([(1, 1), (1, 2), (1, 3), (2, 4), (2, 5), (2, 6), (3, 7), (3, 8), (3, 9)],
                         told)

    def test_what_is_fenced_is_undone_with_the_rest(self):
        term = self.lead('a')
        before = self.lease.look()

        def write(connection):
            lease.fence(connection, term, version=99)
            raise KeyError('of the caller')

        with self.assertRaises(KeyError):
            self.database.write(write)
        self.assertEqual(before, self.lease.look())

    def test_a_lost_row_is_not_replaced(self):
        self.execute('DELETE FROM leases')
        with self.assertRaisesRegex(errors.StorageFailed, 'tracon db restored'):
            self.lease.look()
        self.assertEqual(1900000001, self.lease.restored(1.9e9))
        self.assertEqual(1900000001, self.lead().epoch)

    def test_after_a_backup_was_put_back(self):
        """Epochs that were given out after it was made are not given out again."""
        old = self.lead('a')
        self.lease.next_version(old)
        self.assertEqual(1000002, self.lease.restored(5.0))
        with self.assertRaises(errors.NoLongerLeader):
            self.lease.renew(old)
        self.assertIsNone(self.lease.look().holder)
        self.assertEqual((1000002, 2), self.lease.next_version(self.lead('b')))
