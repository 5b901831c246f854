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

"""Query parameters of a request, and lists in pages."""

from __future__ import annotations

import re
from typing import Any, Callable, Collection, Mapping, Sequence
from urllib import parse

import numpy as np
import webob

from tracon_watcher.api import faults
from tracon_watcher.characteristics import IntArray
from tracon_watcher import numerals

_LONGEST = 255
_TRUE = ('true', 'yes', '1')
_FALSE = ('false', 'no', '0')
#: Names that may stand in a path: uuids, request ids and host names.
_NAME = re.compile(r'[^\x00-\x1f\x7f]{1,255}')


class Query:
    """The parameters of one request.

    :param given: a multi-dictionary, as WebOb gives it
    :param allowed: names that this resource knows
    :param several: those among them that may be repeated
    """

    def __init__(self, given: Mapping[str, str], allowed: Collection[str],
                 several: Collection[str] = ()) -> None:
        self._given = given
        for name in given:
            if name not in allowed:
                raise faults.InvalidParameter(name, given[name], 'parameters ' + ', '.join(
                    sorted(allowed)) if allowed else 'no parameters')
            values = self.all_of(name)
            if len(values) > 1 and name not in several:
                raise faults.InvalidParameter(name, values, 'one value')
            for value in values:
                if len(value) > _LONGEST:
                    raise faults.InvalidParameter(name, value, f'up to {_LONGEST} characters')

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def all_of(self, name: str) -> list[str]:
        """Return all values of a parameter, in their order."""
        return list(self._given.getall(name))   # type: ignore[attr-defined]

    def text(self, name: str) -> str | None:
        """Return the value of a parameter, None where it is not given."""
        return self._given.get(name)

    def choice(self, name: str, choices: Collection[str]) -> str | None:
        """Return the value of a parameter that must be one of these."""
        value = self._given.get(name)
        if value is not None and value not in choices:
            raise faults.InvalidParameter(name, value, ', '.join(choices))
        return value

    def boolean(self, name: str) -> bool | None:
        """Return whether a parameter is true."""
        value = self._given.get(name)
        if value is None:
            return None
        if value.lower() not in _TRUE + _FALSE:
            raise faults.InvalidParameter(name, value, 'true or false')
        return value.lower() in _TRUE

    def number(self, name: str, low: float, high: float) -> float | None:
        """Return a number within these bounds, bounds included."""
        value = self._given.get(name)
        if value is None:
            return None
        try:
            return numerals.parse(value, low, high)
        except numerals.InvalidNumber:
            raise faults.InvalidParameter(
                name, value, f'a number{numerals.within(low, high)}') from None

    def positive(self, name: str) -> int | None:
        """Return a whole number of at least 1."""
        value = self._given.get(name)
        if value is None:
            return None
        try:
            return numerals.parse_whole(value, 1)
        except numerals.InvalidNumber:
            raise faults.InvalidParameter(name, value, 'a whole number of at least 1') from None


def is_name(text: str) -> bool:
    """Say whether this can be the name of anything."""
    return _NAME.fullmatch(text) is not None


#: What every list knows.
PARAMETERS = ('limit', 'marker', 'sort_key', 'sort_dir')
SEVERAL = ('sort_key', 'sort_dir')
DIRECTIONS = ('asc', 'desc')

#: Of each sort key, what returns the values to sort by; NaN comes last either way.
Keys = Mapping[str, Callable[[], np.ndarray]]


def ordered(query: Query, keys: Keys, default: Sequence[tuple[str, str]],
            tie: np.ndarray, rows: IntArray) -> IntArray:
    """Return rows in the order that is asked for.

    :param default: key and direction where none is asked for
    :param tie: (n,) by which rows are sorted that are equal otherwise
    :param rows: (m,) of n
    """
    wanted = query.all_of('sort_key')
    directions = query.all_of('sort_dir')
    for name, values, choices in (('sort_key', wanted, keys), ('sort_dir', directions,
                                                               DIRECTIONS)):
        for value in values:
            if value not in choices:
                raise faults.InvalidParameter(name, value, ', '.join(choices))
    if len(directions) > max(len(wanted), len(default) if not wanted else 0):
        raise faults.InvalidParameter('sort_dir', directions, 'no more than there are sort keys')
    if wanted:
        pairs = [(key, directions[place] if place < len(directions) else DIRECTIONS[0])
                 for place, key in enumerate(wanted)]
    else:
        pairs = [(key, directions[place] if place < len(directions) else direction)
                 for place, (key, direction) in enumerate(default)]
    columns = [tie[rows]]
    for key, direction in reversed(pairs):
        values = np.asarray(keys[key]()[rows], dtype=np.float64)
        columns.append(-values if direction == 'desc' else values)
    return rows[np.lexsort(columns)]


def page(query: Query, rows: IntArray, row_of: Callable[[str], int | None],
         largest: int) -> tuple[IntArray, bool]:
    """Return one page of rows, and whether there are more after it.

    :param row_of: returns the row of what a marker names, None where there is no such thing
    :param largest: that a page may be
    """
    limit = min(query.positive('limit') or largest, largest)
    start = 0
    marker = query.text('marker')
    if marker is not None:
        row = row_of(marker)
        places = np.flatnonzero(rows == row) if row is not None else ()
        if not len(places):
            raise faults.InvalidParameter(
                'marker', marker, 'the last of the page before; it is not in the list any more, '
                'begin again without')
        start = int(places[0]) + 1
    return rows[start:start + limit], start + limit < len(rows)


def links(request: webob.Request, more: bool, last: str | None) -> list[dict[str, Any]]:
    """Return the link to the next page, none where there is none.

    :param last: by what the last of this page is called
    """
    if not more or last is None:
        return []
    query = [(name, value) for name, value in request.GET.items() if name != 'marker']
    text = parse.urlencode([*query, ('marker', last)])
    return [{'rel': 'next', 'href': f'{request.path_url}?{text}'}]
