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


"""A browser, what it says in its console, and what axe finds."""

import importlib.util
import shutil

CHROMIUM = shutil.which('chromium')
SERIOUS = ('serious', 'critical')
# The first page compiles all style sheets.
_PATIENCE = 120_000


def reason_to_skip():
    for name, wanted in (('horizon', 'horizon (the extra "dashboard")'),
                         ('axe_playwright_python', 'axe-playwright-python')):
        if importlib.util.find_spec(name) is None:
            return f'needs {wanted}'
    return '' if CHROMIUM else 'needs chromium (a package of that name)'


class Browser:
    """Shows pages of a Horizon.

    :param case: the test that it lives as long as
    :param root: address of Horizon
    """

    def __init__(self, case, root):
        from playwright import sync_api
        made = sync_api.sync_playwright().start()
        case.addCleanup(made.stop)
        browser = made.chromium.launch(executable_path=CHROMIUM, args=['--no-sandbox'])
        case.addCleanup(browser.close)
        self.root = root
        self.page = browser.new_page(viewport={'width': 1280, 'height': 900})
        self.page.set_default_timeout(_PATIENCE)
        self.page.set_default_navigation_timeout(_PATIENCE)
        self.said = []

    def sign_in(self, user, password):
        self.page.context.clear_cookies()
        self.page.goto(f'{self.root}/auth/login/?next=/project/interference/')
        self.page.fill('#id_username', user)
        self.page.fill('#id_password', password)
        self.page.click('#loginBtn')
        self.page.wait_for_load_state()
        self.page.on('console', lambda one: self.said.append(one.text)
                     if one.type == 'error' else None)
        self.page.on('pageerror', lambda error: self.said.append(str(error)))

    def open(self, path):
        """Show a page, and return the text of what belongs to it alone."""
        self.page.goto(f'{self.root}/{path}/')
        self.page.wait_for_load_state('networkidle')
        return self.page.inner_text('#content_body')

    def faults(self):
        """Return what axe finds serious in the page, beside what belongs to all of Horizon's."""
        from axe_playwright_python import sync_playwright
        found = sync_playwright.Axe().run(self.page, context={
            'include': [['#content_body']], 'exclude': [['.breadcrumb'], ['.table_search']]})
        return [(one['id'], [node['html'][:120] for node in one['nodes']])
                for one in found.response['violations'] if one['impact'] in SERIOUS]
