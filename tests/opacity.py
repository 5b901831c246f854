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

"""The table of what is read from a cloud, and recorders that tell what is read."""

from __future__ import annotations

import csv
import dataclasses
import pathlib
import re
from typing import Any, Iterator

ROOT = pathlib.Path(__file__).parent.parent
TABLE = ROOT / 'doc' / 'source' / 'admin' / 'opacity-inputs.csv'


@dataclasses.dataclass(frozen=True)
class Row:
    """One row of the table."""

    source: str
    what: str
    fields: frozenset[str]
    rooms: frozenset[str]


def table() -> list[Row]:
    """Read the table."""
    with TABLE.open(encoding='utf-8', newline='') as lines:
        return [Row(row['From'], row['What'], frozenset(row['Fields'].split()),
                    frozenset(row['Read by'].split())) for row in csv.DictReader(lines)]


def row(source: str, what: str) -> Row:
    """Return one row."""
    found, = (one for one in table() if one.source == source and one.what == what)
    return found


class Log:
    """What was read: paths of fields, with a dot between a key and the next."""

    def __init__(self) -> None:
        self.read: set[str] = set()

    def beyond(self, allowed: frozenset[str]) -> set[str]:
        """Return what was read and is not allowed.

        Reading ``a`` and then ``a.b`` is reading ``a.b``; where ``a.*`` is allowed, all in it is.
        """
        leaves = {one for one in self.read if not any(
            other.startswith(f'{one}.') for other in self.read | allowed)}
        return {one for one in leaves if one not in allowed
                and not any(f'{part}.*' in allowed for part in _prefixes(one))}


def _prefixes(path: str) -> Iterator[str]:
    parts = path.split('.')
    for count in range(1, len(parts)):
        yield '.'.join(parts[:count])


def recorded(value: Any, log: Log, path: str = '') -> Any:
    """Return a value of JSON that takes down which of its fields are read.

    The entries of a list have the path of the list itself.
    """
    if isinstance(value, dict):
        return _Recorded(value, log, path)
    if isinstance(value, list):
        return [recorded(one, log, path) for one in value]
    return value


class _Recorded(dict):
    """A dictionary that takes down which keys are asked for; ``*`` stands for all of them."""

    def __init__(self, value: dict[str, Any], log: Log, path: str) -> None:
        super().__init__(value)
        self._log = log
        self._path = path

    def _note(self, key: object) -> str:
        # A number in a name, such as that of a virtual CPU, is one like any other.
        name = re.sub(r'\.\d+\.', '.N.', str(key))
        found = f'{self._path}.{name}' if self._path else name
        self._log.read.add(found)
        return found

    def __getitem__(self, key: Any) -> Any:
        return recorded(super().__getitem__(key), self._log, self._note(key))

    def get(self, key: Any, default: Any = None) -> Any:
        path = self._note(key)
        return recorded(super().get(key, default), self._log, path)

    def __contains__(self, key: object) -> bool:
        self._note(key)
        return super().__contains__(key)

    def __iter__(self) -> Iterator[Any]:
        self._note('*')
        return super().__iter__()

    def keys(self) -> Any:
        self._note('*')
        return super().keys()

    def values(self) -> Any:
        path = self._note('*')
        return [recorded(one, self._log, path) for one in super().values()]

    def items(self) -> Any:
        path = self._note('*')
        return [(key, recorded(one, self._log, path)) for key, one in super().items()]


class Attributes:
    """Stands for an object, and takes down which attributes are asked for.

    :param inner: attributes whose values are given as they are in here, such as recorders
    """

    def __init__(self, thing: Any, log: Log, **inner: Any) -> None:
        object.__setattr__(self, '_thing', thing)
        object.__setattr__(self, '_log', log)
        object.__setattr__(self, '_inner', inner)

    def __getattr__(self, name: str) -> Any:
        self._log.read.add(name)
        return self._inner[name] if name in self._inner else getattr(self._thing, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._thing, name, value)

    def __contains__(self, name: str) -> bool:
        # Nova's objects: whether a field is set.
        self._log.read.add(name)
        return name in self._inner or name in self._thing
