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

"""One round of reading from Gnocchi: pages that are asked for at once, what came of them, its end.
"""

from __future__ import annotations

from concurrent import futures
import dataclasses
import datetime
import threading
from typing import Any, Callable, Mapping, Sequence

from tracon_watcher.telemetry import pages
from tracon_watcher.telemetry import readings
from tracon_watcher.telemetry import rest
from tracon_watcher.telemetry import samples

_PATH = 'v1/aggregates'
_REMEDY = 'install a release of Gnocchi that was tested with this one'
# So many pages without an answer, one after the other, and the others are not asked for.
_PATIENCE = 3


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of one round.

    :param resources: that were to be read
    :param pages: that were to be asked for
    :param failed: pages that were not answered, or not asked for any more
    :param unread: resources of those pages, and those left out since no page with them is answered
    :param seconds: that it took
    :param first: the first thing that went wrong; None when nothing did
    """

    resources: int
    pages: int
    failed: int
    unread: int
    seconds: float
    first: readings.TelemetryUnavailable | None


class Round:
    """A round of reading.

    :param at_once: requests
    :param seconds: after which no more pages are asked for
    :param bucket: Gnocchi's granularity and aggregation
    """

    def __init__(self, service: rest.Service, at_once: int, seconds: float,
                 bucket: tuple[float, str], since: float, until: float,
                 clock: Callable[[], float]) -> None:
        self.parts: list[readings.Readings] = []
        self.resources = self.unread = 0
        self._service = service
        self._at_once = at_once
        self._seconds = seconds
        self._granularity, self._aggregation = bucket
        self._since, self._until = since, until
        self._clock = clock
        self._started = clock()
        self._pages = self._failed = 0
        self._first: readings.TelemetryUnavailable | None = None
        self._in_a_row = 0
        self._lock = threading.Lock()

    def outcome(self) -> Outcome:
        """Return what came of it so far."""
        return Outcome(self.resources, self._pages, self._failed, self.unread,
                       self._clock() - self._started, self._first)

    def fail(self, error: readings.TelemetryUnavailable) -> None:
        """Take note of something that went wrong."""
        with self._lock:
            self._first = self._first or error

    def ask(self, resource_type: str, names: Mapping[str, str], paged: pages.Pages,
            meters: Sequence[str]) -> None:
        """Ask for the meters of all these resources: names by Gnocchi's id."""
        wanted = paged.split(names)
        self.resources += len(names)
        self.unread += paged.left_out
        self._pages += len(wanted)
        with futures.ThreadPoolExecutor(self._at_once) as pool:
            found = list(pool.map(
                lambda page: self._page(resource_type, names, page, meters), wanted))
        answered: list[list[str]] = []
        refused: list[list[str]] = []
        not_asked: list[list[str]] = []
        for page, came in zip(wanted, found):
            if isinstance(came, readings.Readings):
                self.parts.append(came)
                answered.append(page)
                continue
            (refused if came else not_asked).append(page)
            self._failed += 1
            self.unread += len(page)
        paged.learn(answered, refused, not_asked)

    def _page(self, resource_type: str, names: Mapping[str, str], page: list[str],
              meters: Sequence[str]) -> readings.Readings | bool:
        """Return the readings of a page, or whether it was asked for at all."""
        if self._in_a_row >= _PATIENCE:
            return False
        left = self._seconds - (self._clock() - self._started)
        if left < 0:
            self.fail(rest.Unanswered(
                self._service.where(_PATH), f'pages are left after {self._seconds:g} s',
                'give Gnocchi\'s API more processes, and ask it for more at once'))
            return False
        try:
            found = self._asked(resource_type, names, page, meters, left)
        except rest.Unanswered as error:
            self.fail(error)
            self._in_a_row = 0 if error.of_this else self._in_a_row + 1
            return True
        self._in_a_row = 0
        return found

    def _asked(self, resource_type: str, names: Mapping[str, str], page: list[str],
               meters: Sequence[str], left: float) -> readings.Readings:
        found = samples.Samples(meters)
        try:
            answer = self._service.ask('POST', _PATH, {
                'start': f'{self._since:.3f}', 'stop': f'{self._until:.3f}',
                'granularity': f'{self._granularity:g}', 'fill': 'dropna'}, {
                'operations': ['metric', *([meter, self._aggregation] for meter in meters)],
                'resource_type': resource_type, 'search': {'in': {'id': page}}}, left)
        except rest.Unanswered as error:
            # No resource of the page has any of the meters: nothing is wrong with it.
            if error.status == 404 and 'Metric [' in error.came:
                return found.readings(self._since, self._until)
            raise
        try:
            _take(answer['measures'], names, meters, self._aggregation, found)
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise self._service.unusable(_PATH, answer, _REMEDY) from error
        return found.readings(self._since, self._until)


def _take(measures: Mapping[str, Any], names: Mapping[str, str], meters: Sequence[str],
          aggregation: str, found: samples.Samples) -> None:
    """Take the measures {resource: {meter: {aggregation: [[time, granularity, value], …]}}}."""
    times: dict[str, float] = {}
    columns = {meter: column for column, meter in enumerate(meters)}
    for resource, by_meter in measures.items():
        for meter, by_aggregation in by_meter.items():
            points = by_aggregation[aggregation]
            for stamp, _granularity, _value in points:
                if stamp not in times:
                    at = datetime.datetime.fromisoformat(stamp)
                    times[stamp] = at.replace(tzinfo=at.tzinfo or datetime.UTC).timestamp()
            found.add(names[resource], columns[meter], [times[point[0]] for point in points],
                      [float('nan') if point[2] is None else float(point[2]) for point in points])
