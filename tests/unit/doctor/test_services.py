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

"""What doctor makes of what services answer, well or badly."""

import time
import unittest

from keystoneauth1 import adapter
from keystoneauth1.identity import v3
from keystoneauth1 import session
from openstack import connection

from tests.unit.doctor import cloud
from tests.unit.telemetry import http_server
from tracon_watcher.doctor import answers
from tracon_watcher.doctor.findings import Severity
from tracon_watcher.doctor.findings import Unread
from tracon_watcher.doctor import services
from tracon_watcher.telemetry import gnocchi
from tracon_watcher.telemetry import rest


class Case(unittest.TestCase):

    def setUp(self):
        self.cloud = cloud.Cloud()
        self.addCleanup(self.cloud.server.stop)
        self.cloud.measured()

    def ask(self, auth_url=None, **changed):
        made = session.Session(v3.Password(
            auth_url or f'{self.cloud.url}/identity/v3', username='tracon', password='secret',
            project_name='service', user_domain_id='default', project_domain_id='default'),
            timeout=5)
        reader = gnocchi.GnocchiReader(rest.Service(
            adapter.Adapter(made, service_type='metric', interface='internal'), 'Gnocchi',
            rest.Timeouts(attempts=1)), gnocchi.Settings())
        return services.ask(services.Access(**{
            'connection': connection.Connection(session=made, region_name='R',
                                                interface='internal'),
            'region': 'R', 'interface': 'internal', 'telemetry': 'metric', 'prometheus': None,
            'reader': reader, 'engine': f'{self.cloud.url}/interference', 'polling_seconds': 60.0,
            **changed}))

    def assert_unread(self, found, what, severity=Severity.UNKNOWN):
        self.assertIsInstance(found, Unread)
        self.assertRegex(found.why, what)
        self.assertEqual(severity, found.severity)


