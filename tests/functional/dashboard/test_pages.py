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

"""Every page, as administrator and as tenant, with what may be missing."""

import dataclasses
import html
import importlib.util
import re
import unittest

import numpy as np

from tests.functional.dashboard import horizon
from tests.functional.dashboard import watcher
from tests.unit.api import base
from tests.unit.osc import documented
from tracon_watcher.engine import view as views
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster

OVERVIEW, VMS, HOSTS, RECOMMENDATIONS = (
    f'/admin/interference_{name}/' for name in ('overview', 'vms', 'hosts', 'recommendations'))
OWN = '/project/interference/'
RECOMMENDATION = f'{RECOMMENDATIONS}{watcher.PLAN}/'
PAGES = (OVERVIEW, VMS, HOSTS, RECOMMENDATIONS)
SHOP_DB = documented.identity('shop-db')


@unittest.skipUnless(importlib.util.find_spec('horizon'), 'needs horizon (the extra "dashboard")')
class PagesCase(horizon.Cloud):

    def setUp(self):
        super().setUp()
        self.view = documented.cloud()
        self.use(self.begin())
        from django import test
        self.client = test.Client()
        self.sign_in(base.ADMIN)

    def use(self, keystone):
        horizon.configure(keystone)
        from django.test import utils
        # To compile Horizon's style sheets takes seconds for each page.
        self.enterContext(utils.override_settings(
            COMPRESS_PRECOMPILERS=(), OPENSTACK_KEYSTONE_URL=f'{keystone}/v3'))

    def sign_in(self, user):
        self.client.logout()
        page = self.client.get('/auth/login/')
        self.assertEqual(200, page.status_code)
        answer = self.client.post('/auth/login/', {
            'username': user, 'password': 'x', 'region': 'default', 'auth_type': 'credentials'})
        self.assertEqual(302, answer.status_code, answer.content[:2000])

    def page(self, path, status=200, **query):
        """Return the text of a page, without tags."""
        answer = self.client.get(path, query)
        self.assertEqual(status, answer.status_code, answer.content[:2000])
        self.html = answer.content.decode()
        text = re.sub(r'<(script|style).*?</\1>', '', self.html, flags=re.DOTALL)
        return ' '.join(html.unescape(re.sub(r'<[^>]*>', ' ', text)).split())


class Pages(PagesCase):

    def test_overview(self):
        text = self.page(OVERVIEW)
        for said in ('1 VMs beyond a limit', '1.87 worst slowdown', '72 % mean efficiency',
                     '7 VMs, 1 of them unknown',
                     '3 of 4 hosts known', '1.20–1.50 3', 'kvm-2 3 known 99 %',
                     'old 1 unknown cores not yet checked', 'shop-db compute-1 1.87'):
            self.assertIn(said, text)
        self.assertIn('Interference Overview - ', text)

    def test_vms(self):
        text = self.page(VMS)
        self.assertIn('Displaying 7 items', text)
        self.assertIn('1.87 ± 0.15 1.72 (1.61–1.86) 1.50 crossed 0 min etl 82 % 1.04', text)
        # The slowest comes first, and what is unknown last.
        order = [text.index(f' {name} compute') for name in ('shop-db', 'etl', 'wiki', 'legacy')]
        self.assertEqual(sorted(order), order)

    def test_a_vm(self):
        self.assertIn('No decision on it is recorded', self.page(f'{VMS}{SHOP_DB}/'))
        text = self.page(f'{VMS}{SHOP_DB}/', now='true')
        for said in ('Slowdown observed 1.87 ± 0.15', 'Limit 1.50 crossed',
                     'CPU quota 30 %; reached in 12 % of the last hour', 'etl 45 % 1.11',
                     'no single one, but several together 27 %', '4 hosts considered, 3 refused',
                     'would be at least'):
            self.assertIn(said, text)
        self.assertIn(f'href="{HOSTS}compute-1/"', self.html)

    def test_hosts(self):
        text = self.page(HOSTS)
        self.assertIn('compute-1 kvm-2 known 3 1 1.87 53 % shop-db 2.73', text)
        self.assertIn('compute-4 old unknown cores 1 0 – – – –', text)

    def test_a_host(self):
        text = self.page(f'{HOSTS}compute-1/')
        self.assertIn('Contention contended memory: 1.62 times as long as undisturbed', text)
        self.assertIn('shop-db 1.87 1.87 ± 0.15', text)
        self.assertIn('No VM runs here', self.page(f'{HOSTS}delta/') if self.grow(0) else '')

    def grow(self, hosts):
        """Take a cloud of empty hosts, and one that is called delta."""
        state = cluster.build([cluster.Host(name, (), 'kvm-2', updated_at=self.now, cores=2)
                               for name in ('delta', *(f'h{one:05}' for one in range(hosts)))])
        judged = assessment.Assessor(state)
        self.view = views.View(5, judged, judged, {}, np.array([]), 0.1, self.now)
        return True

    def test_a_page_and_the_next(self):
        self.grow(45)
        first = self.page(HOSTS)
        self.assertIn('Displaying 20 items', first)
        seen = set(re.findall(r'interference_hosts/(\w+)/"', self.html))
        (following,) = set(re.findall(r'\?(marker=[^"&]+)', self.html))
        marker = following.removeprefix('marker=')
        self.assertIn('Displaying 20 items', self.page(HOSTS, marker=marker))
        more = set(re.findall(r'interference_hosts/(\w+)/"', self.html))
        self.assertEqual((40, set()), (len(seen | more), seen & more))

    def test_a_filter_is_the_engines(self):
        answer = self.client.post(VMS, {
            'action': 'vms__filter__vms_filter', 'vms__vms_filter__q': 'shop',
            'vms__vms_filter__q_field': 'name'}, follow=True)
        text = answer.content.decode()
        self.assertIn('shop-web', text)
        self.assertNotIn('>etl<', text.split('<tbody>')[1].split('compute-1')[0])
        answer = self.client.post(VMS, {
            'action': 'vms__filter__vms_filter', 'vms__vms_filter__q': 'much',
            'vms__vms_filter__q_field': 'min_slowdown'}, follow=True)
        self.assertIn('min_slowdown', html.unescape(answer.content.decode()))

    def test_empty_cloud(self):
        self.grow(0)
        text = self.page(OVERVIEW)
        self.assertIn('0 VMs beyond a limit', text)
        self.assertIn('No VM is beyond a limit', text)
        self.page(VMS)

    def test_names_of_tenants_are_text(self):
        vms = {uuid: dataclasses.replace(one, name='<script>alert(1)</script>' + 'x' * 200)
               for uuid, one in self.view.vms.items()}
        self.view = dataclasses.replace(self.view, vms=vms)
        for path in (*PAGES, f'{VMS}{SHOP_DB}/', f'{HOSTS}compute-1/', RECOMMENDATION):
            self.page(path)
            self.assertNotIn('<script>alert(1)', self.html, path)
            self.assertIn('&lt;script&gt;alert(1)', self.html, path)


