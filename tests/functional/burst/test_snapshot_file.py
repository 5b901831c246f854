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

"""Many creates over two scheduler workers spread, though no snapshot shows them."""

from tests.functional.burst import base


class InterferenceAloneTest(base.BurstCase):
    """No stock weigher helps: those would see the memory that the others took."""

    weight_classes = ['nova_filters.interference_weigher.InterferenceWeigher']

    def test_single_creates(self):
        found = self.burst()
        self.assert_both_workers_took_part()
        self.assert_spread(found, most=8, least=2)


class BesideStockWeighersTest(base.BurstCase):
    hosts = base.BurstCase.hosts[:8]
    creates = 40

    def test_single_creates_in_a_server_group(self):
        group = self.api.post_server_groups(
            {'name': 'spread', 'policy': 'soft-anti-affinity'})
        found = self.burst(hints={'group': group['id']})
        self.assert_both_workers_took_part()
        self.assert_spread(found, most=8, least=2)


class MultiCreateTest(base.BurstCase):
    hosts = base.BurstCase.hosts[:8]
    creates = 40
    weight_classes = ['nova_filters.interference_weigher.InterferenceWeigher']

    def test_two_requests(self):
        server = self._build_server(networks='none', flavor_id=self.flavor_id)
        server.update(min_count=self.creates // 2, max_count=self.creates // 2,
                      return_reservation_id=True)
        created = []
        for _again in range(2):
            found = self.api.post_server({'server': server})['reservation_id']
            created += self.api.get_servers(search_opts={'reservation_id': found})
        self.assertEqual(self.creates, len(created))
        self.assert_spread(self.where_they_run(created), most=8, least=2)
