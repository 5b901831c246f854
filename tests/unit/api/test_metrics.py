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

"""What Prometheus is told."""

from prometheus_client import parser
import webob

from tests.unit.api import base
from tracon_watcher.placement import queues


class Metrics(base.ApiCase):

    def scrape(self):
        response = webob.Request.blank('/metrics').get_response(self.api.metrics)
        self.assertEqual(200, response.status_int)
        self.assertTrue(response.headers['Content-Type'].startswith('text/plain'))
        return {(sample.name, *sorted(sample.labels.items())): sample.value
                for family in parser.text_string_to_metric_families(response.text)
                for sample in family.samples}, response.text

    def test_of_the_cloud(self):
        found, text = self.scrape()
        for name, value in (('tracon_vms', 6), ('tracon_snapshot_epoch', base.EPOCH),
                            ('tracon_snapshot_version', base.VERSION), ('tracon_view_known', 1),
                            ('tracon_vms_in_breach', 1), ('tracon_vms_unknown', 1),
                            ('tracon_observed_error_ratio', 0.1),
                            ('tracon_telemetry_timestamp_seconds', self.now)):
            self.assertEqual(value, found[name,], name)
        self.assertEqual(3, found['tracon_hosts', ('status', 'known')])
        self.assertEqual(1, found['tracon_hosts', ('status', 'unknown_cores')])
        self.assertEqual(0, found['tracon_hosts', ('status', 'stale')])
        self.assertEqual(1.4, found['tracon_slowdown_worst', ('source', 'observed')])
        self.assertEqual(1, found['tracon_agreement', ('agreement', 'less')])
        self.assertGreater(found['tracon_harm',], 2)
        # Without a token no VM or project is named.
        for secret in ('web', 'alpha', base.OWN, base.identity('web')):
            self.assertNotIn(secret, text)

    def test_of_host_types(self):
        self.view = base.cloud(self.now, learnt={
            'synthetic': queues.LearnedParameters(vm_hours=30.0, error=0.05, coverage=0.6),
            '': queues.LearnedParameters()})
        found, _text = self.scrape()
        for host_type, trust, hours in (('synthetic', 0.75, 30), ('', 1, 0)):
            label = ('host_type', host_type)
            self.assertAlmostEqual(trust, found['tracon_host_type_trust', label])
            self.assertEqual(hours, found['tracon_host_type_vm_hours', label])
        self.assertEqual(0.05, found['tracon_host_type_error_ratio', ('host_type', 'synthetic')])
        # Of what was not observed no error is known.
        self.assertNotIn(('tracon_host_type_error_ratio', ('host_type', '')), found)

    def test_without_a_view(self):
        self.view = None
        found, _text = self.scrape()
        self.assertEqual(0, found['tracon_view_known',])
        self.assertNotIn(('tracon_vms',), found)

    def test_stale_hosts(self):
        self.now += 601
        found, _text = self.scrape()
        self.assertEqual(3, found['tracon_hosts', ('status', 'stale')])
        self.assertEqual(6, found['tracon_vms_unknown',])
        self.assertEqual(0, found['tracon_harm',])
        self.assertNotIn(('tracon_slowdown_worst', ('source', 'predicted')), found)

    def test_requests_by_route_not_by_vm(self):
        for path in ('/v1/vms', '/v1/vms/x', '/v1/vms/y', '/v1/hosts/z', '/nowhere', '/healthz'):
            self.ask(path)
        self.ask('/v1/vms', None)
        found, text = self.scrape()
        for route, status, count in (('/v1/vms', '200', 1), ('/v1/vms/{uuid}', '404', 2),
                                     ('/v1/hosts/{name}', '404', 1), ('/healthz', '200', 1)):
            self.assertEqual(count, found['tracon_api_requests_total', ('route', route),
                                          ('status', status)])
        self.assertEqual(1, found['tracon_api_requests_total', ('route', 'other'),
                                  ('status', '401')])
        self.assertEqual(2, found['tracon_api_request_seconds_count',
                                  ('route', '/v1/vms/{uuid}')])
        self.assertNotIn('/v1/vms/x', text)

    def test_nothing_else_there_and_not_on_the_api(self):
        for path in ('/', '/v1/vms', '/healthz'):
            self.assertEqual(404, webob.Request.blank(path).get_response(
                self.api.metrics).status_int)
        self.assertEqual(405, webob.Request.blank('/metrics', method='POST').get_response(
            self.api.metrics).status_int)
        self.assertIn(self.ask('/metrics', None).status_int, (401, 404))
        self.assertEqual(404, self.ask('/metrics').status_int)
