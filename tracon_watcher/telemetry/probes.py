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

"""Pollster of Ceilometer's central agent: what the sensors of probe VMs feel.

It asks tracon-probe, whose address is the resource in ``polling.yaml``. A state that is unknown is
no sample: what does not report is unknown to those who read meters. Ceilometer's own time is not
that of a reading, so that each sample has the time of its reading, and a reading that is polled
twice is stored once.
"""

from __future__ import annotations

import datetime
import json
import math
from typing import Any, Iterator

from ceilometer.polling import plugin_base
from ceilometer.polling import prom_exporter
from ceilometer import sample
from oslo_log import log
import requests

from tracon_watcher.telemetry import meters

LOG = log.getLogger(__name__)

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
