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

"""Sensors as servers of a real Nova, on a network of a real Neutron, read through Ceilometer."""

import json
import subprocess

from tests.functional.cloud import base
from tracon_lab.testcloud import hidden
from tracon_lab.testcloud import network
from tracon_lab.testcloud import product
from tracon_lab.testcloud import service
from tracon_watcher.probe import deployment


class TestProbes(base.CloudCase):

    port_base = 29700
    polling_seconds = 10
    patience = 120.0

    @classmethod
    def configured(cls, made):
        return product.with_product(made)

    def tracon(self, *arguments):
        found = subprocess.run(
            [service.program('tracon'), 'probe', *arguments, '-f', 'json'], capture_output=True,
            text=True, check=False,
            env={**self.cloud.environment('service', 'service'), 'PYTHONWARNINGS': 'ignore'})
        self.assertEqual(0, found.returncode, found.stderr)
        return json.loads(found.stdout)

    def gnocchi(self, path):
        return self.cloud.connection().session.get(self.settings.url('gnocchi') + path).json()

    def deploy(self):
        files = product.probe_files(self.settings)
        return {row['Host']: row['State'] for row in self.tracon(
            'deploy', '--network', network.NAME, '--generator',
            f'{self.settings.network_address}/32', '--host-type', product.HOST_TYPE, '--output',
            str(files['sensors']), '--secret-file', str(files['secret']))}

    def test_contention_that_no_counter_shows_is_found_and_avoided(self):
        product.start_engine(self.cloud, probes=True)
        found = hidden.Hidden(self.cloud, print).play(240.0)
        self.assertIsNotNone(found.found_after)
        self.assertEqual({'unknown', 'quiet', 'contended'}, {one.state for one in found.looks})
        # Whether it is surely more than the VMs there explain differs from play to play.
        self.assertEqual({'cmp1', 'cmp2'}, set(found.after.weights))
        stored = self.gnocchi('/v1/resource/nova_compute')
        metrics = {one['original_resource_id']: one['metrics'] for one in stored}
        measures = self.gnocchi(f'/v1/metric/{metrics["cmp2"]["tracon.probe.memory"]}/measures'
                                '?aggregation=last')
        self.assertGreater(max(value for _at, _granularity, value in measures), 1.2)

        # What is there stays, and what is gone is made again.
        self.assertEqual({'cmp1': 'kept', 'cmp2': 'kept'}, self.deploy())
        servers = {one.name: one for one in self.cloud.servers.all()}
        self.cloud.servers.delete(servers['tracon-probe-cmp2'])
        self.assertEqual({'cmp1': 'kept', 'cmp2': 'created'}, self.deploy())
        self.tracon('remove', '--all', '--output',
                    str(product.probe_files(self.settings)['sensors']))
        self.assertEqual([], [one.name for one in self.cloud.servers.all()
                              if one.name.startswith('tracon-probe')])
        self.assertEqual([], list(self.cloud.connection('service', 'service').network.ports(
            description=deployment.MARK)))
