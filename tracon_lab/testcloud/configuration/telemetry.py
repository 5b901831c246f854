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

"""Ceilometer's agents and Gnocchi: from a host's counters to a series of numbers."""

from __future__ import annotations

import importlib.util
import pathlib
import sys
from typing import Any
from urllib import parse

import yaml

from tracon_lab.testcloud.configuration import ini
from tracon_lab.testcloud import errors
from tracon_lab.testcloud import settings as settings_module

POLICY = 'tracon-test'
#: Of Ceilometer's own meters, those that libvirt gives for every guest.
STOCK_METERS = ('cpu', 'disk.device.read.*', 'disk.device.write.*', 'memory.usage')
STOCK_RESOURCES = 'gnocchi_resources.yaml'
#: Of the agent that asks tracon-probe, and what it polls.
CENTRAL, CENTRAL_POLLING = 'central.conf', 'central_polling.yaml'
_PROBE_POLLING = 'probe_polling.yaml'


def write(settings: settings_module.Settings) -> None:
    """Write the files of Gnocchi and of Ceilometer."""
    etc = settings.configuration
    ini.write(etc / 'gnocchi/gnocchi.conf', ini.render(gnocchi(settings), settings.gnocchi_extra))
    ini.write(etc / 'gnocchi/api-paste.ini', paste(settings))
    ini.write(etc / 'ceilometer/ceilometer.conf',
              ini.render(ceilometer(settings), settings.ceilometer_extra))
    for host in settings.hosts:
        ini.write(etc / f'ceilometer/{host}.conf', ini.render({'DEFAULT': {'host': host}}))
    ini.write(etc / 'ceilometer' / CENTRAL, ini.render({
        'polling': {'cfg_file': etc / 'ceilometer' / CENTRAL_POLLING}}))
    for name, content in definitions(settings).items():
        ini.write(etc / 'ceilometer' / name, yaml.safe_dump(content, sort_keys=False))


def definitions(settings: settings_module.Settings) -> dict[str, dict[str, Any]]:
    """Return what is polled, where it goes and how it is kept, by the names of the files."""
    ours = {path.name: _read(path) for path in files(settings)}
    found = {
        'polling.yaml': polling(settings, ours.pop('polling.yaml', None)),
        'pipeline.yaml': pipeline(settings, ours.pop('pipeline.yaml', None)),
        'event_pipeline.yaml': event_pipeline(settings),
        STOCK_RESOURCES: stock_resources(settings),
    }
    if _PROBE_POLLING in ours:
        found[CENTRAL_POLLING] = probe_polling(settings, ours.pop(_PROBE_POLLING))
    for name, content in ours.items():
        if name.endswith(STOCK_RESOURCES):
            found[name] = resources(settings, content)
    return found


def gnocchi(settings: settings_module.Settings) -> dict[str, ini.Section]:
    """Return gnocchi.conf: everything in files, aggregated soon after it came."""
    data = settings.data / 'gnocchi'
    return {
        'DEFAULT': {'debug': settings.debug, 'coordination_url': f'file://{data}/coordination',
                    'parallel_operations': 2},
        'api': {'auth_mode': 'keystone',
                'paste_config': settings.configuration / 'gnocchi/api-paste.ini'},
        'indexer': {'url': settings.database_url('gnocchi')},
        'storage': {'driver': 'file', 'file_basepath': data},
        'incoming': {'driver': 'file', 'file_basepath': data},
        'metricd': {'workers': 1, 'metric_processing_delay': 2, 'metric_cleanup_delay': 60,
                    'greedy': True},
        'keystone_authtoken': ini.doorkeeper(settings, 'metric'),
    }


def paste(settings: settings_module.Settings) -> str:
    """Return Gnocchi's api-paste.ini; Keystone's middleware in it reads no other file."""
    text = (_package('gnocchi') / 'rest/api-paste.ini').read_text(encoding='utf-8')
    wanted = 'oslo_config_project = gnocchi\n'
    if wanted not in text:
        raise errors.CloudError('the api-paste.ini of this release of Gnocchi is not known: '
                                'install a release of upper-constraints.txt')
    return text.replace(wanted, f'{wanted}oslo_config_file = '
                                f'{settings.configuration / "gnocchi/gnocchi.conf"}\n')


