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

"""Which requests are moves, by what a RequestSpec shows of them."""

from nova import objects
import testtools

from nova_filters import request
from tests.unit.nova_filters import base


class OperationTest(testtools.TestCase):

    def setUp(self):
        super().setUp()
        objects.register_all()

    def refusable(self, resident=False, **fields):
        return not request.never_refused(base.request_spec(**fields), resident)

    def test_a_boot_may_be_refused(self):
        self.assertTrue(self.refusable())

    def test_a_boot_that_is_restricted_to_aggregates_may_be_refused(self):
        self.assertTrue(self.refusable(requested_destination=objects.Destination(
            aggregates=['somewhere'])))

    def test_moves_and_named_hosts_may_not(self):
        cell = objects.CellMapping(uuid='8f4b5ad8-0d73-4a5f-8f6d-0a3f4d5a0e11')
        for fields in (
                {'resident': True}, {'ignore_hosts': ['a']}, {'force_hosts': ['a']},
                {'force_nodes': ['a']}, {'scheduler_hints': {'_nova_check_type': ['rebuild']}},
                {'requested_destination': objects.Destination(host='a')},
                {'requested_destination': objects.Destination(cell=cell)}):
            self.assertFalse(self.refusable(**fields), fields)

    def test_shares_of_a_flavor(self):
        for specs, weight in (({}, 1.0), ({'quota:cpu_shares': '400'}, 4.0),
                              ({'hw:cpu_policy': 'dedicated'}, 0.0)):
            self.assertEqual(weight, request.cpu_weight(objects.Flavor(extra_specs=specs)))

    def test_fields_that_are_not_set_are_not_loaded(self):
        spec = objects.RequestSpec(flavor=objects.Flavor(name='small'))
        self.assertFalse(request.never_refused(spec, False))
        self.assertEqual(('', 'small', ''), request.kind(spec))
        self.assertEqual(1.0, request.cpu_weight(spec.flavor))
        self.assertIsNone(request.kind_of_instance(objects.Instance(uuid='vm')))
