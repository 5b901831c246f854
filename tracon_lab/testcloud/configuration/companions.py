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

"""Keystone, Placement, Glance and Neutron: what Nova cannot do without."""

from __future__ import annotations

import pathlib
import sys

from tracon_lab.testcloud.configuration import ini
from tracon_lab.testcloud import settings as settings_module


def write(settings: settings_module.Settings) -> None:
    """Write their files."""
    etc = settings.configuration
    ini.write(etc / 'keystone/keystone.conf', ini.render(keystone(settings)))
    ini.write(etc / 'placement/placement.conf', ini.render(placement(settings)))
    ini.write(etc / 'glance/glance-api.conf', ini.render(glance(settings)))
    ini.write(etc / 'neutron/neutron.conf', ini.render(neutron(settings)))


def installed(name: str) -> pathlib.Path:
    """Return a file that a package has put under the environment's ``etc``."""
    return pathlib.Path(sys.prefix) / 'etc' / name


def keystone(settings: settings_module.Settings) -> dict[str, ini.Section]:
    """Return keystone.conf."""
    return {
        'DEFAULT': {'debug': settings.debug},
        'database': ini.database(settings, 'keystone'),
        'token': {'provider': 'fernet'},
        'fernet_tokens': {'key_repository': settings.data / 'keystone/tokens'},
        'fernet_receipts': {'key_repository': settings.data / 'keystone/tokens'},
        'credential': {'key_repository': settings.data / 'keystone/credentials'},
        'identity': {'password_hash_rounds': 4},
        'cache': {
            'enabled': True, 'backend': 'dogpile.cache.memcached',
            'memcache_servers': f'{settings_module.ADDRESS}:{settings.port("memcached")}',
        },
    }


def placement(settings: settings_module.Settings) -> dict[str, ini.Section]:
    """Return placement.conf."""
    return {
        'DEFAULT': {'debug': settings.debug},
        'placement_database': ini.database(settings, 'placement'),
        'api': {'auth_strategy': 'keystone'},
        'keystone_authtoken': ini.doorkeeper(settings, 'placement'),
        'oslo_concurrency': ini.concurrency(settings),
    }


def glance(settings: settings_module.Settings) -> dict[str, ini.Section]:
    """Return glance-api.conf: images are files."""
    data = settings.data / 'glance'
    return {
        'DEFAULT': {'debug': settings.debug, 'enabled_backends': 'files:file',
                    'transport_url': settings.transport_url},
        'oslo_messaging_rabbit': ini.messaging(),
        'database': ini.database(settings, 'glance'),
        'glance_store': {'default_backend': 'files'},
        'files': {'filesystem_store_datadir': data / 'images'},
        'os_glance_staging_store': {'filesystem_store_datadir': data / 'staging'},
        'os_glance_tasks_store': {'filesystem_store_datadir': data / 'tasks'},
        'paste_deploy': {'flavor': 'keystone',
                         'config_file': installed('glance/glance-api-paste.ini')},
        'keystone_authtoken': ini.doorkeeper(settings, 'image'),
        'oslo_concurrency': ini.concurrency(settings),
    }


def neutron(settings: settings_module.Settings) -> dict[str, ini.Section]:
    """Return neutron.conf: an API without agents; Nova asks it even for no network."""
    return {
        'DEFAULT': {
            'debug': settings.debug, 'transport_url': settings.transport_url,
            'core_plugin': 'ml2', 'service_plugins': '', 'rpc_workers': 0,
            'api_paste_config': installed('neutron/api-paste.ini'),
            'state_path': settings.data / 'neutron',
            'notify_nova_on_port_status_changes': False,
            'notify_nova_on_port_data_changes': False,
        },
        'database': ini.database(settings, 'neutron'),
        'ml2': {'type_drivers': 'local,flat', 'tenant_network_types': 'local',
                'mechanism_drivers': 'tracon_testcloud'},
        'oslo_messaging_rabbit': ini.messaging(),
        'oslo_messaging_notifications': {'driver': 'messagingv2'},
        'keystone_authtoken': ini.doorkeeper(settings, 'network'),
        'oslo_concurrency': ini.concurrency(settings),
    }
