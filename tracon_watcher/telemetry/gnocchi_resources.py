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

"""Which resources of a type Gnocchi has that did not end: listed once, then only what changed."""

from __future__ import annotations

import dataclasses
import datetime
import itertools
from typing import Any, Iterator, Mapping

from tracon_watcher.telemetry import rest

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
    """

    def __init__(self, service: rest.Service, resource_type: str, page: int = 500,
                 relist_seconds: float = 3600.0) -> None:
        self.resource_type = resource_type
        self.names: Mapping[str, str] = {}
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
            self._search({'=': {'ended_at': None}}), {}, self._last_revision)
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
        condition: dict[str, Any] = {'=': {'ended_at': None}}
        if self._last_revision:
            since = datetime.datetime.fromisoformat(self._last_revision) - _OVERLAP
            condition = {'>=': {'revision_start': since.isoformat()}}
        names, last = dict(self.names), self._last_revision
        for resource in itertools.chain.from_iterable(self._search(condition)):
            if resource['ended_at'] is None:
                names[resource['id']] = resource['original_resource_id']
            else:
                names.pop(resource['id'], None)
            last = max(last, resource['revision_start'])
        self.names, self._last_revision = names, last

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
            fit = isinstance(resource['id'], str) and isinstance(
                resource['original_resource_id'], str) and (
                    resource['ended_at'] is None or isinstance(resource['ended_at'], str))
        except (LookupError, TypeError, ValueError):
            fit = False
        if not fit:
            raise self._service.unusable(self._path, resource, _REMEDY)
