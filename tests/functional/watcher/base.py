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

"""A real Nova in the test's process, a real Watcher beside it, and a snapshot between them."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import warnings

# Before anything imports Nova: its own threads, and the door's, are native ones.
os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')

import sqlalchemy.exc  # noqa: E402
from nova.tests.functional import integrated_helpers  # noqa: E402

from tracon_watcher.demo import door  # noqa: E402
from tracon_watcher.demo import watcher_box  # noqa: E402


class WatcherTestCase(integrated_helpers.ProviderUsageBaseTestCase):
    """Nova with a few computes, and a Watcher that reaches it over HTTP.

    :cvar HOSTS: names of the computes
    """

    compute_driver = 'fake.MediumFakeDriver'
    microversion = 'latest'
    HOSTS = ('host1', 'host2', 'host3')

    def setUp(self) -> None:
        # pip puts Nova's data files where Nova's tests do not look for them.
        self.flags(api_paste_config=os.path.join(sys.prefix, 'etc', 'nova', 'api-paste.ini'),
                   group='wsgi')
        super().setUp()
        # Nova's fixture makes errors of warnings that are SQLAlchemy's own.
        warnings.filterwarnings('ignore', category=sqlalchemy.exc.SADeprecationWarning)
        for host in self.HOSTS:
            self._start_compute(host)
        self.directory = tempfile.mkdtemp(prefix='tracon-watcher-')
        self.addCleanup(shutil.rmtree, self.directory)
        self.snapshot_file = os.path.join(self.directory, 'snapshot.json')
        self.door = door.Door.of_nova(self.api_fixture, self.placement.fixture, self.neutron)
        self.door.start()
        self.addCleanup(self.door.stop)
        self.box = watcher_box.WatcherBox(self.door.url, self.directory, self.snapshot_file)
        self.box.start()
        self.addCleanup(self.box.stop)
