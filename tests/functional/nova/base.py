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

"""A cloud in one process: Nova's real API, conductor, scheduler and Placement, on SQLite."""

import json
import logging
import os
import sys
import time
import warnings

import fixtures
from nova import conf
from nova.tests.functional import integrated_helpers
import numpy as np
import sqlalchemy.exc

from nova_filters import worker
from tests.functional import patient
from tests import synthetic
from tracon_lab.demo import idle_threads
from tracon_watcher.conf import nova_filters as conf_module
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import snapshot

# It tells of each pool that ends with a test, after the test's own log has been taken away.
logging.getLogger('nova.thread_pool_factory').setLevel(logging.WARNING)

#: A VM that keeps nearly a core and half of the disk busy, and one that hardly does anything.
BUSY = np.array([400.0, 100.0, 0.8, 0.1])
QUIET = np.array([10.0, 5.0, 0.05, 0.01])


def resident(uuid, profile=BUSY, max_slowdown=None, storage=None):
    """Return a VM of the snapshot."""
    tolerance = limits.NONE if max_slowdown is None else limits.Limits(max_slowdown)
    return cluster.Resident(uuid, profile, tolerance, storage)


def host(name, *residents, age=0.0, storage=cluster.LOCAL):
    """Return a host of the snapshot, with one core."""
    return cluster.Host(name, residents, synthetic.HOST_TYPE, storage, time.time() - age, 1)


class InterferenceTestCase(patient.Patient, integrated_helpers.ProviderUsageBaseTestCase):
    """Stock options only; the snapshot is a file that the test writes, unless said otherwise."""

    compute_driver = 'fake.MediumFakeDriver'
    hosts = ('host1', 'host2', 'host3')
    mode = 'enforce'
    options: dict = {}
    #: Whether the scheduler shall see the VMs that the snapshot invents.
    enabled_filters = ['ComputeFilter', 'ComputeCapabilitiesFilter', 'ImagePropertiesFilter',
                       'ServerGroupAntiAffinityFilter', 'ServerGroupAffinityFilter',
                       'InterferenceFilter']
    weight_classes = ['nova.scheduler.weights.all_weighers',
                      'nova_filters.interference_weigher.InterferenceWeigher']

    def setUp(self):
        self.directory = self.useFixture(fixtures.TempDir()).path
        self.snapshot_file = os.path.join(self.directory, 'snapshot.jsonl')
        self.version = 0
        conf_module.register_opts(conf.CONF)
        self.flags(group='filter_scheduler',
                   available_filters=['nova.scheduler.filters.all_filters',
                                      'nova_filters.interference_filter.InterferenceFilter'],
                   enabled_filters=self.enabled_filters, weight_classes=self.weight_classes)
        self.flags(group='tracon', snapshot_file=self.snapshot_file, mode=self.mode,
                   snapshot_refresh_seconds=0.1, initial_wait_seconds=10.0,
                   pending_directory=os.path.join(self.directory, 'pending'), **self.options)
        # Where pip puts Nova's files; Nova itself looks for them beside its sources.
        self.flags(group='wsgi', api_paste_config=os.path.join(
            sys.prefix, 'etc/nova/api-paste.ini'))
        with idle_threads.asleep():
            super().setUp()
        # Nova's own fixture turns every warning of SQLAlchemy 2.1 about itself into an error.
        warnings.filterwarnings('ignore', category=sqlalchemy.exc.SADeprecationWarning)
        self.log = self.useFixture(fixtures.FakeLogger('nova_filters', level=logging.INFO))
        worker._faults.mended('unexpected')
        self.addCleanup(self._close_judges)
        for name in self.hosts:
            self._start_compute(name)
        self.flavor_id = self._create_flavor(vcpu=1, memory_mb=256, disk=1, name='synthetic')

    def write_snapshot(self, *hosts, expected=BUSY, deviation=None, wait=True):
        """Write the snapshot and wait until the scheduler's worker has it, if it runs already.

        :param expected: the profile that earlier VMs had
        """
        history = {} if expected is None else {
            newcomer_profiles.ALL: newcomer_profiles.Profile(
                expected, np.zeros(4) if deviation is None else deviation, 3, 'all VMs')}
        self.version += 1
        state = cluster.build(hosts, history, self.version, time.time())
        self.publish(state)
        for judge in self.judges() if wait else ():
            self.wait_for(lambda judge=judge: judge.snapshots.current is not None
                          and judge.snapshots.current.cluster.version == self.version)

    def publish(self, state):
        """Put a snapshot where the scheduler finds it."""
        snapshot.write(self.snapshot_file, state)

    def judges(self):
        """Return the judges that run in this process."""
        found = [filter_._worker._judge for service in self.scheduler_services()
                 for filter_ in service.manager.host_manager.enabled_filters
                 if hasattr(filter_, '_worker')]
        latest = worker.latest()
        found.append(latest._judge if latest is not None else None)
        return [judge for judge in dict.fromkeys(found) if judge is not None]

    def scheduler_services(self):
        """Return the schedulers that the test has started."""
        return [self.scheduler_service]

    def wait_for(self, condition, seconds=patient.SECONDS, pause=0.05):
        """Wait until ``condition()`` holds."""
        end = time.monotonic() + seconds
        while not condition():
            self.assertLess(time.monotonic(), end, 'waited in vain')
            time.sleep(pause)

    def boot(self, expected_state='ACTIVE', **request):
        """Create a server and return it when it is there."""
        hints = request.pop('hints', None)
        server = self._build_server(networks='none', flavor_id=request.pop(
            'flavor_id', self.flavor_id))
        server.update(request)
        body = {'server': server}
        if hints:
            body['os:scheduler_hints'] = hints
        return self._wait_for_state_change(self.api.post_server(body), expected_state)

    def host_of(self, server):
        """Return where a server is."""
        return self.admin_api.get_server(server['id'])['OS-EXT-SRV-ATTR:host']

    def limited_flavor(self, **limits_):
        """Create a flavor with limits, such as ``max_slowdown='1.2'``."""
        return self._create_flavor(
            vcpu=1, memory_mb=256, disk=1,
            extra_spec={f'tracon:{key}': value for key, value in limits_.items()})

    def aggregate(self, name, metadata, *hosts):
        """Create a host aggregate."""
        found = self.admin_api.post_aggregate({'aggregate': {'name': name}})
        for one in hosts:
            self.admin_api.add_host_to_aggregate(found['id'], one)
        self.admin_api.post_aggregate_action(
            found['id'], {'set_metadata': {'metadata': metadata}})

    def records(self):
        """Return the JSON of each logged record about breaches."""
        return [json.loads(line[line.index('{'):]) for line in self.log.output.splitlines()
                if line.startswith('Interference of instance')]

    def _close_judges(self):
        for judge in self.judges():
            judge.close()
        worker._latest = None
