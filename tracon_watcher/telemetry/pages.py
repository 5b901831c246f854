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

"""Questions in pages of bounded size, and those who spoil a page found by ever smaller ones."""

from __future__ import annotations

from typing import Iterable, Sequence

_SMALLER = 4
# One that was refused alone so often is not asked for any more.
_CHANCES = 3
# When more of the pages than this fail, it is the service that is ill, not a resource.
_MOST_SUSPECT = 0.25


class Pages:
    """How resources are split into pages.

    For one resource that it cannot do, such as one with a metric under another archive policy, a
    service refuses the whole page, or never ends. In the next round that page is asked for in
    smaller ones, until the resource is found; at last it is left out until :meth:`forgive`.

    Where a round ends before all pages were asked for, the next one begins with those.

    :param size: of a page, in resources
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._suspects: dict[str, int] = {}
        self._refused_alone: dict[str, int] = {}
        self._waiting: dict[str, int] = {}

    @property
    def left_out(self) -> int:
        """How many resources are not asked for."""
        return sum(not size for size in self._suspects.values())

    def split(self, resources: Iterable[str]) -> list[list[str]]:
        """Return the pages of a round."""
        by_size: dict[int, list[str]] = {}
        last = len(self._waiting)
        for resource in sorted(resources, key=lambda one: self._waiting.get(one, last)):
            size = self._suspects.get(resource, self.size)
            if size:
                by_size.setdefault(size, []).append(resource)
        return [members[start:start + size] for size, members in by_size.items()
                for start in range(0, len(members), size)]

    def learn(self, answered: Sequence[list[str]], refused: Sequence[list[str]],
              not_asked: Sequence[list[str]] = ()) -> None:
        """Take note of a round's pages: those answered, those refused, and those left."""
        self._waiting = {}
        for page in not_asked:
            for resource in page:
                self._waiting[resource] = len(self._waiting)
        for page in answered:
            for resource in page:
                self._suspects.pop(resource, None)
                self._refused_alone.pop(resource, None)
        if len(refused) > max(1.0, _MOST_SUSPECT * (len(answered) + len(refused))):
            return
        for page in refused:
            size = max(1, len(page) // _SMALLER)
            if len(page) == 1:
                times = self._refused_alone.get(page[0], 0) + 1
                self._refused_alone[page[0]] = times
                size = 0 if times == _CHANCES else 1
            self._suspects.update(dict.fromkeys(page, size))

    def forgive(self) -> None:
        """Ask for all again."""
        self._suspects.clear()
        self._refused_alone.clear()