def ceilometer(settings: settings_module.Settings) -> dict[str, ini.Section]:
    """Return ceilometer.conf, which all of its agents read."""
    etc = settings.configuration / 'ceilometer'
    return {
        'DEFAULT': {'debug': settings.debug, 'host': 'control',
                    'transport_url': settings.transport_url,
                    'pipeline_cfg_file': etc / 'pipeline.yaml',
                    'event_pipeline_cfg_file': etc / 'event_pipeline.yaml',
                    'libvirt_type': 'qemu'},
        'compute': {'instance_discovery_method': 'libvirt_metadata'},
        'polling': {'cfg_file': etc / 'polling.yaml'},
        'notification': {'workers': 1},
        'oslo_messaging_rabbit': ini.messaging(),
        'oslo_messaging_notifications': {'driver': 'messagingv2'},
        'service_credentials': {**ini.account(settings), 'interface': 'public'},
        'service_types': {'nova': 'compute'},
        'oslo_concurrency': ini.concurrency(settings),
    }


def files(settings: settings_module.Settings) -> list[pathlib.Path]:
    """Return the product's own files, as far as they are there."""
    folders = [settings.telemetry] if settings.telemetry is not None else [
        _package('tracon_watcher').parent / 'etc/ceilometer',
        pathlib.Path(sys.prefix) / 'etc/tracon-watcher/ceilometer']
    return next((found for folder in folders if (found := sorted(folder.glob('*.yaml')))), [])


def polling(settings: settings_module.Settings, content: Any) -> dict[str, Any]:
    """Return polling.yaml with this cloud's interval."""
    content = content or {'sources': [{'name': 'stock', 'meters': list(STOCK_METERS)}]}
    return {**content, 'sources': [{**source, 'interval': settings.polling_seconds}
                                   for source in content['sources']]}


def probe_polling(settings: settings_module.Settings, content: Any) -> dict[str, Any]:
    """Return what the agent polls that asks tracon-probe."""
    return {**content, 'sources': [{**source, 'interval': settings.polling_seconds,
                                    'resources': [settings.url('probe')]}
                                   for source in content['sources']]}


def publisher(settings: settings_module.Settings, target: str = 'gnocchi://') -> str:
    """Return a publisher as a pipeline names it, its files found and its policy fast enough."""
    url = parse.urlsplit(target)
    if url.scheme != 'gnocchi':
        return target
    options = dict(parse.parse_qsl(url.query))
    name = options.get('resources_definition_file', STOCK_RESOURCES)
    if name == STOCK_RESOURCES:
        options['archive_policy'] = POLICY
    options['resources_definition_file'] = str(
        settings.configuration / 'ceilometer' / pathlib.PurePath(name).name)
    return 'gnocchi://?' + parse.urlencode(options, safe='/')


def event_pipeline(settings: settings_module.Settings) -> dict[str, Any]:
    """Return event_pipeline.yaml: what Nova tells of a VM, Gnocchi keeps of its resource."""
    return {'sources': [{'name': 'all', 'events': ['*'], 'sinks': ['gnocchi']}],
            'sinks': [{'name': 'gnocchi', 'publishers': [publisher(settings)]}]}


def pipeline(settings: settings_module.Settings, content: Any) -> dict[str, Any]:
    """Return pipeline.yaml, with paths and policies of this cloud."""
    content = content or {'sources': [{'name': 'all', 'meters': ['*'], 'sinks': ['gnocchi']}],
                          'sinks': [{'name': 'gnocchi', 'publishers': ['gnocchi://']}]}
    return {**content, 'sinks': [
        {**sink, 'publishers': [publisher(settings, one) for one in sink['publishers']]}
        for sink in content['sinks']]}


def stock_resources(settings: settings_module.Settings) -> dict[str, Any]:
    """Return Ceilometer's gnocchi_resources.yaml with a policy as fine as the polling."""
    content = _read(_package('ceilometer') / 'publisher/data' / STOCK_RESOURCES)
    policy = {
        'name': POLICY, 'back_window': 0,
        'aggregation_methods': ['mean', 'last', 'rate:mean'],
        'definition': [
            {'granularity': f'{settings.polling_seconds} seconds', 'timespan': '6 hours'},
            {'granularity': '300 seconds', 'timespan': '7 days'}],
    }
    return {**content, 'archive_policies': [policy, *content['archive_policies']]}


def resources(settings: settings_module.Settings, content: Any) -> dict[str, Any]:
    """Return definitions of the product, whose finest granularity becomes that of the polling."""
    policies = []
    for policy in content.get('archive_policies', ()):
        finest, *coarser = policy['definition']
        policies.append({**policy, 'definition': [
            {**finest, 'granularity': f'{settings.polling_seconds} seconds'}, *coarser]})
    return {**content, 'archive_policies': policies}


def _read(path: pathlib.Path) -> Any:
    return yaml.safe_load(path.read_text(encoding='utf-8'))


def _package(name: str) -> pathlib.Path:
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise errors.CloudError(f'{name} is not installed: pip install "tracon-watcher[cloud]"')
    return pathlib.Path(next(iter(found.submodule_search_locations)))
