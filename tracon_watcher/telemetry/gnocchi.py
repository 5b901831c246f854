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

"""Reads the samples that Ceilometer stored in Gnocchi.

The answers are Gnocchi's aggregates, the last value of each bucket, for a bounded page of
resources a request, never for one. A page names the resources and the meters: Gnocchi then needs a
query of its database for each page, and time that grows evenly with the page. Naming the metrics
instead makes it compare each with each, and ``groupby`` makes it do the work resource by resource.

keystoneauth1 asks rather than gnocchiclient, which can end neither an answer that does not end
nor one that is too large, and with which each timestamp of each measure would become an object.
"""

from __future__ import annotations

import dataclasses
import logging
import time
from typing import Callable, Mapping, Sequence

from tracon_watcher.telemetry import gnocchi_resources
from tracon_watcher.telemetry import gnocchi_round
from tracon_watcher.telemetry import meters as meters_module
from tracon_watcher.telemetry import pages
from tracon_watcher.telemetry import readings
from tracon_watcher.telemetry import rest
from tracon_watcher.telemetry import samples

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Settings:
    """What to ask Gnocchi for, and how.

    :param resource_types: Gnocchi's resource type by the scope of a meter
    :param granularity: seconds, one that the archive policy of the meters has
    :param aggregation: one that it has as well; "mean" is as good with one poll in a bucket
    :param page: resources in a request
    :param requests_at_once: to Gnocchi
    :param seconds: that a round may take; pages that are left then are not asked for
    :param listing_page: resources in a page of a listing
    :param relist_seconds: between two full listings of resources
    """

    resource_types: Mapping[str, str] = dataclasses.field(default_factory=lambda: {
        meters_module.VM: 'instance', meters_module.HOST: 'nova_compute',
        meters_module.PROBE: 'nova_compute'})
    granularity: float = 60.0
    aggregation: str = 'last'
    page: int = 100
    requests_at_once: int = 4
    seconds: float = 300.0
    listing_page: int = 500
    relist_seconds: float = 3600.0


class GnocchiReader:
    """A :class:`tracon_watcher.telemetry.readings.Reader` of Gnocchi."""

    def __init__(self, service: rest.Service, settings: Settings = Settings(),
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        #: Seconds by which a sample may have been taken after the time that it has.
        self.resolution = settings.granularity
        #: Ceilometer gives a sample the time of the compute host.
        self.ahead = 3600.0
        #: What came of the last round.
        self.last: gnocchi_round.Outcome | None = None
        self._service = service
        self._clock = clock
        #: What is listed, by scope.
        self.lists = {scope: gnocchi_resources.ResourceList(
            service, name, settings.listing_page, settings.relist_seconds)
            for scope, name in settings.resource_types.items()}
        self._pages = {scope: pages.Pages(settings.page) for scope in self.lists}

    def read(self, since: float, until: float, meters: Sequence[str]) -> readings.Readings:
        """Return the samples of these meters; what could not be read is not in them.

        It is counted in :attr:`last`, and logged in one line.

        :raises tracon_watcher.telemetry.readings.TelemetryUnavailable: when nothing could be read
        """
        asked = self.settings
        round_ = gnocchi_round.Round(
            self._service, asked.requests_at_once, asked.seconds,
            (asked.granularity, asked.aggregation), since, until, self._clock)
        for scope in dict.fromkeys(_scope(meter) for meter in meters):
            listed = self.lists[scope]
            try:
                if listed.refresh(self._clock()):
                    self._pages[scope].forgive()
            except readings.TelemetryUnavailable as error:
                # Those that are known already can be read all the same.
                round_.fail(error)
            round_.ask(listed.resource_type, listed.names, self._pages[scope],
                       [meter for meter in meters if _scope(meter) == scope])
        self.last = round_.outcome()
        if self.last.first is not None:
            if not round_.parts:
                raise self.last.first
            LOG.warning('%d of %d resources could not be read, in %d of %d pages; first: %s',
                        self.last.unread, self.last.resources, self.last.failed, self.last.pages,
                        self.last.first)
        return dataclasses.replace(samples.join(round_.parts, meters), asked=self._asked(meters))

    def _asked(self, meters: Sequence[str]) -> str:
        """Return what was asked for, and of whom."""
        listed = ' and '.join(
            f'{one.resource_type} ({"listed" if one.names else "none is listed"})'
            for one in (self.lists[scope] for scope in dict.fromkeys(map(_scope, meters))))
        return (f'{self._service.where("v1/aggregates")} was asked for '
                f'{meters[0] if meters else "nothing"} and others of resources of type {listed}, '
                f'granularity {self.settings.granularity:g} s, aggregation '
                f'{self.settings.aggregation}')


def _scope(meter: str) -> str:
    known = meters_module.BY_NAME.get(meter)
    return meters_module.VM if known is None else known.scope
