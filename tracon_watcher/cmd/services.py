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

"""How commands reach the services of a cloud."""

from __future__ import annotations

from typing import Sequence

from keystoneauth1 import adapter
from openstack import connection
from oslo_config import cfg

from tracon_watcher.conf import engine as options
from tracon_watcher.conf import telemetry
from tracon_watcher import errors
from tracon_watcher.telemetry import gnocchi
from tracon_watcher.telemetry import prometheus
from tracon_watcher.telemetry import rest

_AETOS = 'metric-storage'


def telemetry_configuration(files: Sequence[str] = ()) -> cfg.ConfigOpts:
    """Return the options that say where telemetry is read.

    :param files: instead of ``tracon.conf`` where oslo.config looks for it
    :raises tracon_watcher.errors.InvalidOption: when a file or a value cannot be used
    """
    conf = cfg.ConfigOpts()
    options.register_opts(conf)
    telemetry.register_opts(conf)
    try:
        conf([], project='tracon', default_config_files=list(files) or None)
        # oslo.config looks at a value when it is read.
        for name in ('engine', *(group.name for group, _options in telemetry.list_opts())):
            dict(conf[name])
    except cfg.Error as error:
        raise errors.InvalidOption('--config-file', ', '.join(files) or 'tracon.conf',
                                   ' '.join(str(error).split())) from None
    return conf


def telemetry_reader(conf: cfg.ConfigOpts, sdk: connection.Connection
                     ) -> gnocchi.GnocchiReader | prometheus.PrometheusReader:
    """Return the reader of Gnocchi or Prometheus, whichever is configured."""
    if conf.engine.telemetry == 'gnocchi':
        wanted = conf.gnocchi
        return gnocchi.GnocchiReader(
            rest.Service(adapter_of(sdk, 'metric'), 'Gnocchi'),
            gnocchi.Settings(
                granularity=wanted.granularity_seconds or conf.engine.polling_interval_seconds,
                page=wanted.page, requests_at_once=wanted.requests_at_once,
                seconds=wanted.round_seconds))
    wanted = conf.prometheus
    way = (adapter_of(sdk, _AETOS) if wanted.url is None else
           rest.plain(wanted.url, wanted.username, wanted.password, wanted.ca_file or True))
    return prometheus.PrometheusReader(
        rest.Service(way, 'Aetos' if wanted.url is None else 'Prometheus'),
        prometheus.Settings(prefix=wanted.prefix, label=wanted.label, only=wanted.only,
                            scrape_seconds=wanted.scrape_seconds, seconds=wanted.round_seconds))


def adapter_of(sdk: connection.Connection, service_type: str) -> adapter.Adapter:
    """Return what asks a service of the catalogue, in the region of a connection."""
    return adapter.Adapter(sdk.session, service_type=service_type,
                           region_name=sdk.config.get_region_name(),
                           interface=sdk.config.get_interface() or 'public')
