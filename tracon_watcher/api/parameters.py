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

"""The query of a request: every parameter is known, once, and of an allowed value."""

from __future__ import annotations

import re
from typing import Collection, Mapping

from tracon_watcher.api import faults
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
