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

"""A judge on a snapshot, with Nova's own HostStates and RequestSpecs."""

import logging
import os
import time
import uuid

import fixtures
from nova import objects
from nova.scheduler import host_manager
import numpy as np
from oslo_config import cfg
import testtools

from nova_filters import policy
from nova_filters import request_assessor
from tests import synthetic
from tests.unit import brokers
from tracon_watcher.messaging import engine_client
from tracon_watcher.messaging import protocol
from tracon_watcher.messaging import publisher
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import snapshot

BUSY = np.array([400.0, 100.0, 0.8, 0.1])
LOG = logging.getLogger('nova_filters')


def host_state(name, uuids=(), aggregates=()):
    """Return a HostState with these instances."""
    state = host_manager.HostState(name, name, None)
    state.instances = {one: objects.Instance(uuid=one) for one in uuids}
    state.num_instances = len(state.instances)
    state.aggregates = list(aggregates)
    state.updated = time.time()
    return state


def request_spec(extra_specs=None, **fields):
    """Return the request for one new VM."""
    values = {'image': None, 'requested_destination': None, 'scheduler_hints': {},
              'ignore_hosts': None, 'force_hosts': None, 'force_nodes': None, **fields}
    return objects.RequestSpec(
        instance_uuid=str(uuid.uuid4()), project_id='project', num_instances=1,
        flavor=objects.Flavor(name='synthetic', extra_specs=extra_specs or {}), **values)


def consume(state):
    """Do to a HostState what Nova does to the one it has chosen."""
    state.num_instances += 1
    state.updated = time.time()


class JudgeCase(testtools.TestCase):
    """Makes judges that share one snapshot and one directory.

    The snapshot is a file, or with ``source = 'engine'`` comes from an engine in this process.
    """

    source = 'file'
    publisher = None

    def setUp(self):
        super().setUp()
        broker = brokers.of_its_own()
        broker.start()
        self.addCleanup(broker.stop)
        self.patience(120.0)
        objects.register_all()
        self.directory = self.useFixture(fixtures.TempDir()).path
        self.snapshot_file = os.path.join(self.directory, 'snapshot.jsonl')
        self.version = 0
        self.log = self.useFixture(fixtures.FakeLogger('nova_filters', level=logging.INFO))

    def patience(self, seconds):
        """Have the engine waited for so long by whatever is made from now on."""
        self.useFixture(fixtures.MockPatchObject(engine_client.EngineClient.__init__,
                                                 '__defaults__', (seconds,)))

    def write(self, hosts, expected=BUSY, age=0.0, more=(), **taught):
        """Write a snapshot: by host name, the residents' limits on the slowdown by uuid.

        Each host has one core.

        :param more: hosts as the cluster's
        :param taught: what an engine knows besides, as :class:`snapshot.Snapshot` has it
        """
        self.version += 1
        history = {} if expected is None else {
            newcomer_profiles.ALL: newcomer_profiles.Profile(expected, np.zeros(4), 3, 'all VMs')}
        state = cluster.build([*(cluster.Host(
            name, tuple(cluster.Resident(
                one, BUSY, limits.NONE if limit is None else limits.Limits(limit))
                for one, limit in residents.items()), synthetic.HOST_TYPE, cluster.LOCAL,
            time.time() - age, 1) for name, residents in hosts.items()), *more],
            history, self.version, time.time())
        if self.source == 'file':
            snapshot.write(self.snapshot_file, state)
        else:
            self.engine().publish(snapshot.Snapshot(state, 900.0, 1, **taught))

    def engine(self):
        """Return the engine that publishes, and takes decisions."""
        if self.publisher is None:
            self.told = {protocol.RECORD_DECISIONS: [], protocol.SETTLED: []}
            self.publisher = publisher.Publisher(
                self.connect, 'engine', self.told[protocol.RECORD_DECISIONS].extend,
                self.told[protocol.SETTLED].extend, LOG)
            self.publisher.start()
            self.addCleanup(self.publisher.stop)
            self.wait_for(lambda: self.publisher._transport is not None)
        return self.publisher

    @staticmethod
    def connect():
        """Return a transport to the engine."""
        return protocol.connector(cfg.CONF, 'fake://')()

    def judge(self, **changes):
        """Return a judge; ``mode`` is enforce unless said otherwise."""
        values = {'snapshot_refresh_seconds': 0.05, 'initial_wait_seconds': 120.0,
                  'mode': 'enforce', 'pending_directory': os.path.join(self.directory, 'p'),
                  **changes}
        found = request_assessor.RequestAssessor(policy.Options(self.snapshot_file, self.source,
                                                                **values), LOG,
                                                 connect=self.connect)
        self.addCleanup(found.close)
        return found

    def wait_for(self, condition):
        """Wait until ``condition()`` holds."""
        end = time.monotonic() + 120
        while not condition():
            self.assertLess(time.monotonic(), end, 'waited in vain')
            time.sleep(0.01)
