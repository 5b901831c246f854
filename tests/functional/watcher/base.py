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

# Before anything imports Nova: its own threads, and the door's, are native ones.
os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')

from nova.tests.functional import integrated_helpers  # noqa: E402
import sqlalchemy.exc  # noqa: E402

from tests import synthetic  # noqa: E402
from tracon_watcher.demo import door  # noqa: E402
from tracon_watcher.demo import watcher_box  # noqa: E402
from tracon_watcher.placement import cluster  # noqa: E402
from tracon_watcher.placement import limits  # noqa: E402
from tracon_watcher.placement import snapshot  # noqa: E402

#: Shares of the synthetic host type's capacity. Two heavy ones on a host harm each other.
HEAVY = (0.4, 0.4, 0.4, 0.4)
LIGHT = (0.05, 0.05, 0.05, 0.05)
IDLE = (0.0, 0.0, 0.0, 0.0)


class WatcherTestCase(integrated_helpers.ProviderUsageBaseTestCase):
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

        :param demands: by uuid, shares of the synthetic host type's capacity
        :param tolerances: limits by uuid
        """
        residents: dict[str, list[cluster.Resident]] = {host: [] for host in self.HOSTS}
        for uuid, demand in demands.items():
            residents[self.host_of(uuid)].append(cluster.Resident(
                uuid, [share * top for share, top in zip(demand, synthetic.CAPACITY)],
                (tolerances or {}).get(uuid, limits.NONE)))
        then = time.time() - age
        state = cluster.build([
            cluster.Host(host, tuple(vms), synthetic.HOST_TYPE, cluster.LOCAL, then)
            for host, vms in residents.items()], version=1, generated_at=then)
        snapshot.write(self.snapshot_file, state, synthetic.models())

    def moves(self, outcome: watcher_box.Outcome) -> list[tuple[str, str, str]]:
        """Return (uuid, source, destination) of an action plan's live migrations, in order."""
        for action in outcome.actions:
            self.assertEqual(('migrate', 'live'),
                             (action.kind, action.parameters['migration_type']))
        return [(action.parameters['resource_id'], action.parameters['source_node'],
                 action.parameters['destination_node']) for action in outcome.actions]
