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

"""Limits in flavors, validated by Nova's API."""

from nova.api.validation.extra_specs import validators
from nova import exception
from nova.tests.functional.api import client

from tests.functional.nova import base
from tracon_watcher import errors
from tracon_watcher.placement import limits


class ExtraSpecsTest(base.InterferenceTestCase):
    hosts = ()

    def test_a_banana_is_no_slowdown(self):
        refused = self.assertRaises(client.OpenStackApiException, self.limited_flavor,
                                    max_slowdown='banana')
        self.assertEqual(400, refused.response.status_code)
        self.assertIn('banana', refused.response.text)

    def test_a_key_that_does_not_exist(self):
        refused = self.assertRaises(client.OpenStackApiException, self.limited_flavor,
                                    max_slowness='2')
        self.assertEqual(400, refused.response.status_code)

    def test_a_limit_is_stored(self):
        flavor = self.limited_flavor(max_slowdown='1.5', min_iops_ratio='0.7')
        self.assertEqual({'tracon:max_slowdown': '1.5', 'tracon:min_iops_ratio': '0.7'},
                         self.admin_api.get_extra_specs(flavor))

    def test_the_class_of_background_work(self):
        for text in ('background', 'batch', '', 'background '):
            self.assertEqual(text == 'background', self.validates(limits.CLASS, text), text)

    def test_the_api_and_the_scheduler_allow_the_same(self):
        for key, value in [
                (limits.MAX_SLOWDOWN, text) for text in (
                    '1', '1.0', '1.5', '999.99', '1000', '1000.0', '0.9', '0', '1001', '1000.1',
                    '-2', '', 'nan', 'inf', '2x', '10000', '1e2', '1E1', '1_5', '１.５', '٢',
                    ' 1.5 ', '1.5\n', '+1.5', '1.', '01.5', '1,5', '9' * 400)] + [
                (limits.MIN_IOPS_RATIO, text) for text in (
                    '1', '1.0', '0.5', '0.001', '0.0010', '0.01', '0.1', '0.999', '0.0009', '0',
                    '0.0', '0.00', '0.000', '1.1', '2', '-0.5', 'nan', '', '.5', '1.', '０.５',
                    '5e-1')]:
            self.assertEqual(self.parses(key, value), self.validates(key, value), (key, value))

    @staticmethod
    def parses(key, value):
        try:
            limits.parse(key, value)
        except errors.InvalidOption:
            return False
        return True

    @staticmethod
    def validates(key, value):
        try:
            validators.validate(key, value)
        except exception.ValidationError:
            return False
        return True
