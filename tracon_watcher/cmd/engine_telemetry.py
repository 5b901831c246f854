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

"""Builds the reader of telemetry that is configured."""

from __future__ import annotations

from typing import Any

from keystoneauth1 import adapter
from oslo_config import cfg

from tracon_watcher.telemetry import gnocchi
from tracon_watcher.telemetry import prometheus
from tracon_watcher.telemetry import rest

_AETOS = 'metric-storage'


def reader(conf: cfg.ConfigOpts, session: Any, region: str | None,
           interface: str) -> gnocchi.GnocchiReader | prometheus.PrometheusReader:
    """Return the reader.

    :param session: of keystoneauth1
    """
    if conf.engine.telemetry == 'gnocchi':
        wanted = conf.gnocchi
        return gnocchi.GnocchiReader(
            rest.Service(_found(session, 'metric', region, interface), 'Gnocchi'),
            gnocchi.Settings(
                granularity=wanted.granularity_seconds or conf.engine.polling_interval_seconds,
                page=wanted.page, requests_at_once=wanted.requests_at_once,
                seconds=wanted.round_seconds))
    wanted = conf.prometheus
    way = (_found(session, _AETOS, region, interface) if wanted.url is None else
           rest.plain(wanted.url, wanted.username, wanted.password, wanted.ca_file or True))
    return prometheus.PrometheusReader(
        rest.Service(way, 'Aetos' if wanted.url is None else 'Prometheus'),
        prometheus.Settings(prefix=wanted.prefix, label=wanted.label, only=wanted.only,
                            scrape_seconds=wanted.scrape_seconds, seconds=wanted.round_seconds))


def _found(session: Any, service_type: str, region: str | None,
           interface: str) -> adapter.Adapter:
    return adapter.Adapter(session, service_type=service_type, region_name=region,
                           interface=interface)
