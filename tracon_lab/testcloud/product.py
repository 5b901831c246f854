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
from typing import Any, Callable, Mapping

from tracon_lab.testcloud import access
from tracon_lab.testcloud import cloud as cloud_module
from tracon_lab.testcloud.configuration import horizon
from tracon_lab.testcloud.configuration import ini
from tracon_lab.testcloud.configuration import telemetry
from tracon_lab.testcloud import control
from tracon_lab.testcloud import errors
from tracon_lab.testcloud import network
from tracon_lab.testcloud import service
from tracon_lab.testcloud import settings as settings_module
from tracon_watcher.probe import controller

ENGINE, PROBE, CENTRAL = 'tracon-engine', 'tracon-probe', 'ceilometer-central'
#: Of all hosts of the cloud, for their baselines.
HOST_TYPE = 'testcloud'
#: As short as an option allows: who watches waits for two readings.
PROBE_SECONDS = 20
#: Readings of as many integers as the published probe reads; long enough for a narrow interval.
MEMORY_SETTING = {'rate': 3.0, 'seconds': 12.0, 'amount': 5_000_000}
SENSOR_PATIENCE = 60.0
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


def engine(settings: settings_module.Settings, probes: bool = False) -> dict[str, ini.Section]:
    """Return tracon.conf.

    :param probes: whether the engine heeds what sensors feel
    """
    account = ini.account(settings)
    return {
        'DEFAULT': {'debug': settings.debug, 'transport_url': settings.transport_url},
        'oslo_messaging_rabbit': ini.messaging(),
        'database': ini.database(settings, 'tracon'),
        'engine': {'host': 'control', 'polling_interval_seconds': settings.polling_seconds,
                   'window_seconds': 60 * settings.polling_seconds,
                   'maximum_age_seconds': max(30 * settings.polling_seconds, 60),
                   'repair_interval_seconds': 60, 'lease_seconds': 10, 'probes': probes},
        'probe': {**{f'{name}_file': path for name, path in probe_files(settings).items()},
                  'interval_seconds': PROBE_SECONDS, 'listen_port': settings.port('probe')},
        'api': {'host': settings_module.ADDRESS, 'port': settings.port('interference'),
                'metrics_port': settings.port('metrics')},
        'service_auth': {**account, 'valid_interfaces': 'public'},
        'keystone_authtoken': ini.doorkeeper(settings, 'interference'),
        'oslo_concurrency': ini.concurrency(settings),
    }


def configuration_file(settings: settings_module.Settings) -> pathlib.Path:
    """Return the path of tracon.conf."""
    return settings.configuration / 'tracon/tracon.conf'


def probe_files(settings: settings_module.Settings) -> dict[str, pathlib.Path]:
    """Return what tracon-probe reads: ``sensors``, ``secret`` and ``baselines``."""
    folder = configuration_file(settings).parent
    return {'sensors': folder / 'sensors.json', 'secret': folder / 'probe.secret',
            'baselines': folder / 'baselines.json'}


def start_engine(cloud: cloud_module.TestCloud, ready: Callable[[], bool] | None = None,
                 probes: bool = False) -> None:
    """Configure and start the engine.

    :param probes: whether it heeds what sensors feel
    :raises CloudError: when its database cannot be made, or it does not start
    """
    settings = cloud.settings
    file = configuration_file(settings)
    ini.write(file, ini.render(engine(settings, probes)))
    _run('tracon', 'db', 'upgrade', '--config-file', file)
    # One that runs may be of an earlier time, with other settings.
    ran = ENGINE in {one.name for one in cloud.status() if one.state == 'running'}
    cloud.extra_service(ENGINE, [service.program(ENGINE), '--config-file', str(file)],
                        ready=ready)
    if ran:
        cloud.restart(ENGINE)


def start_horizon(cloud: cloud_module.TestCloud) -> str:
    """Configure and start Horizon, and return its address.

    :raises CloudError: when its static files cannot be collected, or it does not start
    """
    settings = cloud.settings
    horizon.write(settings)
    environment = control.horizon_environment(settings)
    if not (settings.data / 'horizon/static').exists():
        _run('python', '-m', 'django', 'collectstatic', '--noinput', environment=environment)
    cloud.add(control.horizon(settings))
    return f'{settings.url("horizon")}/'


def deploy_sensors(cloud: cloud_module.TestCloud) -> list[controller.Sensor]:
    """Give each host a sensor that answers.

    :raises CloudError: when a host remains without
    """
    files = probe_files(cloud.settings)
    _run('tracon', 'probe', 'deploy', '--network', network.NAME, '--generator',
         f'{cloud.settings.network_address}/32', '--host-type', HOST_TYPE, '--output',
         files['sensors'], '--secret-file', files['secret'],
         environment=cloud.environment('service', 'service'))
    found = list(controller.load(files['sensors']).values())
    for sensor in found:
        address, port = sensor.address.split(':')
        access.wait_for(f'the sensor of {sensor.host} answering at {sensor.address}',
                        service.listens(int(port), address), SENSOR_PATIENCE)
    return found


def start_probes(cloud: cloud_module.TestCloud, sensor: controller.Sensor) -> None:
    """Measure the baseline of the memory phase, and start what reads and tells.

    :param sensor: the one whose readings make the baseline
    :raises CloudError: when it gives none, or something does not start
    """
    settings = cloud.settings
    files = probe_files(settings)
    _run('tracon', 'probe', 'baseline', sensor.address, '--secret-file', files['secret'],
         '--host-type', HOST_TYPE, '--output', files['baselines'], '--phase', 'memory',
         *(str(part) for name, value in MEMORY_SETTING.items()
           for part in (f'--memory-{name}', value)))
    etc = settings.configuration / 'ceilometer'
    for name, program, read in (
            (PROBE, PROBE, (configuration_file(settings), files['baselines'])),
            (CENTRAL, 'ceilometer-polling', (
                etc / 'ceilometer.conf', etc / telemetry.CENTRAL,
                etc / telemetry.CENTRAL_POLLING))):
        conf = [one for one in read if one.suffix == '.conf']
        cloud.extra_service(name, [
            service.program(program), *control.config_files(conf),
            *(('--polling-namespaces', 'central') if name == CENTRAL else ())], reads=read)


def _run(program: str, *arguments: Any, environment: Mapping[str, str] | None = None) -> None:
    found = subprocess.run(
        [service.program(program), *map(str, arguments)], capture_output=True, text=True,
        env={**os.environ, **(environment or {}), 'PYTHONWARNINGS': 'ignore'}, check=False)
    if found.returncode:
        raise errors.CloudError(f'{program} {arguments[0]} {arguments[1]}: '
                                f'{(found.stderr or found.stdout)[-500:].strip()}')
