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

"""Watcher's services."""

from __future__ import annotations

from tracon_lab.testcloud.configuration import ini
from tracon_lab.testcloud import settings as settings_module


def write(settings: settings_module.Settings) -> None:
    """Write watcher.conf."""
    ini.write(settings.configuration / 'watcher/watcher.conf',
              ini.render(watcher(settings), settings.watcher_extra))


def watcher(settings: settings_module.Settings) -> dict[str, ini.Section]:
    """Return watcher.conf."""
    account = ini.account(settings)
    return {
        'DEFAULT': {'debug': settings.debug, 'host': 'control',
                    'transport_url': settings.transport_url},
        'database': ini.database(settings, 'watcher'),
        'api': {'host': settings_module.ADDRESS, 'port': settings.port('watcher')},
        'watcher_clients_auth': account,
        'keystone_client': {'interface': 'public'},
        'nova': {**account, 'valid_interfaces': 'public', 'migration_interval': 1.0,
                 'migration_max_retries': 120},
        'placement': {**account, 'valid_interfaces': 'public'},
        'gnocchi_client': {'endpoint_type': 'public'},
        'watcher_datasources': {'datasources': 'gnocchi', 'query_max_retries': 2},
        'collector': {'collector_plugins': 'compute'},
        'watcher_cluster_data_model_collectors.compute': {'period': 60},
        'oslo_messaging_rabbit': ini.messaging(),
        'oslo_messaging_notifications': {'driver': 'messagingv2'},
        'oslo_concurrency': ini.concurrency(settings),
        'keystone_authtoken': ini.doorkeeper(settings, 'infra-optim'),
    }
