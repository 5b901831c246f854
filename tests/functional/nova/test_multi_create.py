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

"""A request for several servers: Nova looks for alternate hosts once all of them are placed."""

from nova_filters import decision_record
from tests.functional.nova import base
from tracon_watcher.messaging import protocol


class MultiCreateTest(base.InterferenceTestCase):
    mode = 'weigh'

    def setUp(self):
        super().setUp()
        self.write_snapshot(*(base.host(name) for name in self.hosts))
        self.boot()
        self.judge, = self.judges()
        self.told = {protocol.RECORD_DECISIONS: [], protocol.SETTLED: []}
        self.judge._decisions = decision_record.DecisionQueue(
            lambda method, document: self.told[method].append(document), self.judge.faults)

    def create(self, count):
        """Create servers by one request; return their ids when all are there."""
        self._wait_for_state_change(self.api.post_server({'server': {
            **self._build_server(networks='none', flavor_id=self.flavor_id, name='several'),
            'min_count': count, 'max_count': count}}), 'ACTIVE')
        found = []

        def there():
            found[:] = [server['id'] for server in self.api.get_servers(detail=True)
                        if server['name'].startswith('several') and server['status'] == 'ACTIVE']
            return len(found) == count

        self.wait_for(there)
        return found

    def test_each_server_has_one_decision_which_is_settled(self):
        created = self.create(2)
        self.wait_for(lambda: len(self.told[protocol.SETTLED]) >= 2)
        made = {one['id']: one['vm'] for one in self.told[protocol.RECORD_DECISIONS]}
        self.assertEqual(sorted(created), sorted(made.values()))
        settled = {one['id']: one['vm'] for one in self.told[protocol.SETTLED]}
        self.assertEqual(made, settled)
        self.assertTrue(all(one['chosen'] in self.hosts for one in self.told[protocol.SETTLED]))
