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

import importlib.util
import pathlib
import re
import shutil
import threading
import unittest

from tests.functional.dashboard import horizon
from tests.functional.dashboard import watcher
from tests.unit.api import base
from tests.unit.osc import documented

CHROMIUM = shutil.which('chromium')
PATIENCE = 120_000
#: axe's words for what keeps people out.
SERIOUS = ('serious', 'critical')
PAGES = ('interference_overview', 'interference_vms', 'interference_hosts',
         'interference_recommendations', f'interference_recommendations/{watcher.PLAN}',
         f'interference_vms/{documented.identity("shop-db")}', 'interference_hosts/compute-1')


def reason_to_skip():
    for name, wanted in (('horizon', 'horizon (the extra "dashboard")'),
                         ('axe_playwright_python', 'axe-playwright-python')):
        if importlib.util.find_spec(name) is None:
            return f'needs {wanted}'
    return '' if CHROMIUM else 'needs chromium (a package of that name)'


@unittest.skipIf(reason_to_skip(), reason_to_skip())
class Browser(horizon.Cloud):

    def setUp(self):
        super().setUp()
        from django.contrib.staticfiles import handlers
        from django.core.servers import basehttp
        from django.core import wsgi
        from django.test import utils
        from playwright import sync_api
        self.view = documented.cloud()
        horizon.configure(self.begin())
        self.enterContext(utils.override_settings(
            DEBUG=True, OPENSTACK_KEYSTONE_URL=f'{self.identity.url}/v3'))
        served = basehttp.ThreadedWSGIServer(('127.0.0.1', 0), basehttp.WSGIRequestHandler)
        served.set_app(handlers.StaticFilesHandler(wsgi.get_wsgi_application()))
        threading.Thread(target=served.serve_forever, daemon=True).start()
        self.addCleanup(served.server_close)
        self.addCleanup(served.shutdown)
        self.root = f'http://127.0.0.1:{served.server_address[1]}'
        made = sync_api.sync_playwright().start()
        self.addCleanup(made.stop)
        browser = made.chromium.launch(executable_path=CHROMIUM, args=['--no-sandbox'])
        self.addCleanup(browser.close)
        self.page = browser.new_page(viewport={'width': 1280, 'height': 900})
        self.page.set_default_timeout(PATIENCE)
        self.page.set_default_navigation_timeout(PATIENCE)
        self.said = []

    def sign_in(self, user):
        self.page.goto(f'{self.root}/auth/login/?next=/admin/interference_overview/')
        self.page.fill('#id_username', user)
        self.page.fill('#id_password', 'x')
        self.page.click('#loginBtn')
        self.page.wait_for_load_state()
        self.page.on('console', lambda one: self.said.append(one.text)
                     if one.type == 'error' else None)
        self.page.on('pageerror', lambda error: self.said.append(str(error)))

    def test_every_page(self):
        from axe_playwright_python import sync_playwright
        self.sign_in(base.ADMIN)
        faults = {}
        for path in PAGES:
            self.page.goto(f'{self.root}/admin/{path}/')
            self.page.wait_for_load_state('networkidle')
            # What belongs to all of Horizon's pages is not ours.
            found = sync_playwright.Axe().run(self.page, context={
                'include': [['#content_body']], 'exclude': [['.breadcrumb'], ['.table_search']]})
            faults[path] = [(one['id'], [node['html'][:120] for node in one['nodes']])
                            for one in found.response['violations'] if one['impact'] in SERIOUS]
        self.assertEqual(dict.fromkeys(PAGES, []), faults)
        self.assertEqual([], self.said)

    def test_from_the_overview_to_whom_it_is_about(self):
        self.sign_in(base.ADMIN)
        self.page.click('text=shop-db')
        self.page.wait_for_url(re.compile('interference_vms/[0-9a-f-]{36}/'))
        self.page.click('section >> text=etl >> nth=0')
        self.page.wait_for_selector('h1:has-text("etl")')
        self.page.click('dd >> text=compute-1')
        self.page.wait_for_selector('h1:has-text("compute-1")')
        self.assertEqual([], self.said)


def pictures(folder):
    """Write pictures of pages for the guide into a folder."""
    class Pictures(Browser):
        def runTest(self):
            self.sign_in(base.ADMIN)
            for name, path in (
                    ('overview', PAGES[0]), ('recommendation', PAGES[4]), ('vm', PAGES[5])):
                self.page.goto(f'{self.root}/admin/{path}/')
                self.page.wait_for_load_state('networkidle')
                self.page.screenshot(path=str(pathlib.Path(folder, f'horizon-{name}.png')),
                                     full_page=True)
    return Pictures().run()
