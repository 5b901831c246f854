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

"""How the application is put together."""

import fixtures
from oslo_config import cfg

from tests.unit.api import base
from tracon_watcher.api import application


class ApplicationTest(base.ApiCase):

    def patience(self, conf):
        application.build(lambda: self.view, self.decisions, conf)
        return conf.keystone_authtoken.http_connect_timeout

    def test_keystone_is_not_waited_for_for_good(self):
        conf = cfg.ConfigOpts()
        conf([])
        self.assertEqual(10, self.patience(conf))

    def test_the_operator_says_how_long_it_is_waited_for(self):
        path = self.useFixture(fixtures.TempDir()).join('tracon.conf')
        with open(path, 'w', encoding='utf-8') as stream:
            stream.write('[keystone_authtoken]\nhttp_connect_timeout = 3\n')
        conf = cfg.ConfigOpts()
        conf(['--config-file', path])
        self.assertEqual(3, self.patience(conf))