class OwnPages(PagesCase):

    def setUp(self):
        super().setUp()
        vms = {uuid: dataclasses.replace(one, project=base.OWN)
               if one.project == documented.SHOP else one for uuid, one in self.view.vms.items()}
        self.view = dataclasses.replace(self.view, vms=vms)

    def test_a_tenant_sees_its_own_vms_and_that_there_are_others(self):
        self.decisions.counted = {SHOP_DB: 2520.0}
        for user in (base.MEMBER, base.ADMIN):
            self.sign_in(user)
            text = self.page(OWN)
            self.assertIn('Displaying 3 items', text, user)
            self.assertIn('shop-db 1.87 53 % 1.87 ± 0.15 1.72 (1.61–1.86) 1.50 crossed 42 min '
                          'VMs of other projects', text)
            self.assertIn('shop-web', text)
            text = self.page(f'{OWN}{SHOP_DB}/')
            for said in ('VMs of other projects', 'Beyond it this month 42 min', 'CPU quota 30 %'):
                self.assertIn(said, text)
            for page in (OWN, f'{OWN}{SHOP_DB}/'):
                self.page(page)
                for hidden in ('etl', 'wiki', 'legacy', 'compute-', 'Harm'):
                    self.assertNotIn(hidden, self.html.split('id="content_body"')[1], page)

    def test_a_vm_of_another_project_is_not_found(self):
        for user in (base.MEMBER, base.ADMIN):
            self.sign_in(user)
            answer = self.client.get(f'{OWN}{documented.identity("etl")}/')
            self.assertEqual((302, OWN), (answer.status_code, answer.url))

    def test_what_is_away_is_said(self):
        self.decisions.counted = None
        self.assertRegex(self.page(OWN), 'shop-db .* crossed – VMs of other')
        self.identity.endpoints['interference'] = 'http://127.0.0.1:1'
        self.sign_in(base.MEMBER)
        self.assertIn('does not answer', self.page(OWN))


