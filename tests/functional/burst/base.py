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

"""Two scheduler workers, and many servers created faster than they are placed."""

import collections
import os

from nova import conf
from nova.tests import fixtures as nova_fixtures
import numpy as np
from oslo_messaging import opts as messaging_options

from tests.functional.nova import base

#: Two of these hardly disturb each other, five on a host do.
MODERATE = np.array([100.0, 50.0, 0.3, 0.05])


class BurstCase(base.InterferenceTestCase):
    mode = 'weigh'
    #: Five servers a host.
    hosts = tuple(f'host{index:02}' for index in range(20))
    creates = 100
    other = None

    def setUp(self):
        # As many requests at a time as a small conductor works on. With oslo.messaging's 64, all
        # threads of one process on SQLite wait for each other's locks.
        for _group, options in messaging_options.list_opts():
            for option in options:
                if option.name == 'executor_thread_pool_size':
                    conf.CONF.register_opt(option)
        self.flags(executor_thread_pool_size=4)
        super().setUp()
        # Idle threads that look for work all the time would leave the others hardly any. Imported
        # before Nova, futurist would bring eventlet along.
        from futurist import _thread
        self.assertGreaterEqual(_thread.ThreadWorker.MAX_IDLE_FOR, 1)
        # Counting for quotas visits each cell's database, and Nova's fixtures let threads into one
        # cell at a time: with many of them they lock each other out.
        self.flags(group='quota', driver='nova.quota.NoopQuotaDriver', recheck_quota=False,
                   count_usage_from_placement=True)
        # Nova's helper starts one service of a kind; a second worker is one more of the same.
        self.other = self.useFixture(nova_fixtures.ServiceFixture('scheduler', 'second')).service
        self.write_snapshot(*(base.host(name) for name in self.hosts), expected=MODERATE)

    def scheduler_services(self):
        return [self.scheduler_service, *([self.other] if self.other else [])]

    def burst(self, **request):
        """Create servers faster than they are placed; return how many each host has."""
        hints = request.pop('hints', None)
        body = {'server': {**self._build_server(networks='none', flavor_id=self.flavor_id),
                           **request}}
        if hints:
            body['os:scheduler_hints'] = hints
        return self.where_they_run([self.api.post_server(body) for _index in range(self.creates)])

    def where_they_run(self, created):
        """Wait until all servers are there; return how many each host has."""
        found = collections.Counter()
        for one in created:
            server = {}

            def built(one=one):
                server.update(self.api.get_server(one['id']))
                return server['status'] != 'BUILD'

            self.wait_for(built, seconds=300, pause=0.5)
            self.assertEqual('ACTIVE', server['status'], server.get('fault'))
            found[server['OS-EXT-SRV-ATTR:host']] += 1
        return found

    def assert_both_workers_took_part(self):
        self.assertEqual(2, len(self.judges()))
        files = os.listdir(os.path.join(self.directory, 'pending'))
        self.assertEqual(2, len(files), files)

    def assert_spread(self, found, most, least):
        counts = sorted(found[name] for name in self.hosts)
        self.assertEqual(self.creates, sum(counts))
        self.assertLessEqual(counts[-1], most, counts)
        self.assertGreaterEqual(counts[0], least, counts)
