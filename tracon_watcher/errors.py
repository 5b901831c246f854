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

"""The root of every error that this product raises on purpose, and the few that rooms share."""

from __future__ import annotations

import functools
from typing import Any, Callable, Self


class TraconError(Exception):
    """Root of all errors raised on purpose; its text is fit to be shown to an operator."""

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """Remember what it is made of."""
        error = super().__new__(cls)
        error._given = functools.partial(cls, *given, **named)
        return error

    def __reduce__(self) -> tuple[Any, ...]:
        """Be made again from the same when it comes out of another process."""
        return self._given, ()

    _given: Callable[[], Self]


class InvalidDocument(TraconError):
    """A stored document (model, snapshot, measurements) cannot be used.

    :param source: file name, or whatever else tells the operator which document it is
    :param field: path of the offending field, such as ``hull.target_maximum[2]``; for a table
        the column and the line
    :param value: what stands there (shortened in the text)
    :param remedy: what is expected, or what to do
    """

    def __init__(self, source: str, field: str, value: object, remedy: str) -> None:
        try:
            shown = repr(value)
        except RecursionError:
            shown = 'nested deeper than can be shown'
        if len(shown) > 80:
            shown = shown[:77] + '...'
        super().__init__(f'{source}: {field} is {shown}: {remedy}')
        self.source = source
        self.field = field
        self.value = value
        self.remedy = remedy


class InvalidOption(TraconError):
    """A parameter given by an operator is unknown or out of range.

    :param name: the option, extra spec or audit parameter
    :param value: what was given
    :param remedy: what is allowed
    """

    def __init__(self, name: str, value: object, remedy: str) -> None:
        super().__init__(f'{name}={value!r}: {remedy}')
        self.name = name
        self.value = value
        self.remedy = remedy


class NotEnoughData(TraconError):
    """There are too few measurements for what was asked.

    :param what: what was to be computed
    :param found: how many there are
    :param needed: how many are needed at least
    """

    def __init__(self, what: str, found: int, needed: int) -> None:
        super().__init__(f'{what} needs at least {needed} points, and there are {found}: '
                         f'measure more, or name a larger file')
        self.what = what
        self.found = found
        self.needed = needed


class NotInstalled(TraconError):
    """What something is built with is not installed; says what, and which package has it."""
