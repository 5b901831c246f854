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

"""Tables in CSV: the one reader of those that people, spreadsheets and this product write.

A table may begin with lines ``# key: value``. Then come the names of the columns and a row each
line, in UTF-8, with commas. Every fault names file, line, column, value and remedy.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import os
import re
from typing import Iterable, Iterator, Mapping, NoReturn, Sequence

from tracon_watcher import errors
from tracon_watcher import files
from tracon_watcher import numerals

# Of all control characters a text in a table may hold tabs and the ends of lines.
_CONTROL = re.compile('[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]')
_SEPARATORS = {';': 'semicolons', '\t': 'tabs'}


class Row:
    """One row, whose fields are checked as they are read.

    :param source: name of the table, for the errors
    :param line: number of its line in the file
    :param fields: by the names of the columns
    """

    __slots__ = ('source', 'line', 'fields')

    def __init__(self, source: str, line: int, fields: dict[str, str]) -> None:
        self.source = source
        self.line = line
        self.fields = fields

    def refuse(self, name: str, remedy: str) -> NoReturn:
        """Raise the error that names the field of this column."""
        raise errors.InvalidDocument(self.source, f'line {self.line}, column {name}',
                                     self.fields.get(name, ''), remedy)

    def text(self, name: str) -> str:
        """Return a field without blanks around it; empty where there is no such column."""
        return self.fields.get(name, '').strip()

    def number(self, name: str, low: float = 0.0, high: float = math.inf) -> float:
        """Return a finite number within a range, inclusive."""
        try:
            return numerals.parse(self.text(name), low, high)
        except numerals.InvalidNumber as error:
            self.refuse(name, error.remedy)

    def whole(self, name: str, low: float = 0.0, high: float = math.inf) -> int:
        """Return a whole number within a range, inclusive."""
        try:
            return numerals.parse_whole(self.text(name), low, high)
        except numerals.InvalidNumber as error:
            self.refuse(name, error.remedy)

    def optional(self, name: str, low: float = 0.0, high: float = math.inf) -> float:
        """Return such a number, NaN for an empty field or no such column."""
        return self.number(name, low, high) if self.text(name) else math.nan


@dataclasses.dataclass(frozen=True)
class Table:
    """A table as it lies in a file.

    :param source: name of the file, for the errors
    :param header: what its first lines say, by key
    :param line: number of the line with the names of the columns
    :param columns: these names
    :param rows: without blank ones
    """

    source: str
    header: Mapping[str, str]
    line: int
    columns: tuple[str, ...]
    rows: Sequence[Row]

    def fact(self, name: str, low: float = 0.0, high: float = math.inf) -> float:
        """Return a number that the header states.

        :raises tracon_watcher.errors.InvalidDocument: where there is none
        """
        try:
            return numerals.parse(self.header.get(name, ''), low, high)
        except numerals.InvalidNumber as error:
            raise errors.InvalidDocument(self.source, f'header {name}', self.header.get(name),
                                         error.remedy) from None


def read(path: str | os.PathLike[str], remedy: str, needed: Sequence[str] = (),
         known: Sequence[str] | None = None, ended: str = '') -> Table:
    """Read a file, CSV as it is or compressed (``.gz``).

    :param remedy: what to do where it cannot be read
    :param needed: columns that must be there
    :param known: all columns that are allowed; None: any
    :param ended: what to do where the last line does not end, which is allowed by default
    :raises tracon_watcher.errors.InvalidDocument: naming file, line, column, value and remedy
    """
    return parse(files.text(path, remedy), os.fspath(path), needed, known, ended)


def parse(text: str, source: str, needed: Sequence[str] = (),
          known: Sequence[str] | None = None, ended: str = '', least: int = 1) -> Table:
    """Read the text of a table, as :func:`read` does.

    :param least: rows that it has at least
    """
    if ended and text and not text.endswith('\n'):
        raise errors.InvalidDocument(
            source, f'line {text.count(chr(10)) + 1}', text.rsplit('\n', 1)[-1],
            f'the file ends within a line: truncated? {ended}')
    header = {}
    lines = io.StringIO(text, newline=None).readlines()
    skipped = 0
    while skipped < len(lines) and lines[skipped].startswith('#'):
        key, colon, value = lines[skipped][1:].partition(':')
        if colon:
            header[key.strip()] = value.strip()
        skipped += 1
    found = rows(lines[skipped:], source, skipped)
    line, names = next(found, (skipped + 1, []))
    columns = tuple(name.strip() for name in names)
    _check(columns, source, line, needed, known)
    checked = []
    for number, fields in found:
        if len(fields) != len(columns):
            raise errors.InvalidDocument(
                source, f'line {number}', ','.join(fields), f'expected {len(columns)} fields, '
                f'found {len(fields)}: truncated or edited?')
        checked.append(Row(source, number, dict(zip(columns, fields))))
    if len(checked) < least:
        raise errors.InvalidDocument(source, 'the rows', 'none', 'the table has no rows')
    return Table(source, header, line, columns, checked)


def rows(lines: Iterable[str], source: str,
         before: int = 0) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of its first line and the fields of each row that is not blank.

    :param before: lines of the file before these
    :raises tracon_watcher.errors.InvalidDocument: for what is no CSV, naming the line
    """
    reader = csv.reader(lines, strict=True)
    while True:
        line = before + reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise errors.InvalidDocument(source, f'line {line}', str(error), 'no CSV; correct the '
                                         'line, or remove it') from None
        for field in fields:
            if not field.isprintable() and _CONTROL.search(field):
                raise errors.InvalidDocument(source, f'line {line}', field,
                                             'holds a control character; remove it')
        if fields:
            yield line, fields


def _check(columns: Sequence[str], source: str, line: int, needed: Sequence[str],
           known: Sequence[str] | None) -> None:
    where = f'line {line}, the columns'
    missing = [name for name in needed if name not in columns]
    for separator, name in _SEPARATORS.items():
        if missing and any(separator in column for column in columns):
            raise errors.InvalidDocument(
                source, where, ','.join(columns), f'separated by {name}; separate them by commas, '
                'and write decimals with a point')
    if missing:
        raise errors.InvalidDocument(source, where, ','.join(columns),
                                     f'column {", ".join(missing)} is missing; add it')
    for name in columns:
        if columns.count(name) > 1:
            raise errors.InvalidDocument(source, where, name, 'stands there twice')
        if known is not None and name not in known:
            raise errors.InvalidDocument(source, where, name, 'unknown column; known are '
                                         + ', '.join(known))
