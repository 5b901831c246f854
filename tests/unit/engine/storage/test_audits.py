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
from tracon_watcher import errors


def audit(uuid, at=base.NOW, **values):
    return {'audit': uuid, 'at': at, **values}


class TestAudits(base.StorageCase):

    def test_the_latest_run_of_each(self):
        audits = self.storage.audits
        self.assertIsNone(audits.get())
        audits.put(audit('one', base.NOW, reason='first'))
        audits.put(audit('two', base.NOW + 1))
        self.assertEqual('first', audits.get('one')['reason'])
        self.assertEqual('two', audits.get()['audit'])
        audits.put(audit('one', base.NOW + 2, reason='second'))
        self.assertEqual(audit('one', base.NOW + 2, reason='second'), audits.get())
        self.assertEqual('second', audits.get('one')['reason'])
        self.assertIsNone(audits.get('three'))

    def test_what_does_not_fit_is_refused_and_nothing_is_lost(self):
        self.storage.audits.put(audit('one'))
        for wrong in (audit('x' * 65), audit('one', reason='x' * (5 << 20))):
            self.assertRaises(errors.InvalidDocument, self.storage.audits.put, wrong)
        self.assertEqual(audit('one'), self.storage.audits.get('one'))
