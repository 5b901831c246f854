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

"""A browser on every page: no error in its console, and no fault that axe finds."""

import pathlib
import re
import threading
import unittest

from tests.functional.dashboard import browser
from tests.functional.dashboard import horizon
from tests.functional.dashboard import watcher
from tests.unit.api import base
from tests.unit.osc import documented

PAGES = tuple(f'admin/interference_{one}' for one in (
    'overview', 'vms', 'hosts', 'recommendations', f'recommendations/{watcher.PLAN}',
    f'vms/{documented.identity("shop-db")}', 'hosts/compute-1'))


@unittest.skipIf(browser.reason_to_skip(), browser.reason_to_skip())
class BrowserCase(horizon.Cloud):

    def setUp(self):
        super().setUp()
        from django.contrib.staticfiles import handlers
        from django.core.servers import basehttp
        from django.core import wsgi
        from django.test import utils
        self.view = documented.cloud()
        horizon.configure(self.begin())
        self.enterContext(utils.override_settings(
            DEBUG=True, OPENSTACK_KEYSTONE_URL=f'{self.identity.url}/v3'))
        served = basehttp.ThreadedWSGIServer(('127.0.0.1', 0), basehttp.WSGIRequestHandler)
        served.set_app(handlers.StaticFilesHandler(wsgi.get_wsgi_application()))
        threading.Thread(target=served.serve_forever, daemon=True).start()
        self.addCleanup(served.server_close)
        self.addCleanup(served.shutdown)
        self.browser = browser.Browser(self, f'http://127.0.0.1:{served.server_address[1]}')
        self.page = self.browser.page
        self.browser.sign_in(base.ADMIN, 'x')

    def test_every_page(self):
        faults = {}
        for path in PAGES:
            self.browser.open(path)
            faults[path] = self.browser.faults()
        self.assertEqual(dict.fromkeys(PAGES, []), faults)
        self.assertEqual([], self.browser.said)

    def test_from_the_overview_to_whom_it_is_about(self):
        self.browser.open(PAGES[0])
        self.page.click('text=shop-db')
        self.page.wait_for_url(re.compile('interference_vms/[0-9a-f-]{36}/'))
        self.page.click('section >> text=etl >> nth=0')
        self.page.wait_for_selector('h1:has-text("etl")')
        self.page.click('dd >> text=compute-1')
        self.page.wait_for_selector('h1:has-text("compute-1")')
        self.assertEqual([], self.browser.said)

    def test_a_plan_is_started(self):
        self.browser.open(PAGES[4])
        self.page.click('text=Start the live migration')
        self.page.wait_for_selector('text=The migrations begin')
        self.assertEqual('SUCCEEDED', self.watcher.state)


def pictures(folder):
    """Write pictures of pages for the guide into a folder."""
    class Pictures(BrowserCase):
        def runTest(self):
            for name, path in (
                    ('overview', PAGES[0]), ('recommendation', PAGES[4]), ('vm', PAGES[5])):
                self.browser.open(path)
                if name == 'vm':
                    self.page.click('text=Judge its hosts now')
                    self.page.wait_for_selector('text=hosts considered')
                self.page.screenshot(path=str(pathlib.Path(folder, f'horizon-{name}.png')),
                                     full_page=True)
    return Pictures().run()
