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

"""What the engine and the strategy list, from a real Nova: as it is, and with a cell down."""

import contextlib
import types
from unittest import mock

from nova.compute import rpcapi
from nova import context
from nova import objects
from nova.tests import fixtures as nova_fixtures

from tests.functional.nova import base
from tracon_watcher.decision_engine import inventory as strategy_inventory
from tracon_watcher.engine import inventory_cache
from tracon_watcher.inventory import cloud


class Compute:
    """Nova's API as the SDK has it."""

    def __init__(self, client):
        self.client = client
        self.asked = []

    def get(self, path, params=None, microversion=None):
        self.asked.append(path)
        kept, self.client.microversion = self.client.microversion, microversion
        try:
            query = '&'.join(f'{name}={value}' for name, value in (params or {}).items())
            answer = self.client.api_request(f'{path}?{query}' if query else path)
        finally:
            self.client.microversion = kept
        return answer


class Empty:
    """A service that has nothing."""

    def get(self, path, params=None, microversion=None):
        key = {'/ports': 'ports', '/volumes/detail': 'volumes'}.get(path, 'provider_summaries')
        found = {} if key == 'provider_summaries' else []
        return types.SimpleNamespace(status_code=200, headers={}, json=lambda: {key: found})


class InventoryTest(base.InterferenceTestCase):
    mode = 'advise'

    def setUp(self):
        super().setUp()
        self.write_snapshot(*(base.host(name) for name in self.hosts))
        nothing = Empty()
        self.connection = types.SimpleNamespace(
            compute=Compute(self.admin_api), network=nothing, placement=nothing,
            block_storage=nothing)

    @staticmethod
    def cell():
        """Return the one cell that hosts are in."""
        found = objects.CellMappingList.get_all(context.get_admin_context())
        return objects.CellMappingList(objects=[one for one in found if not one.is_cell0()])

    @contextlib.contextmanager
    def calls(self):
        """Take down what is asked of compute hosts."""
        with mock.patch.object(rpcapi.ComputeAPI, 'get_host_uptime', autospec=True,
                               return_value='up 1 day') as asked:
            yield asked

    def test_a_listing_asks_no_host(self):
        self.boot()
        with self.calls() as asked:
            found = cloud.collect(self.connection)
            self.assertEqual(set(self.hosts), set(found.hypervisors))
            self.assertTrue(all(one.up and one.reachable for one in found.hypervisors.values()))
            self.assertEqual(0, asked.call_count)
            # Those of the fake driver.
            self.assertEqual({10}, {one.cores for one in found.hypervisors.values()})

    def test_the_volumes_of_one_vm(self):
        server = self.boot()
        self.assertEqual(cloud.Volumes((), {}),
                         cloud.volumes_of(self.connection, server['id'], {}))
        self.assertEqual([f'/servers/{server["id"]}'], self.connection.compute.asked)
        missing = '00000000-0000-4000-8000-000000000000'
        self.assertIsNone(cloud.volumes_of(self.connection, missing, {}))

    def test_while_a_cell_is_down_its_vms_stay_where_they_were(self):
        # Nova's schema of a VM's answer lacks the record that it gives then; by default it only
        # warns of that, as an error only in tests.
        self.flags(group='api', response_validation='warn')
        servers = [self.boot() for _again in range(2)]
        seen = inventory_cache.InventoryCache()
        seen.replace(cloud.collect(self.connection))
        before = {uuid: one.host for uuid, one in seen.current().servers.items()}
        self.assertEqual({one['id'] for one in servers}, set(before))
        with nova_fixtures.DownCellFixture(self.cell()):
            found = cloud.collect(self.connection)
            self.assertEqual((set(self.hosts), {}), (found.unreachable, found.servers))
            self.assertEqual(0, seen.replace(found))
            self.assertEqual(before, {uuid: one.host
                                      for uuid, one in seen.current().servers.items()})
            self.assertEqual({10}, {one.cores for one in seen.current().hypervisors.values()})
            # Nova says of one VM what it knows of it without its cell.
            self.assertIsNone(cloud.volumes_of(self.connection, servers[0]['id'], {}))
            # Nor does an audit fail.
            listed = strategy_inventory.collect(self.connection, 0.0)
            self.assertEqual({}, listed.servers)
            self.assertEqual({(name, False, False) for name in self.hosts}, {
                (one.host, one.up, one.reachable) for one in listed.services.values()})
        # It is back; no message came of one VM that went meanwhile.
        self._delete_server(servers[0])
        self.assertEqual(1, seen.replace(cloud.collect(self.connection)))
        self.assertEqual({servers[1]['id']}, set(seen.current().servers))