class TestAsk(Case):

    def test_hosts_are_without_services_that_stand_for_several_machines(self):
        self.cloud.answers['/compute/v2.1/os-hypervisors/detail'] = {'hypervisors': [
            {'service': {'host': 'c1'}, 'hypervisor_type': 'QEMU'},
            {'service': {'host': 'c2'}, 'hypervisor_type': 'ironic'}]}
        self.assertEqual(frozenset({'c1'}), self.ask()['hosts'])

    def test_a_healthy_cloud(self):
        found = self.ask()
        self.assertEqual({}, {name: one for name, one in found.items() if isinstance(one, Unread)})
        self.assertEqual({'Keystone', 'Nova', 'Placement', 'Gnocchi', 'tracon-engine', 'Watcher'},
                         {one.name for one in found['services']})
        self.assertEqual([], [one for one in found['services'] if one.trouble])
        self.assertLess(max(abs(one.ahead) for one in found['services']), 2.0)
        self.assertEqual(frozenset({'admin', 'service'}), found['roles'])
        self.assertEqual((2, 103), found['microversion'])
        self.assertEqual('c1', found['servers'][0]['OS-EXT-SRV-ATTR:host'])
        self.assertEqual(frozenset({'c1', 'c2'}), found['hosts'])
        self.assertEqual('rack', found['aggregates'][0]['name'])
        self.assertTrue(found['extra_specs_validated'])
        self.assertAlmostEqual(60.0, found['samples'].interval)
        self.assertEqual({'c1', 'c2'}, set(found['samples'].age))
        self.assertLess(abs(found['samples'].age['c1'] - 60.0), 20.0)
        self.assertEqual(60.0, found['health']['view']['age_seconds'])
        self.assertEqual(2, len(found['judged']))
        self.assertEqual('x', found['host_types'][0]['host_type'])
        self.assertEqual((), found['audits'])

    def test_nothing_is_changed(self):
        self.ask()
        # Searches and tokens are asked for by POST; and a flavor that there cannot be.
        self.assertEqual({'identity', 'metric', 'compute'}, {
            one.path.split('/')[1] for one in self.cloud.server.requests if one.method != 'GET'})
        offered, = (one for one in self.cloud.server.requests if 'flavors' in one.path)
        self.assertEqual({'extra_specs': {'tracon:max_slowdown': 'invalid'}}, offered.body)
        self.assertIn('2.86', offered.headers['X-OpenStack-Nova-API-Version'])

    def test_one_vm_is_asked_for(self):
        self.ask()
        asked, = self.cloud.asked('/compute/v2.1/servers/detail')
        self.assertEqual('1', asked.query['limit'])

    def test_without_the_validator_the_flavor_is_not_found(self):
        self.cloud.answers['flavors'] = http_server.Answer({'itemNotFound': {}}, 404)
        self.assertIs(False, self.ask()['extra_specs_validated'])
        self.cloud.answers['flavors'] = http_server.Answer({'forbidden': {}}, 403)
        self.assert_unread(self.ask()['extra_specs_validated'], 'status 403')

    def test_keystone_away(self):
        found = self.ask(auth_url='http://127.0.0.1:1/v3')
        self.assert_unread(found['services'], r'no token: .*\[Errno 111\] Connection refused$',
                           Severity.ERROR)
        # The engine says how it is without a token.
        self.assertEqual(60.0, found['health']['view']['age_seconds'])
        self.assertEqual(set(services._TOLD), set(found))

    def test_a_service_away_costs_no_other(self):
        self.cloud.answers['/compute/v2.1'] = http_server.Answer({}, 503)
        found = self.ask()
        self.assertEqual([('Nova', 'it answers with status 503')], [
            (one.name, one.trouble) for one in found['services'] if one.trouble])
        for name in ('microversion', 'servers', 'hosts', 'aggregates', 'extra_specs_validated'):
            self.assert_unread(found[name], 'Nova does not answer')
        self.assertEqual(2, len(found['judged']))

    def test_without_an_endpoint(self):
        self.cloud.missing = {'interference', 'infra-optim'}
        found = self.ask()
        lost, = (one for one in found['services'] if one.trouble)
        self.assertRegex(lost.trouble, 'endpoint for interference service in R region not found')
        self.assertIsNone(found['audits'])
        self.assert_unread(found['health'], 'tracon-engine does not answer')

    def test_what_nova_does_not_allow_is_an_error(self):
        self.cloud.answers['/compute/v2.1/servers/detail'] = http_server.Answer(
            {'forbidden': {'message': 'no'}}, 403)
        self.assert_unread(self.ask()['servers'], 'GET /servers/detail', Severity.ERROR)

    def test_a_cell_that_is_down_hides_no_host(self):
        self.cloud.answers['/compute/v2.1/servers/detail'] = {'servers': [{'id': 'a'}]}
        self.assertEqual((), self.ask()['servers'])

    def test_telemetry_that_is_not_there(self):
        self.cloud.answers['/metric/v1/search/resource/nova_compute'] = []
        found = self.ask()['samples']
        self.assertEqual(answers.Samples({}, None, 900.0), found)
        self.assertIn('was asked for tracon.host.clock and others', found.asked)
        self.cloud.answers['/metric/v1/search/resource/nova_compute'] = http_server.Answer({}, 404)
        self.assert_unread(self.ask()['samples'], '404 came')

    def test_telemetry_that_is_coarse(self):
        self.cloud.measured(seconds=300)
        self.assertAlmostEqual(300.0, self.ask()['samples'].interval)

    def test_a_clock_ahead(self):
        found = self.ask(clock=lambda: time.time() - 100.0)
        self.assertLess(abs(found['services'][0].ahead - 100.0), 2.0)

    def test_what_is_no_answer_of_the_engine(self):
        self.cloud.answers['/interference/healthz'] = http_server.Answer(b'<html>')
        self.assert_unread(self.ask()['health'], 'healthz')

    def test_all_pages_of_audits(self):
        pages = [{'audits': [{'uuid': 'a'}], 'next': f'{self.cloud.url}/x?marker=a&limit=1'},
                 {'audits': [{'uuid': 'b'}]}]
        self.cloud.answers['/infra-optim/v1/audits/detail'] = pages[0]
        answer = self.cloud.server.answer
        self.cloud.server.answer = lambda request: (
            pages[1] if request.query.get('marker') == 'a' else answer(request))
        self.assertEqual(['a', 'b'], [one['uuid'] for one in self.ask()['audits']])


class TestErrors(unittest.TestCase):

    def test_error_and_remedy_come_apart(self):
        self.assertEqual(('database x: away', 'start it'), answers.parse_error(
            services.listing.CloudUnavailable('database x: away: start it')))
        unanswered = rest.Unanswered('Gnocchi at u', 'nothing came', 'see: its log')
        self.assertEqual(('Gnocchi at u: nothing came', 'see: its log'),
                         answers.parse_error(unanswered))
        what, _remedy = answers.parse_error(services.listing.CloudUnavailable('away (a: b)'))
        self.assertEqual('away (a: b)', what)
        self.assertEqual('KeyError', answers.parse_error(KeyError())[0])

    def test_the_second_of_a_header(self):
        date = 'Thu, 01 Jan 1970 00:16:40 GMT'
        self.assertEqual(0.0, services._ahead(date, 1000.9, 1001.2))
        self.assertAlmostEqual(10.4, services._ahead(date, 990.0, 990.2))
        self.assertIsNone(services._ahead(None, 1.0, 2.0))
        self.assertIsNone(services._ahead('yesterday', 1.0, 2.0))
