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

"""Servers that are deleted, as a real Nova tells the scheduler of it: in two parts."""

from unittest import mock

from nova.compute import manager
from nova import context
from nova import objects

from tests.functional.nova import base


class DeletionTest(base.InterferenceTestCase):
    """host1 has two servers; each of the other hosts has a VM that suffers no neighbour."""

    options = {'on_all_refused': 'refuse'}

    def setUp(self):
        super().setUp()
        self.write_snapshot(*(base.host(name) for name in self.hosts))
        self.servers = [self.boot(host='host1') for _each in range(2)]
        self.write_snapshot(
            base.host('host1', *(base.resident(server['id'], max_slowdown=1.5)
                                 for server in self.servers)),
            base.host('host2', base.resident('vm-2', max_slowdown=1.5)),
            base.host('host3', base.resident('vm-3', max_slowdown=1.5)))

    def counted(self):
        """Return how many instances host1's resource tracker has."""
        found = objects.ComputeNode.get_first_node_by_host_for_old_compat(
            context.get_admin_context(), 'host1')
        return int(found.stats['num_instances'])

    def listed(self):
        """Return how many instances the scheduler lists on host1."""
        info = self.scheduler_service.manager.host_manager._instance_info
        return len(info['host1']['instances'])

    def test_two_at_once_leave_no_vm_behind(self):
        told = []
        tell = manager.ComputeManager._delete_scheduler_instance_info
        with mock.patch.object(manager.ComputeManager, '_delete_scheduler_instance_info',
                               lambda *arguments: told.append(arguments)):
            for server in self.servers:
                self._delete_server(server)
            self.assertEqual((0, 2, 2), (self.counted(), self.listed(), len(told)))
            # A request that looks at host1 now sees it count two less than it lists.
            self.boot('ERROR')
        for arguments in told:
            tell(*arguments)
        self.wait_for(lambda: self.listed() == 0)
        # It tolerates no busy neighbour, and nor do those of the other hosts.
        server = self.boot(flavor_id=self.limited_flavor(max_slowdown='1.5'))
        self.assertEqual('host1', self.host_of(server))