class Recommendations(PagesCase):

    def test_list(self):
        text = self.page(RECOMMENDATIONS)
        self.assertRegex(text, r'6 minutes ago shop-web: compute-1 → compute-2 1 → 0 2.09 → 1.73 '
                               r'1.472 → 1.431 recommended')
        self.assertIn('Why no more VMs are moved', text)
        for against in ('etl anywhere is locked', 'cools down for'):
            self.assertIn(against, text)

    def test_for_everybody_before_and_afterwards(self):
        text = self.page(RECOMMENDATION)
        for said in ('shop-web : compute-1 → compute-2 pending', 'VMs beyond a limit 1 → 0',
                     'shop-web moves 1.35 (', 'shop-db is relieved 1.72 (1.61–1.86) limit crossed '
                     '1.34 (1.29–1.41)', 'wiki is beside it 1.31', 'Start the live migration'):
            self.assertIn(said, text)
        self.assertNotIn('Measured', text)

    def test_what_is_started_is_measured(self):
        answer = self.client.post(RECOMMENDATION)
        self.assertEqual(302, answer.status_code)
        text = self.page(RECOMMENDATION)
        self.assertEqual('SUCCEEDED', self.watcher.state)
        for said in ('compute-2 succeeded', 'The migrations begin',
                     'Measured 5 minutes after: did not help'):
            self.assertIn(said, text)
        self.assertRegex(text, 'shop-db is relieved .* 1.87 –')
        self.assertNotIn('Start the', text)

    def test_a_plan_that_cannot_be_started(self):
        self.page(RECOMMENDATION)
        self.watcher.refuse = 'the plan has gone'
        text = self.client.post(RECOMMENDATION, follow=True).content.decode()
        self.assertIn('the plan has gone', text)

    def test_audit_with_the_parameters_of_the_strategy(self):
        text = self.page(f'{RECOMMENDATIONS}audit/')
        for said in ('Max migrations', 'Excluded projects'):
            self.assertIn(said, text)
        for said in ('Live migrations in one action plan at most', 'on a line each'):
            self.assertIn(said, self.html)
        fields = dict(re.findall(r'<input[^>]*? name="(\w+)" value="([^"]*)"', self.html))
        answer = self.client.post(f'{RECOMMENDATIONS}audit/', {
            **{name: html.unescape(value) for name, value in fields.items()},
            'max_migrations': '2', 'excluded_projects': 'a\r\n b'})
        self.assertEqual(302, answer.status_code, answer.content[:3000])
        self.assertEqual([{'audit_type': 'ONESHOT', 'strategy': 'tracon_interference',
                           'goal': watcher.GOAL,
                           'parameters': {'max_migrations': 2, 'excluded_projects': ['a', 'b']}}],
                         self.watcher.audits)
        for wrong in ('nan', '-1', 'many'):
            answer = self.client.post(f'{RECOMMENDATIONS}audit/', {'min_gain': wrong})
            self.assertEqual(200, answer.status_code)
        self.assertEqual(1, len(self.watcher.audits))

    def test_without_watcher_there_is_no_such_page(self):
        del self.identity.endpoints['infra-optim']
        self.sign_in(base.ADMIN)
        self.assertIn(self.client.get(RECOMMENDATIONS).status_code, (302, 403))
        self.page(OVERVIEW)

    def test_what_is_away_is_said(self):
        self.watcher.refuse = 'the database is away'
        self.assertIn('the database is away', self.page(RECOMMENDATIONS))
        self.assertIn('Why no more', self.page(RECOMMENDATIONS))
        answer = self.client.get(RECOMMENDATION, follow=True)
        self.assertIn('There is no such recommendation', answer.content.decode())
        self.watcher.refuse = None
        self.identity.endpoints['infra-optim'] = 'http://127.0.0.1:1'
        self.sign_in(base.ADMIN)
        self.assertIn('Watcher does not answer', self.page(RECOMMENDATIONS))


class Faults(PagesCase):

    def test_what_there_is_not(self):
        for path in (f'{VMS}{documented.identity("nothing")}/', f'{HOSTS}nowhere/'):
            answer = self.client.get(path, follow=True)
            self.assertEqual(200, answer.status_code)
            self.assertIn('Nothing is known of', answer.content.decode())

    def test_an_engine_that_knows_nothing_yet_or_does_not_answer(self):
        self.view = None
        for path in (OVERVIEW, VMS, HOSTS):
            self.assertIn('Error: ', self.page(path))
        self.identity.endpoints['interference'] = 'http://127.0.0.1:1'
        self.sign_in(base.ADMIN)
        for path in PAGES:
            self.assertIn('tracon-engine does not answer', self.page(path))

    def test_without_an_endpoint_there_are_no_pages(self):
        del self.identity.endpoints['interference']
        self.sign_in(base.ADMIN)
        self.assertIn(self.client.get(VMS).status_code, (302, 403))

    def test_not_for_tenants(self):
        self.sign_in(base.MEMBER)
        for path in (*PAGES, f'{VMS}{SHOP_DB}/', f'{HOSTS}compute-1/', RECOMMENDATION):
            answer = self.client.get(path)
            self.assertIn(answer.status_code, (302, 403), path)
            self.assertNotIn('compute-1', answer.content.decode())
