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

"""How long the pages of Horizon take in a large synthetic cloud, beside a page of Horizon's own.

Usage: python -m tests.functional.dashboard.pages_bench [HOSTS [VMS_PER_HOST]]

The engine's API, Horizon and a stand-in for Keystone and Watcher are one process. Seconds are of
the wall clock, from request to answer: the first time that a page is asked for after the engine
has collected, and the median of five more. The memory is that of the whole process.
"""

import resource
import statistics
import sys
import time

import numpy as np

from tests.functional.dashboard import horizon
from tests.unit.api import base
from tests.unit.osc import documented
from tracon_lab.cmd import bench_cluster
from tracon_watcher.engine import view as views
from tracon_watcher.placement import assessment

TURNS = 5


class Bench(horizon.Cloud):

    def runTest(self):
        hosts, vms_per_host = self.size
        self.view = documented.cloud()
        horizon.configure(self.begin())
        from django import test
        from django.test import utils
        self.enterContext(utils.override_settings(
            COMPRESS_PRECOMPILERS=(), OPENSTACK_KEYSTONE_URL=f'{self.identity.url}/v3'))
        self.client = test.Client()
        self.client.post('/auth/login/', {
            'username': base.ADMIN, 'password': 'x', 'region': 'default',
            'auth_type': 'credentials'})
        self.tell('all pages of a small cloud, Horizon and the API', '', '')
        for path in self.pages(documented.identity('shop-db'), 'compute-1'):
            self.client.get(path)
        state = bench_cluster.build(hosts, vms_per_host, 0.1)
        self.now = time.time()
        judged = assessment.Assessor(state)
        noise = np.random.default_rng(1).normal(1.0, 0.05, len(state.uuids))
        self.view = views.View(5, judged, judged, {
            uuid: views.VM(uuid, f'vm-{row}', f'project-{row % 97}', state.hosts[state.host[row]])
            for row, uuid in enumerate(state.uuids)},
            np.maximum(judged.log_responses()[0] * noise, 0.0) + 1.0, 0.1, self.now)
        self.tell(f'a cloud of {hosts} hosts, {len(state.uuids)} VMs', '', '')
        began = time.perf_counter()
        # As the engine does after each collection.
        self.api.state.prepare()
        self.tell('worked out once a collection', time.perf_counter() - began, '')
        for path in self.pages(state.uuids[0], state.hosts[0]):
            self.tell(path, *self.times(path))

    def pages(self, vm, host):
        yield '/settings/'
        yield '/admin/interference_overview/'
        yield '/admin/interference_vms/'
        yield '/admin/interference_hosts/'
        yield '/admin/interference_recommendations/'
        yield f'/admin/interference_vms/{vm}/'
        yield f'/admin/interference_hosts/{host}/'

    def times(self, path):
        """Return how long a page takes first, and then."""
        took = []
        for _turn in range(TURNS + 1):
            began = time.perf_counter()
            answer = self.client.get(path)
            took.append(time.perf_counter() - began)
            self.assertEqual(200, answer.status_code, path)
        return took[0], statistics.median(took[1:])

    def tell(self, what, first, then):
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f'{what:65} ' + ' '.join(f'{one:8.3f}' if one != '' else 8 * ' '
                                       for one in (first, then)) + f' {peak:8.0f} MiB', flush=True)


if __name__ == '__main__':
    Bench.size = (*map(int, sys.argv[1:]), 10_000, 20)[:2] if len(sys.argv) < 3 else tuple(
        map(int, sys.argv[1:3]))
    result = Bench().run()
    for _case, words in result.errors + result.failures:
        print(words)
    sys.exit(bool(result.errors or result.failures))
