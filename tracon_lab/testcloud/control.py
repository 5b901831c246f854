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

"""The services of the control plane, as commands."""

from __future__ import annotations

import dataclasses
import pathlib
import sys
from typing import Mapping, Sequence

from tracon_lab.testcloud import service
from tracon_lab.testcloud import settings as settings_module


def keystone(settings: settings_module.Settings) -> service.Service:
    """Return Keystone's API."""
    folder = settings.configuration / 'keystone'
    return _web(settings, 'keystone', 'keystone', 'keystone.wsgi.api',
                [folder / 'keystone.conf'], '/v3',
                environment={'OS_KEYSTONE_CONFIG_DIR': str(folder)})


def placement(settings: settings_module.Settings) -> service.Service:
    """Return Placement's API."""
    folder = settings.configuration / 'placement'
    return _web(settings, 'placement', 'placement', 'placement.wsgi.api',
                [folder / 'placement.conf'],
                environment={'OS_PLACEMENT_CONFIG_DIR': str(folder)})


def glance(settings: settings_module.Settings) -> service.Service:
    """Return Glance's API."""
    folder = settings.configuration / 'glance'
    return _web(settings, 'glance-api', 'glance', 'glance.wsgi.api',
                [folder / 'glance-api.conf'], '/versions',
                environment={'OS_GLANCE_CONFIG_DIR': str(folder)})


def neutron(settings: settings_module.Settings) -> service.Service:
    """Return Neutron's API."""
    folder = settings.configuration / 'neutron'
    return _web(settings, 'neutron-api', 'neutron', 'neutron.wsgi.api',
                [folder / 'neutron.conf'], arguments=True,
                environment={'OS_NEUTRON_CONFIG_DIR': str(folder),
                             'OS_NEUTRON_CONFIG_FILES': 'neutron.conf'})


def nova_api(settings: settings_module.Settings) -> service.Service:
    """Return Nova's API."""
    folder = settings.configuration / 'nova'
    names = ('api-paste.ini', 'nova.conf', 'control.conf')
    return _web(settings, 'nova-api', 'nova', 'nova.wsgi.osapi_compute',
                [folder / name for name in names],
                environment={'OS_NOVA_CONFIG_DIR': str(folder),
                             'OS_NOVA_CONFIG_FILES': ';'.join(names)})


def nova_conductor(settings: settings_module.Settings) -> service.Service:
    """Return nova-conductor."""
    return _agent('nova-conductor', _nova(settings, 'control'))


def nova_scheduler(settings: settings_module.Settings) -> service.Service:
    """Return nova-scheduler."""
    return _agent('nova-scheduler', _nova(settings, 'control', 'scheduler'))


def gnocchi_api(settings: settings_module.Settings) -> service.Service:
    """Return Gnocchi's API."""
    return _web(settings, 'gnocchi-api', 'gnocchi', 'gnocchi.rest.wsgi',
                [settings.configuration / 'gnocchi/gnocchi.conf'], arguments=True)


def gnocchi_metricd(settings: settings_module.Settings) -> service.Service:
    """Return what aggregates the measures that came in."""
    return _agent('gnocchi-metricd', [settings.configuration / 'gnocchi/gnocchi.conf'])


def ceilometer_notification(settings: settings_module.Settings) -> service.Service:
    """Return the agent that hands samples on to Gnocchi."""
    folder = settings.configuration / 'ceilometer'
    return _agent('ceilometer-notification', [folder / 'ceilometer.conf'],
                  sorted(folder.glob('*.yaml')), 'ceilometer-agent-notification')


def watcher_api(settings: settings_module.Settings) -> service.Service:
    """Return Watcher's API."""
    return _web(settings, 'watcher-api', 'watcher', 'watcher.wsgi.api', _watcher(settings),
                arguments=True)


def watcher_decision_engine(settings: settings_module.Settings) -> service.Service:
    """Return the process in which audits run."""
    return _agent('watcher-decision-engine', _watcher(settings))


def watcher_applier(settings: settings_module.Settings) -> service.Service:
    """Return the process that carries action plans out."""
    return _agent('watcher-applier', _watcher(settings))


def _nova(settings: settings_module.Settings, *files: str) -> list[pathlib.Path]:
    return [settings.configuration / f'nova/{name}.conf' for name in ('nova', *files)]


def _watcher(settings: settings_module.Settings) -> list[pathlib.Path]:
    return [settings.configuration / 'watcher/watcher.conf']


def horizon(settings: settings_module.Settings) -> service.Service:
    """Return Horizon, which serves its static files itself."""
    made = _web(settings, 'horizon', 'horizon', 'openstack_dashboard.wsgi',
                [settings.configuration / 'horizon/local/local_settings.py'], '/auth/login/',
                environment=horizon_environment(settings))
    return dataclasses.replace(
        made, command=(*made.command, '--static-map', f'/static={settings.data}/horizon/static'),
        # The first page has all style sheets compiled.
        patience=180.0)


def horizon_environment(settings: settings_module.Settings) -> dict[str, str]:
    """Return the variables by which Horizon finds its settings."""
    return {'DJANGO_SETTINGS_MODULE': 'openstack_dashboard.settings',
            'PYTHONPATH': str(settings.configuration / 'horizon')}


def config_files(files: Sequence[pathlib.Path]) -> tuple[str, ...]:
    """Return the arguments that name configuration files."""
    return tuple(part for path in files for part in ('--config-file', str(path)))


def _agent(name: str, files: Sequence[pathlib.Path], also_reads: Sequence[pathlib.Path] = (),
           program: str | None = None) -> service.Service:
    return service.Service(name, (service.program(program or name), *config_files(files)),
                           reads=(*files, *also_reads))


def _web(settings: settings_module.Settings, name: str, listener: str, module: str,
         files: Sequence[pathlib.Path], path: str = '/', arguments: bool = False,
         environment: Mapping[str, str] | None = None) -> service.Service:
    """Return a WSGI application under uWSGI.

    :param files: that it reads
    :param path: that says whether it is up
    :param arguments: whether it takes its files as arguments
    :param environment: by which it finds them otherwise
    """
    port = settings.port(listener)
    return service.Service(name, (
        service.program('uwsgi'), '--http-socket', f'{settings_module.ADDRESS}:{port}',
        '--module', f'{module}:application', '--virtualenv', sys.prefix,
        '--master', '--processes', '1', '--threads', '4', '--enable-threads', '--lazy-apps',
        '--need-app', '--die-on-term', '--buffer-size', '65535', '--http-chunked-input',
        # Without this a client that keeps its connection is told that it was reset.
        '--add-header', 'Connection: close',
        '--procname-prefix', f'tracon-{name} ',
        *(('--pyargv', ' '.join(config_files(files))) if arguments else ())),
        environment or {}, service.answers(port, path), tuple(files))
