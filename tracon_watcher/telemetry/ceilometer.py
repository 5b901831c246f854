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

"""Pollsters of Ceilometer's compute agent.

There are two, ``tracon.vm`` and ``tracon.host``, and each gives all meters of its scope. Were
there one a meter, Ceilometer would give each its own time: two meters of one poll could come to
lie in different buckets of Gnocchi, and their ratio, which is what a rate is, would be wrong. It
would also send and store VM by VM as often as there are meters.
"""

from __future__ import annotations

import pathlib
from typing import Any, Iterator

from ceilometer.compute.pollsters import util
from ceilometer.compute.virt.libvirt import utils as libvirt_utils
from ceilometer.polling import plugin_base
from ceilometer.polling import prom_exporter
from ceilometer import sample
from oslo_log import log

from tracon_watcher.telemetry import host_totals
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
        counters = host_totals.read(self.root)
        for name, value in counters.items():
            meter = meters.BY_NAME[name]
            yield sample.Sample(
                name=name, type=meter.type, unit=meter.unit, volume=value, user_id=None,
                project_id=None, resource_id=self.conf.host,
                resource_metadata={'host': self.conf.host},
                monotonic_time=counters[meters.HOST_CLOCK.name] * 1e-9)
