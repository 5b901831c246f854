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

"""Ceilometer's pollsters: of the compute agent, and of the central agent for probe VMs."""

from __future__ import annotations

import datetime
import json
import math
import pathlib
from typing import Any, Iterator

from ceilometer.compute.pollsters import util
from ceilometer.compute.virt.libvirt import utils as libvirt_utils
from ceilometer.polling import plugin_base
from ceilometer.polling import prom_exporter
from ceilometer import sample
from oslo_log import log
import requests

from tracon_watcher.telemetry import host_counters
from tracon_watcher.telemetry import libvirt
from tracon_watcher.telemetry import meters

LOG = log.getLogger(__name__)

# Keys of the dictionary that the pollsters of one cycle share.
_DOMAINS, _PURGED = 'tracon.domains', 'tracon.purged'


class _Pollster(plugin_base.PollsterBase):

    def _begin(self, cache: dict[str, Any]) -> None:
        """Take the last cycle's values out of Ceilometer's exporter for Prometheus.

        Ceilometer does so by the names of pollsters, taking them for those of meters. A VM that
        has left would be exported for ever, and a scrape in between would mix two cycles.
        """
        token = object()
        first = cache.setdefault(_PURGED, token) is token
        if first and self.conf.polling.enable_prometheus_exporter:
            for meter in meters.METERS:
                prom_exporter.purge_stale_metrics(meter.name)


class VMPollster(_Pollster):
    """``tracon.vm``: all meters of the VMs on this host, from one call to libvirt."""

    default_discovery = 'local_instances'

    def setup_environment(self) -> None:
        self.source = libvirt.Source(lambda: libvirt_utils.new_libvirt_connection(self.conf))
        self._failing = self._unmatched = False

    def get_samples(self, manager: Any, cache: dict[str, Any], resources: list[Any]
                    ) -> Iterator[sample.Sample]:
        """Yield the samples VM by VM: of those that were discovered and that libvirt reports."""
        self._begin(cache)
        if _DOMAINS not in cache:
            cache[_DOMAINS] = self._poll()
        self._compare(resources, cache[_DOMAINS])
        for instance in resources:
            counters = cache[_DOMAINS].get(instance.id)
            if counters is None:
                LOG.debug('Instance %s does not run here, or its monitor is occupied',
                          instance.id)
                continue
            try:
                yield from list(self._samples(instance, counters))
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                LOG.warning('Instance %s was discovered without what a sample needs: %r',
                            instance.id, error)

    def _compare(self, resources: list[Any], domains: dict[str, dict[str, int]]) -> None:
        """Say once that nothing that was discovered is what runs here."""
        unmatched = bool(resources and domains) and not any(
            instance.id in domains for instance in resources)
        if unmatched and not self._unmatched:
            LOG.warning('No meters of VMs: no instance that Ceilometer discovered, such as %s, is '
                        'a domain that libvirt runs here, such as %s; see '
                        'instance_discovery_method in ceilometer.conf', resources[0].id,
                        min(domains))
        self._unmatched = unmatched

    def _poll(self) -> dict[str, dict[str, int]]:
        """Return nothing when libvirt does not answer: the values of this cycle are unknown."""
        try:
            found = self.source.poll()
        except libvirt.StatisticsUnavailable as error:
            log_it = LOG.debug if self._failing else LOG.warning
            log_it('No meters of VMs in this cycle, nor until libvirt answers: %s', error)
            self._failing = True
            return {}
        if self._failing:
            LOG.info('libvirt answers again, with %d domains', len(found))
        self._failing = False
        return found

    def _samples(self, instance: Any, counters: dict[str, int]) -> Iterator[sample.Sample]:
        clock = counters[meters.CLOCK.name] * 1e-9
        for name, value in counters.items():
            meter = meters.BY_NAME[name]
            # The metadata of Ceilometer's own pollsters, of which Gnocchi gets its attributes.
            yield util.make_sample_from_instance(
                self.conf, instance, name=name, type=meter.type, unit=meter.unit, volume=value,
                monotonic_time=clock)


