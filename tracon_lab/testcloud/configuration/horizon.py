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


"""Horizon's settings, with the panels of Watcher and of this product."""

from __future__ import annotations

from tracon_lab.testcloud.configuration import ini
from tracon_lab.testcloud import settings as settings_module

# An installation links what is enabled into Horizon's folder, which all clouds here share.
_TEXT = '''
from openstack_dashboard.local import enabled as _enabled
import tracon_dashboard
import watcher_dashboard
_enabled.__path__.append(tracon_dashboard.__path__[0] + '/enabled')
_enabled.__path__.append(watcher_dashboard.__path__[0] + '/local/enabled')
ALLOWED_HOSTS = ['*']
# Of sessions too, in its one process. By default it has room for 300 entries, too few for a page.
CACHES = {{'default': {{'BACKEND': 'django.core.cache.backends.locmem.LocMemCache',
                        'OPTIONS': {{'MAX_ENTRIES': 100_000}}}}}}
COMPRESS_OFFLINE = False
DEBUG = False
OPENSTACK_HOST = {address!r}
OPENSTACK_KEYSTONE_URL = {keystone!r}
SECRET_KEY = {secret!r}
SESSION_ENGINE = 'django.contrib.sessions.backends.cache'
STATIC_ROOT = {static!r}
TIME_ZONE = 'UTC'
'''


def write(settings: settings_module.Settings) -> None:
    """Write them as the module ``local.local_settings`` of the folder ``horizon``."""
    folder = settings.configuration / 'horizon/local'
    ini.write(folder / '__init__.py', '')
    ini.write(folder / 'local_settings.py', _TEXT.format(
        address=settings_module.ADDRESS, keystone=settings.auth_url, secret=settings.password,
        static=str(settings.data / 'horizon/static')))
