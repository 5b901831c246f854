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

"""Reads, writes and checks stored JSON documents, which are sealed by a checksum.

Every fault of one that is read is named: file, field, value and remedy.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from typing import Any, Mapping, NoReturn, Sequence

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher import errors
from tracon_watcher import files
from tracon_watcher import numerals

# Whole numbers in JSON may be larger than any float.
_LARGEST = sys.float_info.max


class Fields:
    """A JSON object under validation, which knows where it stands in its document.

    Every accessor raises :class:`~tracon_watcher.errors.InvalidDocument` naming the field when
    the value is missing, of another type, not finite or out of range.

    :param source: name of the document, for the errors
    :param content: the object
    :param path: where the object stands in the document, empty for the document itself
    """

    def __init__(self, source: str, content: Any, path: str = '') -> None:
        self.source = source
        self.path = path
        if not isinstance(content, dict):
            raise errors.InvalidDocument(source, path or 'the document', content,
                                         'expected a JSON object')
        self._content: dict[str, Any] = content

    def refuse(self, name: str, value: object, remedy: str) -> NoReturn:
        """Raise the error that names field ``name`` of this object."""
        raise errors.InvalidDocument(self.source, self._where(name), value, remedy)

    def has(self, name: str) -> bool:
        """Say whether the field is there and not null."""
        return self._content.get(name) is not None

    def raw(self, name: str) -> Any:
        """Return the field as it stands."""
        if name not in self._content:
            self.refuse(name, None, 'the field is missing; write the document again')
        return self._content[name]

    def only(self, known: Sequence[str]) -> None:
        """Refuse fields that are not read, such as misspelt ones."""
        for name in self._content:
            if name not in known:
                self.refuse(name, self._content[name],
                            f'unknown field; known are {", ".join(known)}')

    def string(self, name: str, choices: Sequence[str] = ()) -> str:
        """Return a string, which is one of ``choices`` where any are given."""
        value = self.raw(name)
        if not isinstance(value, str):
            self.refuse(name, value, 'expected a string')
        if choices and value not in choices:
            self.refuse(name, value, f'expected one of {", ".join(choices)}')
        return value

    def name(self, name: str) -> str:
        """Return a string that something is called by."""
        value = self.string(name)
        if not value or not value.isprintable():
            self.refuse(name, value, 'expected a name without control characters')
        return value

    def number(self, name: str, minimum: float = -math.inf, maximum: float = math.inf) -> float:
        """Return a finite number within the bounds, bounds included."""
        value = self.raw(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) \
                or not abs(value) <= _LARGEST or not minimum <= value <= maximum:
            self.refuse(name, value,
                        f'expected a finite number{numerals.within(minimum, maximum)}')
        return float(value)

    def array(self, name: str, shape: tuple[int, ...], minimum: float = -math.inf,
              maximum: float = math.inf) -> FloatArray:
        """Return finite numbers as float64 of ``shape``; -1 in a shape fits any length."""
        value = self.raw(name)
        self._check_nested(name, value, shape, minimum, maximum)
        return np.array(value, dtype=np.float64).reshape(
            tuple(len(value) if size < 0 else size for size in shape))

    def strings(self, name: str) -> list[str]:
        """Return a list of strings."""
        value = self.raw(name)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self.refuse(name, value, 'expected a list of strings')
        return value

    def section(self, name: str) -> Fields:
        """Return an object inside this one."""
        return Fields(self.source, self.raw(name), self._where(name))

    def sections(self, name: str) -> list[Fields]:
        """Return a list of objects inside this one."""
        value = self.raw(name)
        if not isinstance(value, list):
            self.refuse(name, value, 'expected a list of objects')
        return [Fields(self.source, item, f'{self._where(name)}[{index}]')
                for index, item in enumerate(value)]

    def check_seal(self, remedy: str) -> None:
        """Refuse a document whose ``checksum`` is not that of its content.

        It comes after the fields' own checks, so that an edited value is named where it can be.
        """
        found = self.string('checksum')
        if found != checksum(self._content):
            self.refuse('checksum', found,
                        f'the content was changed after it was written; {remedy}')

    def _where(self, name: str) -> str:
        return f'{self.path}.{name}' if self.path else name

    def _check_nested(self, name: str, value: Any, shape: tuple[int, ...], minimum: float,
                      maximum: float) -> None:
        if not shape:
            Fields(self.source, {name: value}, self.path).number(name, minimum, maximum)
            return
        if not isinstance(value, list) or (shape[0] >= 0 and len(value) != shape[0]):
            expected = f'{shape[0]} entries' if shape[0] >= 0 else 'entries'
            self.refuse(name, value, f'expected a list of {expected}')
        for index, item in enumerate(value):
            self._check_nested(f'{name}[{index}]', item, shape[1:], minimum, maximum)


def parse(text: str, source: str) -> Fields:
    """Read a JSON text; NaN and infinities, which JSON does not have, are refused.

    :raises tracon_watcher.errors.InvalidDocument: when the text is truncated or no JSON object
    """
    def constant(name: str) -> NoReturn:
        raise errors.InvalidDocument(source, 'a number', name, 'expected a finite number')

    try:
        content = json.loads(text, parse_constant=constant)
    except (ValueError, RecursionError) as error:
        raise errors.InvalidDocument(
            source, 'the text', text[-40:], f'no valid JSON ({error}): truncated or edited? '
            'write the document again') from None
    return Fields(source, content)


def read(path: str | os.PathLike[str], command: str) -> Fields:
    """Read a JSON file.

    :param command: which writes such files
    :raises tracon_watcher.errors.InvalidDocument: naming the file
    """
    return parse(files.text(path, f'write it with `{command}`'), os.fspath(path))


def write(document: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
    """Write a JSON file, atomically: a reader sees the old file or the new one.

    :raises tracon_watcher.errors.InvalidDocument: where it cannot be written
    """
    with files.replaced(path) as stream:
        stream.write(json.dumps(document, indent=1, allow_nan=False) + '\n')


def sealed(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a document with its ``checksum``."""
    return {**document, 'checksum': checksum(document)}


def checksum(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a document without its ``checksum`` field, in canonical JSON."""
    body = {name: value for name, value in document.items() if name != 'checksum'}
    canonical = json.dumps(body, sort_keys=True, separators=(',', ':'), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()
