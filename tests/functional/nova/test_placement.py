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

"""A boot through the real scheduler: what is refused, what is preferred."""

from tests.functional.nova import base


class RefusalTest(base.InterferenceTestCase):

    def test_a_host_whose_resident_would_suffer_is_refused(self):
        self.write_snapshot(base.host('host1', base.resident('vm-a', max_slowdown=1.05)),
                            base.host('host2', base.resident('vm-b', max_slowdown=1.05)),
                            base.host('host3'))
        server = self.boot()
        self.assertEqual('host3', self.host_of(server))
        record, = self.records()
        self.assertEqual('refused', record['outcome'])
        self.assertEqual(server['id'], record['instance'])
        self.assertEqual({'resident slowdown': 2}, record['reasons'])
        self.assertEqual({('host1', 'vm-a'), ('host2', 'vm-b')},
                         {(one['host'], one['vm']) for one in record['worst']})
        for one in record['worst']:
            self.assertAlmostEqual(1.05, one['limit'])
            self.assertGreater(one['predicted_bound'], 1.05)
