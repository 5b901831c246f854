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

from tracon_watcher.prediction import store
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


def engine(settings: settings_module.Settings, host_type: str | None) -> dict[str, ini.Section]:
    """Return tracon.conf.

    :param host_type: of all compute hosts; None for none, so that they have no model
    """
    account = ini.account(settings)
    return {
        'DEFAULT': {'debug': settings.debug, 'transport_url': settings.transport_url},
        'oslo_messaging_rabbit': ini.messaging(),
        'database': ini.database(settings, 'tracon'),
        'engine': {'host': 'control', 'polling_interval_seconds': settings.polling_seconds,
                   'window_seconds': 60 * settings.polling_seconds,
                   'maximum_age_seconds': max(30 * settings.polling_seconds, 60),
                   'repair_interval_seconds': 60, 'lease_seconds': 10,
                   **({} if host_type is None else {'default_host_type': host_type}),
                   'models_directory': models_directory(settings)},
        'api': {'host': settings_module.ADDRESS, 'port': settings.port('interference'),
                'metrics_port': 0},
        'service_auth': {**account, 'valid_interfaces': 'public'},
        'keystone_authtoken': ini.doorkeeper(settings, 'interference'),
        'oslo_concurrency': ini.concurrency(settings),
    }


def models_directory(settings: settings_module.Settings) -> pathlib.Path:
    """Return the folder of the engine's models."""
    return settings.configuration / 'tracon/models'


def configuration_file(settings: settings_module.Settings) -> pathlib.Path:
    """Return the path of tracon.conf."""
    return settings.configuration / 'tracon/tracon.conf'


def start_engine(cloud: cloud_module.TestCloud, models: pathlib.Path,
                 ready: Callable[[], bool] | None = None) -> None:
    """Configure and start the engine.

    :param models: folder of models of one host type, which all compute hosts are taken for; none
        in it: they are judged by the law of queueing
    :raises CloudError: when its database cannot be made, or it does not start
    """
    settings = cloud.settings
    target = models_directory(settings)
    target.mkdir(parents=True, exist_ok=True)
    for old in target.glob('*.json'):
        old.unlink()
    types = set()
    for path in sorted(models.glob('*.json')):
        model = store.load(path)
        types.add(model.host_type)
        store.save(model, target / path.name)
    if len(types) > 1:
        raise errors.CloudError(f'{models}: models of one host type are expected, and there are '
                                f'those of {", ".join(sorted(types))}')
    file = configuration_file(settings)
    ini.write(file, ini.render(engine(settings, types.pop() if types else None)))
    programs = pathlib.Path(sys.prefix) / 'bin'
    _run([programs / 'tracon', 'db', 'upgrade', '--config-file', file])
    # One that runs may be of an earlier time, with other models.
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
