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

"""A cloud of its own for the tests of a class, of which nothing may be left."""

import pathlib
import shutil
import tempfile
import time
import unittest

from tracon_lab.testcloud import cloud
from tracon_lab.testcloud import enclosure
from tracon_lab.testcloud import product
from tracon_lab.testcloud import requirements
from tracon_lab.testcloud import settings


def left_behind(made):
    """Processes, groups and mounts of a cloud that exist now."""
    found = []
    for entry in pathlib.Path('/proc').glob('[0-9]*'):
        try:
            command = (entry / 'cmdline').read_bytes().replace(b'\0', b' ').decode()
            running = (entry / 'stat').read_text().rsplit(')', 1)[1].split()[0] not in 'ZX'
        except OSError:
            continue
        if str(made.directory) in command and running:
            found.append(command)
    for place in enclosure.control_groups(pathlib.Path('/proc/mounts').read_text()):
        found += [str(path) for path in place.glob(f'tracon-{made.port_base}-*')]
    return found


class CloudCase(unittest.TestCase):
    """Starts a cloud for all tests of a class, and ends it."""

    #: Beside a cloud that somebody has started with the default ports, and those of other tests.
    port_base = 0
    polling_seconds = 5
    #: Seconds that anything is waited for.
    patience = 60.0

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        reason = requirements.missing()
        if reason:
            raise unittest.SkipTest(reason)
        # Short, because of the sockets in it.
        folder = pathlib.Path(tempfile.mkdtemp(prefix='tracon-', dir='/var/tmp'))
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.settings = cls.configured(settings.Settings(
            directory=folder, port_base=cls.port_base, polling_seconds=cls.polling_seconds))
        cls.cloud = cloud.TestCloud(cls.settings)
        cls.addClassCleanup(cls.check_nothing_is_left)
        cls.enterClassContext(cls.cloud)

    @classmethod
    def configured(cls, made):
        """Return the settings that the tests need."""
        return made

    @classmethod
    def check_nothing_is_left(cls):
        found = left_behind(cls.settings)
        if found:
            raise AssertionError('left behind: ' + '\n'.join(found))

    def wait(self, what, condition, patience=None):
        """Wait until ``condition()`` gives something, and return it."""
        deadline = time.monotonic() + (self.patience if patience is None else patience)
        while not (found := condition()):
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.5)
        return found


class ProductCase(CloudCase):
    """A cloud in which the product is installed."""

    @classmethod
    def configured(cls, made):
        return product.with_product(made)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        product.start_engine(cls.cloud)
        cls.servers = {}

    @classmethod
    def begin(cls, name, unit, place=0, **how):
        """Boot a VM on a host, by its place, and start its program."""
        made = cls.cloud.boot(name, cls.cloud.settings.hosts[place], **how)
        cls.servers[name] = made
        guest = cls.cloud.guest(made)
        cls.addClassCleanup(guest.close)
        guest.begin(unit)
