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

"""A real Nova in the test's process, a real Watcher beside it, and a snapshot between them."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from typing import Any, Mapping, Sequence
import warnings

from nova import context
from nova import objects
from nova.tests.functional import integrated_helpers
import sqlalchemy.exc

from tests.functional import patient
from tests import synthetic
from tracon_lab.demo import door
from tracon_lab.demo import idle_threads
from tracon_lab.demo import watcher_box
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import snapshot

#: Shares of a core and of what a disk can do. Two heavy ones on a core harm each other.
HEAVY = (0.4, 0.4, 0.4, 0.4)
LIGHT = (0.0, 0.0, 0.05, 0.05)
IDLE = (0.0, 0.0, 0.0, 0.0)


class WatcherTestCase(patient.Patient, integrated_helpers.ProviderUsageBaseTestCase):
    """Nova with a few computes, and a Watcher that reaches it over HTTP.

    :cvar HOSTS: names of the computes
    """

    compute_driver = 'fake.MediumFakeDriver'
    microversion = 'latest'
    HOSTS = ('host1', 'host2', 'host3')

    def setUp(self) -> None:
        # pip puts Nova's data files where Nova's tests do not look for them.
        self.flags(api_paste_config=os.path.join(sys.prefix, 'etc', 'nova', 'api-paste.ini'),
                   group='wsgi')
        with idle_threads.asleep():
            super().setUp()
        # Nova's fixture makes errors of warnings that are SQLAlchemy's own.
        warnings.filterwarnings('ignore', category=sqlalchemy.exc.SADeprecationWarning)
        for host in self.HOSTS:
            self._start_compute(host)
        self.directory = tempfile.mkdtemp(prefix='tracon-watcher-')
        self.addCleanup(shutil.rmtree, self.directory)
        self.snapshot_file = os.path.join(self.directory, 'snapshot.json')
        self.door = door.Door.of_nova(self.api_fixture, self.placement.fixture, self.neutron)
        self.door.start()
        self.addCleanup(self.door.stop)
        self.box = watcher_box.WatcherBox(self.door.url, self.directory, self.snapshot_file)
        self.box.start()
        self.addCleanup(self.box.stop)

    def boot(self, host: str, **server: Any) -> str:
        """Boot a VM on a host and return its uuid."""
        hints = server.pop('hints', None)
        request: dict[str, Any] = {'server': {
            **self._build_server(networks=server.pop('networks', 'none'), host=host), **server}}
        if hints is not None:
            request['os:scheduler_hints'] = hints
        created = self.api.post_server(request)
        return str(self._wait_for_state_change(created, 'ACTIVE')['id'])

    def host_of(self, uuid: str) -> str:
        """Return where Nova has a VM."""
        return str(self.api.get_server(uuid)['OS-EXT-SRV-ATTR:host'])

    def write_snapshot(self, demands: Mapping[str, Sequence[float]],
                       tolerances: Mapping[str, limits.Limits] | None = None,
                       age: float = 0.0) -> None:
        """Write what VMs do, where Nova has them now.

        :param demands: by uuid, shares of :data:`tests.synthetic.CAPACITY`
        :param tolerances: limits by uuid
        """
        residents: dict[str, list[cluster.Resident]] = {host: [] for host in self.HOSTS}
        for uuid, demand in demands.items():
            residents[self.host_of(uuid)].append(cluster.Resident(
                uuid, [share * top for share, top in zip(demand, synthetic.CAPACITY)],
                (tolerances or {}).get(uuid, limits.NONE)))
        then = time.time() - age
        state = cluster.build([
            cluster.Host(host, tuple(vms), synthetic.HOST_TYPE, cluster.LOCAL, then, 1)
            for host, vms in residents.items()], version=1, generated_at=then)
        snapshot.write(self.snapshot_file, state)

    def edit(self, uuid: str, extra_specs: Mapping[str, str] | None = None,
             image: Mapping[str, str] | None = None, **fields: Any) -> None:
        """Change a VM in Nova's database, for what the fake driver cannot bring about.

        :param extra_specs: of its flavor
        :param image: properties of its image
        """
        admin = context.get_admin_context()
        mapping = objects.InstanceMapping.get_by_instance_uuid(admin, uuid)
        with context.target_cell(admin, mapping.cell_mapping) as cell:
            vm = objects.Instance.get_by_uuid(cell, uuid, ['flavor', 'system_metadata'])
            if extra_specs is not None:
                flavor = vm.flavor.obj_clone()
                flavor.extra_specs = dict(extra_specs)
                vm.flavor = flavor
            if image is not None:
                vm.system_metadata = {
                    **{key: value for key, value in vm.system_metadata.items()
                       if key != 'image_hw_cpu_policy'},
                    **{f'image_{key}': value for key, value in image.items()}}
            for name, value in fields.items():
                setattr(vm, name, value)
            vm.save()

    def migrate(self, uuid: str, host: str) -> None:
        """Live-migrate a VM, as another mover would."""
        server = self.api.get_server(uuid)
        self.api.post_server_action(uuid, {
            'os-migrateLive': {'host': host, 'block_migration': 'auto'}})
        self._wait_for_server_parameter(
            server, {'OS-EXT-SRV-ATTR:host': host, 'status': 'ACTIVE'})

    def moves(self, outcome: watcher_box.Outcome) -> list[tuple[str, str, str]]:
        """Return (uuid, source, destination) of an action plan's live migrations, in order."""
        for action in outcome.actions:
            self.assertEqual(('migrate', 'live'),
                             (action.kind, action.parameters['migration_type']))
        return [(action.parameters['resource_id'], action.parameters['source_node'],
                 action.parameters['destination_node']) for action in outcome.actions]