class HostPollster(_Pollster):
    """``tracon.host``: all meters of this host, from /proc and /sys."""

    default_discovery = 'local_node'
    root = pathlib.Path('/')

    def get_samples(self, manager: Any, cache: dict[str, Any], resources: list[Any]
                    ) -> Iterator[sample.Sample]:
        """Yield the samples of this host; nova-compute has to know it by the same name."""
        self._begin(cache)
        counters = host_counters.read(self.root)
        for name, value in counters.items():
            meter = meters.BY_NAME[name]
            yield sample.Sample(
                name=name, type=meter.type, unit=meter.unit, volume=value, user_id=None,
                project_id=None, resource_id=self.conf.host,
                resource_metadata={'host': self.conf.host},
                monotonic_time=counters[meters.HOST_CLOCK.name] * 1e-9)


PATH, SCHEMA = '/v1/states', 'tracon-probe-states/1'
# Seconds; bytes, of ten thousand sensors.
_PATIENCE, _LARGEST = 10.0, 32 << 20


class ProbePollster(plugin_base.PollsterBase):
    """``tracon.probe``: the meters of all sensors that a service tracon-probe reads."""

    # There is none: the resources are stated.
    default_discovery = None

    def setup_environment(self) -> None:
        self._failing: set[str] = set()

    def get_samples(self, manager: Any, cache: dict[str, Any], resources: list[Any]
                    ) -> Iterator[sample.Sample]:
        """Yield the samples of all sensors whose state is known."""
        if self.conf.polling.enable_prometheus_exporter:
            for meter in meters.PROBE_METERS:
                prom_exporter.purge_stale_metrics(meter.name)
        for url in resources:
            try:
                found = list(_samples(_ask(url)))
            except (requests.RequestException, ValueError, LookupError, TypeError) as error:
                log_it = LOG.debug if url in self._failing else LOG.warning
                log_it('No meters of probes in this cycle, nor until tracon-probe answers at '
                       '%s: %s', url, error)
                self._failing.add(url)
                continue
            if url in self._failing:
                LOG.info('tracon-probe answers again at %s', url)
                self._failing.discard(url)
            yield from found


def _ask(url: str) -> Any:
    with requests.get(url.rstrip('/') + PATH, timeout=_PATIENCE, stream=True,
                      allow_redirects=False) as answer:
        answer.raise_for_status()
        body = answer.raw.read(_LARGEST + 1, decode_content=True)
    if len(body) > _LARGEST:
        raise ValueError(f'the answer has more than {_LARGEST} bytes')
    content = json.loads(body)
    if content['schema'] != SCHEMA:
        raise ValueError(f'the answer is of {content["schema"]} instead of {SCHEMA}: install the '
                         f'same release of tracon-watcher on both sides')
    return content['sensors']


def _samples(sensors: Any) -> Iterator[sample.Sample]:
    for sensor in sensors:
        for phase in meters.PHASES:
            found = sensor['phases'].get(phase, {})
            if found.get('ratio') is None or found.get('at') is None:
                continue
            ratio = float(found['ratio'])
            low = {'quiet': 1.0, 'contended': max(float(found['low']), 1.0)}.get(found['state'])
            at = datetime.datetime.fromtimestamp(float(found['at']), datetime.timezone.utc)
            if not (math.isfinite(ratio) and (low is None or math.isfinite(low))):
                raise ValueError(f'{sensor["host"]}, {phase}: {found}')
            name = f'tracon.probe.{phase}'
            for one, volume in ((name, ratio), (name + meters.LOW, low)):
                if volume is not None:
                    meter = meters.BY_NAME[one]
                    yield sample.Sample(
                        name=one, type=meter.type, unit=meter.unit, volume=volume, user_id=None,
                        project_id=None, resource_id=sensor['host'],
                        resource_metadata={'host': sensor['host']}, timestamp=at.isoformat())
