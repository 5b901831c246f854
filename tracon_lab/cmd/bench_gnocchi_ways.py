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

"""The ways to read the meters of many VMs from Gnocchi, to be compared."""

from __future__ import annotations

from concurrent import futures
import itertools
import time
from typing import Any, Callable, Iterator, Sequence

import numpy as np

from tracon_lab.cmd import bench_child
from tracon_watcher.telemetry import gnocchi
from tracon_watcher.telemetry import meters as meters_module
from tracon_watcher.telemetry import rest

#: What every VM has, and the engine reads.
METERS = [meter.name for meter in meters_module.VM_METERS
          if meter.everywhere and meter.feeds != meters_module.OWN_LIMITS]
_Report = Callable[[float], None]
_Question = tuple[str, str, dict[str, Any], Any]
_AGGREGATES = 'v1/aggregates'


def service(endpoint: str) -> rest.Service:
    """Return Gnocchi as a client without Keystone has it."""
    return rest.Service(rest.plain(endpoint, 'admin', ''), 'Gnocchi',
                        rest.Timeouts(seconds=600.0, attempts=1))


def known(endpoint: str) -> list[str]:
    """Return the ids of all VMs."""
    listed = gnocchi.GnocchiReader(service(endpoint)).lists[meters_module.VM]
    listed.refresh(0.0)
    return list(listed.names)


def listing(endpoint: str) -> bench_child.Work:
    """List all VMs, as at the start."""
    def work(report: _Report) -> dict[str, Any]:
        reader = gnocchi.GnocchiReader(service(endpoint))
        start = time.process_time()
        listed = reader.lists[meters_module.VM]
        listed.refresh(0.0)
        return {'requests': len(listed.names) // reader.settings.listing_page + 1,
                'own': time.process_time() - start}
    return work


class _Some(gnocchi.ResourceList):
    """Some of the VMs, of which no others are looked for."""

    def refresh(self, now: float) -> bool:
        return False


def cycle(endpoint: str, size: int, at_once: int, window: tuple[float, float],
          vms: Sequence[str]) -> bench_child.Work:
    """Read all VMs with our reader, which has listed them before."""
    return pages(endpoint, size, at_once, window, vms, some=False)


def pages(endpoint: str, size: int, at_once: int, window: tuple[float, float],
          vms: Sequence[str], some: bool = True) -> bench_child.Work:
    """Read these VMs with our reader, which knows them already."""
    reader = gnocchi.GnocchiReader(service(endpoint), gnocchi.Settings(
        page=size, requests_at_once=at_once, seconds=1e9))
    listed = reader.lists[meters_module.VM]
    listed.refresh(time.monotonic())
    if some:
        known_ones, listed = listed.names, _Some(service(endpoint), listed.resource_type)
        listed.names = {vm: known_ones[vm] for vm in vms}
        reader.lists[meters_module.VM] = listed

    def work(report: _Report) -> dict[str, Any]:
        start = time.process_time()
        found = reader.read(*window, METERS)
        used = time.process_time() - start
        assert reader.last is not None
        complete = reader.last.first is None and len(found.resources) == len(vms) and bool(
            np.isfinite(found.values).all())
        if not complete:
            raise bench_child.BenchmarkFailed(f'only a part was read: {reader.last}')
        return {'requests': reader.last.pages + (not some), 'own': used}
    return work


def grouped(endpoint: str, size: int, at_once: int, window: tuple[float, float],
            vms: Sequence[str]) -> bench_child.Work:
    """Read pages of VMs with ``groupby``."""
    operations = ['metric', *([meter, 'last'] for meter in METERS)]
    return _asking(endpoint, at_once, [
        ('POST', _AGGREGATES, _parameters(window, groupby='id'),
         {'operations': operations, 'resource_type': 'instance', 'search': {'in': {'id': page}}})
        for page in _split(vms, size)])


def by_metric(endpoint: str, size: int, at_once: int, window: tuple[float, float],
              vms: Sequence[str]) -> bench_child.Work:
    """Read pages of VMs by the ids of their metrics."""
    metrics = _metrics(endpoint, vms)
    return _asking(endpoint, at_once, [
        ('POST', _AGGREGATES, _parameters(window),
         {'operations': ['metric', *([metrics[vm][meter], 'last']
                                     for vm in page for meter in METERS)]})
        for page in _split(vms, size)])


def single(endpoint: str, at_once: int, window: tuple[float, float], vms: Sequence[str]
           ) -> bench_child.Work:
    """Read every metric by a request of its own."""
    metrics = _metrics(endpoint, vms)
    parameters = {name: value for name, value in _parameters(window).items() if name != 'fill'}
    return _asking(endpoint, at_once, [
        ('GET', f'v1/metric/{metrics[vm][meter]}/measures', {**parameters, 'aggregation': 'last'},
         None) for vm in vms for meter in METERS])


def _asking(endpoint: str, at_once: int, questions: Sequence[_Question]) -> bench_child.Work:
    def work(report: _Report) -> dict[str, Any]:
        asked = service(endpoint)
        start = time.process_time()
        with futures.ThreadPoolExecutor(at_once) as pool:
            for answer in pool.map(lambda question: asked.ask(*question), questions):
                if not answer:
                    raise bench_child.BenchmarkFailed('an answer was empty')
        return {'requests': len(questions), 'own': time.process_time() - start}
    return work


def _parameters(window: tuple[float, float], **others: str) -> dict[str, Any]:
    return {'start': window[0], 'stop': window[1], 'granularity': 60, 'fill': 'dropna', **others}


def _metrics(endpoint: str, vms: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the ids of metrics, by VM and name; to know them is not measured."""
    found = {}
    for page in _split(vms, 100):
        for resource in service(endpoint).ask('POST', 'v1/search/resource/instance',
                                              {'limit': 100}, {'in': {'id': page}}):
            found[resource['id']] = resource['metrics']
    return found


def _split(vms: Sequence[str], size: int) -> Iterator[list[str]]:
    members = iter(vms)
    while page := list(itertools.islice(members, size)):
        yield page
