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

"""Reader of the samples that Ceilometer stored in Gnocchi."""

from __future__ import annotations

from concurrent import futures
import dataclasses
import datetime
import itertools
import logging
import math
import threading
import time
from typing import Any, Callable, Iterator, Mapping, Sequence

from tracon_watcher.telemetry import meters as meters_module
from tracon_watcher.telemetry import rest
from tracon_watcher.telemetry import samples

_ATTRIBUTES = ['id', 'original_resource_id', 'ended_at', 'revision_start']
_REMEDY = 'install a release of Gnocchi that was tested with this one'
# A change may become visible after one with a later time: transactions take a while.
_OVERLAP = datetime.timedelta(seconds=120)
# Of a full listing, except for the first.
_PAGES_A_ROUND = 10


@dataclasses.dataclass
class _Listing:
    """A full listing that is under way.

    :param pages: that are left
    :param names: of those before
    :param last: the last revision that is sure to be in it
    """

    pages: Iterator[list[dict[str, Any]]]
    names: dict[str, str]
    last: str


class ResourceList:
    """The resources of one type, by the id that Gnocchi gave them.

    Creating, changing and ending a resource begins a revision. So what has begun since the last
    one that was seen is all that changed, by Gnocchi's own clock. What was deleted without having
    ended shows when everything was listed again, which is done in some pages a round, so that no
    round has to wait for it; until then it has no measures.

    :param resource_type: of Gnocchi's
    :param page: resources in an answer; Gnocchi's ``max_limit`` may make it smaller
    :param relist_seconds: between two full listings
    :ivar ended_since: seconds since the epoch; resources that ended then or later are listed, too
    """

    def __init__(self, service: rest.Service, resource_type: str, page: int = 500,
                 relist_seconds: float = 3600.0) -> None:
        self.resource_type = resource_type
        self.names: Mapping[str, str] = {}
        self.ended_since = math.inf
        self._service = service
        self._path = f'v1/search/resource/{resource_type}'
        self._page = page
        self._relist_seconds = relist_seconds
        self._listed: float | None = None
        self._last_revision = ''
        self._listing: _Listing | None = None

    def refresh(self, now: float) -> bool:
        """Bring :attr:`names` up to date: names by Gnocchi's id.

        :param now: seconds, of any clock that is not set
        :returns: whether a full listing has just ended
        :raises tracon_watcher.telemetry.rest.Unanswered: :attr:`names` is then as it was
        """
        first = self._listed is None
        ended = False
        if self._listed is None or now - self._listed >= self._relist_seconds:
            ended = self._list(None if first else _PAGES_A_ROUND)
            if ended:
                self._listed = now
        if not first:
            self._update()
        return ended

    def _list(self, most: int | None) -> bool:
        """Go on with a full listing by so many pages; say whether it has ended."""
        listing = self._listing or _Listing(
            self._search(self._wanted()), {}, self._last_revision)
        # One that breaks off starts again the next time.
        self._listing = None
        count = 0
        for found in itertools.islice(listing.pages, most):
            count += 1
            for resource in found:
                listing.names[resource['id']] = resource['original_resource_id']
                if not self._last_revision:
                    listing.last = max(listing.last, resource['revision_start'])
        if count == most:
            self._listing = listing
            return False
        # What has changed while it was listed is asked for once more.
        self.names, self._last_revision = listing.names, listing.last
        return True

    def _update(self) -> None:
        """Ask for what changed since the last revision that was seen."""
        condition = self._wanted()
        if self._last_revision:
            since = datetime.datetime.fromisoformat(self._last_revision) - _OVERLAP
            condition = {'>=': {'revision_start': since.isoformat()}}
        names, last = dict(self.names), self._last_revision
        for resource in itertools.chain.from_iterable(self._search(condition)):
            ended = resource['ended_at']
            if ended is None or _seconds(ended) >= self.ended_since:
                names[resource['id']] = resource['original_resource_id']
            else:
                names.pop(resource['id'], None)
            last = max(last, resource['revision_start'])
        self.names, self._last_revision = names, last

    def _wanted(self) -> dict[str, Any]:
        """Return the condition that all resources meet which are to be listed."""
        there = {'=': {'ended_at': None}}
        if math.isinf(self.ended_since):
            return there
        since = datetime.datetime.fromtimestamp(self.ended_since, datetime.timezone.utc)
        return {'or': [there, {'>=': {'ended_at': since.isoformat()}}]}

    def _search(self, condition: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
        """Yield what to know of each resource, page by page, each from the last one's id on."""
        last = ''
        while True:
            body = {'and': [condition, {'>': {'id': last}}]} if last else condition
            found = self._service.ask('POST', self._path, {
                'limit': self._page, 'sort': 'id:asc', 'attrs': _ATTRIBUTES}, body)
            if not isinstance(found, list):
                raise self._service.unusable(self._path, found, _REMEDY)
            if not found:
                return
            for resource in found:
                self._check(resource)
                # Were this not so, the listing might never end.
                if resource['id'] <= last:
                    raise self._service.unusable(self._path, resource, _REMEDY)
                last = resource['id']
            yield found

    def _check(self, resource: Any) -> None:
        try:
            datetime.datetime.fromisoformat(resource['revision_start'])
            if resource['ended_at'] is not None:
                _seconds(resource['ended_at'])
            fit = isinstance(resource['id'], str) and isinstance(
                resource['original_resource_id'], str)
        except (LookupError, TypeError, ValueError):
            fit = False
        if not fit:
            raise self._service.unusable(self._path, resource, _REMEDY)


def _seconds(text: str) -> float:
    return datetime.datetime.fromisoformat(text).timestamp()


_PATH = 'v1/aggregates'
# So many pages without an answer, one after the other, and the others are not asked for.
_PATIENCE = 3


@dataclasses.dataclass(frozen=True)
class Collection:
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
    first: samples.TelemetryUnavailable | None


class CollectionRound:
    """A round of reading.

    :param at_once: requests
    :param seconds: after which no more pages are asked for
    :param bucket: Gnocchi's granularity and aggregation
    """

    def __init__(self, service: rest.Service, at_once: int, seconds: float,
                 bucket: tuple[float, str], since: float, until: float,
                 clock: Callable[[], float]) -> None:
        self.parts: list[samples.Readings] = []
        self.resources = self.unread = 0
        self._service = service
        self._at_once = at_once
        self._seconds = seconds
        self._granularity, self._aggregation = bucket
        self._since, self._until = since, until
        self._clock = clock
        self._started = clock()
        self._pages = self._failed = 0
        self._first: samples.TelemetryUnavailable | None = None
        self._in_a_row = 0
        self._lock = threading.Lock()

    def outcome(self) -> Collection:
        """Return what came of it so far."""
        return Collection(self.resources, self._pages, self._failed, self.unread,
                          self._clock() - self._started, self._first)

    def fail(self, error: samples.TelemetryUnavailable) -> None:
        """Take note of something that went wrong."""
        with self._lock:
            self._first = self._first or error

    def ask(self, resource_type: str, names: Mapping[str, str], paged: rest.Pages,
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
            if isinstance(came, samples.Readings):
                self.parts.append(came)
                answered.append(page)
                continue
            (refused if came else not_asked).append(page)
            self._failed += 1
            self.unread += len(page)
        paged.learn(answered, refused, not_asked)

    def _page(self, resource_type: str, names: Mapping[str, str], page: list[str],
              meters: Sequence[str]) -> samples.Readings | bool:
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
               meters: Sequence[str], left: float) -> samples.Readings:
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
    """A :class:`tracon_watcher.telemetry.samples.Reader` of Gnocchi."""

    def __init__(self, service: rest.Service, settings: Settings = Settings(),
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        #: Seconds by which a sample may have been taken after the time that it has.
        self.resolution = settings.granularity
        #: Ceilometer gives a sample the time of the compute host.
        self.ahead = 3600.0
        #: What came of the last round.
        self.last: Collection | None = None
        self._service = service
        self._clock = clock
        #: What is listed, by scope.
        self.lists = {scope: ResourceList(
            service, name, settings.listing_page, settings.relist_seconds)
            for scope, name in settings.resource_types.items()}
        self._pages = {scope: rest.Pages(settings.page) for scope in self.lists}

    def read(self, since: float, until: float, meters: Sequence[str]) -> samples.Readings:
        """Return the samples of these meters; what could not be read is not in them.

        It is counted in :attr:`last`, and logged in one line.

        :raises tracon_watcher.telemetry.samples.TelemetryUnavailable: when nothing could be read
        """
        asked = self.settings
        round_ = CollectionRound(
            self._service, asked.requests_at_once, asked.seconds,
            (asked.granularity, asked.aggregation), since, until, self._clock)
        for scope in dict.fromkeys(_scope(meter) for meter in meters):
            listed = self.lists[scope]
            try:
                if listed.refresh(self._clock()):
                    self._pages[scope].forgive()
            except samples.TelemetryUnavailable as error:
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
