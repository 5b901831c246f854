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


"""Horizon in a whole OpenStack: what it recommends, and a migration that is begun there."""

import unittest

from tests.functional.cloud import base
from tests.functional.dashboard import browser
from tracon_lab.testcloud import product
from tracon_lab.testcloud import story

PAGES = ('overview', 'vms', 'hosts', 'recommendations')


@unittest.skipIf(browser.reason_to_skip(), browser.reason_to_skip())
class TestHorizon(base.ProductCase):

    port_base = 29800
    patience = 240.0

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        story.make_flavor(cls.cloud.connection().compute)
        cls.begin(story.VICTIM, story.SHOP, flavor=story.LIMITED_FLAVOR)
        cls.begin(story.CULPRIT, story.HAMMER)
        cls.horizon = product.start_horizon(cls.cloud).rstrip('/')

    def setUp(self):
        super().setUp()
        self.browser = browser.Browser(self, self.horizon)
        self.page = self.browser.page

    def sign_in(self, user):
        self.browser.sign_in(user, self.settings.password)

    def audit(self, **parameters):
        """Have an audit made by the form, and return the list that is shown afterwards."""
        self.browser.open('admin/interference_recommendations')
        before = self.page.locator('#plans tbody tr[data-object-id]').count()
        self.page.click('text=Audit Now')
        for name, value in parameters.items():
            self.page.fill(f'#id_{name}', value)
        self.page.click('input[type=submit][value=Audit]')
        self.page.wait_for_selector('text=What it recommends is listed here')

        def listed():
            text = self.browser.open('admin/interference_recommendations')
            found = self.page.locator('#plans tbody tr[data-object-id]').count()
            return text if found > before else ''
        return self.wait('its action plan', listed)

    def test_a_recommendation_is_started(self):
        self.sign_in('admin')
        self.wait(f'{story.VICTIM} beyond its limit', lambda: (
            f'{story.VICTIM}\tcmp1' in self.browser.open('admin/interference_overview')))
        text = self.audit(blackout_windows='00:00-24:00')
        self.assertIn('no migration: blackout window', text)
        text = self.audit()
        self.assertIn(f'{story.VICTIM}: cmp1 → cmp2', text)
        self.page.click('#plans tbody tr:first-child a')
        self.page.wait_for_selector('text=Start the live migration')
        self.assertEqual([], self.browser.faults())
        self.page.click('text=Start the live migration')
        self.page.wait_for_selector('text=The migrations begin')
        compute = self.cloud.connection().compute
        self.wait('the live migration', lambda: (
            compute.get_server(self.servers[story.VICTIM].id).compute_host == 'cmp2'))
        path = self.page.url.removeprefix(f'{self.horizon}/').rstrip('/')
        self.wait('its success', lambda: 'succeeded' in self.browser.open(path))
        self.assertEqual([], self.browser.said)

    def test_every_page_with_all_services(self):
        self.sign_in('admin')
        for name in PAGES:
            self.browser.open(f'admin/interference_{name}')
            self.assertEqual([], self.browser.faults(), name)
        self.assertEqual([], self.browser.said)

    def test_no_page_is_a_tenants(self):
        self.sign_in('demo')
        for name in PAGES:
            self.page.goto(f'{self.horizon}/admin/interference_{name}/')
            self.assertNotIn(story.VICTIM, self.page.content())
