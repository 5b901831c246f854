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

"""This product in a test cloud: the plugins of Nova and Watcher, and the engine."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import subprocess
import sys
from typing import Any, Callable

from tracon_watcher.testcloud import cloud as cloud_module
from tracon_watcher.testcloud.configuration import ini
from tracon_watcher.testcloud import errors
from tracon_watcher.testcloud import settings as settings_module

ENGINE = 'tracon-engine'
_FILTERS = ('ComputeFilter', 'ComputeCapabilitiesFilter', 'ImagePropertiesFilter',
            'ServerGroupAntiAffinityFilter', 'ServerGroupAffinityFilter', 'InterferenceFilter')


def with_product(settings: settings_module.Settings,
                 mode: str = 'weigh') -> settings_module.Settings:
    """Return settings of a cloud whose Nova and Watcher use this product.

    :param mode: of the filter and the weigher
    """
    shared = {'tracon': {'snapshot_source': 'engine'}}
    scheduler: dict[str, ini.Section] = {
        'filter_scheduler': {
            'available_filters': ['nova.scheduler.filters.all_filters',
                                  'nova_filters.interference_filter.InterferenceFilter'],
            'enabled_filters': ','.join(_FILTERS),
            'weight_classes': 'nova.scheduler.weights.all_weighers,'
                              'nova_filters.interference_weigher.InterferenceWeigher'},
        'tracon': {'snapshot_source': 'engine', 'mode': mode}}
    return dataclasses.replace(
        settings, scheduler_extra=settings.scheduler_extra + ini.render(scheduler),
        watcher_extra=settings.watcher_extra + ini.render(shared))


def engine(settings: settings_module.Settings) -> dict[str, ini.Section]:
    """Return tracon.conf."""
    account = ini.account(settings)
    return {
        'DEFAULT': {'debug': settings.debug, 'transport_url': settings.transport_url},
        'oslo_messaging_rabbit': ini.messaging(),
        'database': ini.database(settings, 'tracon'),
        'engine': {'host': 'control', 'polling_interval_seconds': settings.polling_seconds,
                   'window_seconds': 60 * settings.polling_seconds,
                   'maximum_age_seconds': max(30 * settings.polling_seconds, 60),
                   'repair_interval_seconds': 60, 'lease_seconds': 10},
        'api': {'host': settings_module.ADDRESS, 'port': settings.port('interference'),
                'metrics_port': 0},
        'service_auth': {**account, 'valid_interfaces': 'public'},
        'keystone_authtoken': ini.doorkeeper(settings, 'interference'),
        'oslo_concurrency': ini.concurrency(settings),
    }


def configuration_file(settings: settings_module.Settings) -> pathlib.Path:
    """Return the path of tracon.conf."""
    return settings.configuration / 'tracon/tracon.conf'


def start_engine(cloud: cloud_module.TestCloud, ready: Callable[[], bool] | None = None) -> None:
    """Configure and start the engine.

    :raises CloudError: when its database cannot be made, or it does not start
    """
    settings = cloud.settings
    file = configuration_file(settings)
    ini.write(file, ini.render(engine(settings)))
    programs = pathlib.Path(sys.prefix) / 'bin'
    _run([programs / 'tracon', 'db', 'upgrade', '--config-file', file])
    # One that runs may be of an earlier time, with other settings.
    ran = ENGINE in {one.name for one in cloud.status() if one.state == 'running'}
    cloud.extra_service(ENGINE, [str(programs / ENGINE), '--config-file', str(file)],
                        ready=ready)
    if ran:
        cloud.restart(ENGINE)


def _run(command: list[Any]) -> None:
    found = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                           env={**os.environ, 'PYTHONWARNINGS': 'ignore'}, check=False)
    if found.returncode:
        raise errors.CloudError(f'{command[0].name} {command[1]} {command[2]}: '
                                f'{(found.stderr or found.stdout)[-500:].strip()}')
