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

"""Numbers as texts state them: one grammar for options, arguments, tables and metadata.

It is the grammar of JSON (RFC 8259, section 6), which documents and the parameters of audits have
in any case: ``1.5`` and ``2e3``. Python's own ``float`` reads more: ``1_5``, the digits of other
scripts, ``nan`` and ``inf``. NaN passes every comparison with a range.
"""

from __future__ import annotations

import argparse
import functools
import math
import re
from typing import Any
from typing import Callable
from typing import Iterable

# [0-9] and not \d, which matches the digits of every script.
_WHOLE = re.compile(r'-?(?:0|[1-9][0-9]*)')
_NUMBER = re.compile(_WHOLE.pattern + r'(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?')
#: Digits of the longest whole number that is read; beyond 4300 Python itself refuses.
_DIGITS = 18


class InvalidNumber(ValueError, argparse.ArgumentTypeError):
    """A text is no number, or one that is out of range.

    argparse shows the text of such an error, oslo.config that of a ``ValueError``.

    :param text: what stands there
    :param remedy: what is expected
    """

    def __init__(self, text: str, remedy: str) -> None:
        super().__init__(f'{text!r}: {remedy}')
        self.remedy = remedy


def parse(text: str, low: float = -math.inf, high: float = math.inf) -> float:
    """Return the finite number that a text states.

    :param low: least of the range, inclusive, and ``high`` likewise
    :raises InvalidNumber: for any other text
    """
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not low <= value <= high or math.isinf(value):
        raise InvalidNumber(text, f'expected a finite number{within(low, high)}')
    return value


def parse_whole(text: str, low: float = -math.inf, high: float = math.inf) -> int:
    """Return the whole number that a text states, as :func:`parse` does."""
    if not (_WHOLE.fullmatch(text) and len(text) <= _DIGITS and low <= int(text) <= high):
        raise InvalidNumber(text, f'expected a whole number{within(low, high)}')
    return int(text)


def number(low: float = -math.inf, high: float = math.inf) -> Callable[[str], float]:
    """Return the ``type`` of an argument of argparse that is a number within a range."""
    return functools.partial(parse, low=low, high=high)


def whole(low: float = -math.inf, high: float = math.inf) -> Callable[[str], int]:
    """Return the ``type`` of an argument of argparse that is a whole number within a range."""
    return functools.partial(parse_whole, low=low, high=high)


def within(low: float, high: float) -> str:
    """Say what a range is, for errors: `` from 1 to 1000``, or nothing where it has no ends."""
    if low > -math.inf and high < math.inf:
        return f' from {low:.12g} to {high:.12g}'
    if low > -math.inf:
        return f' of at least {low:.12g}'
    return f' of at most {high:.12g}' if high < math.inf else ''


def shown(value: Any, parsed_args: argparse.Namespace) -> Any:
    """Return a number rounded where people read it; what is undefined is empty, in JSON null."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return None if parsed_args.formatter in ('json', 'yaml') else ''
        if parsed_args.formatter == 'table':
            return f'{value:.4g}'
    return value


def rows(table: Iterable[Iterable[Any]], parsed_args: argparse.Namespace) -> list[tuple[Any, ...]]:
    """Return the rows of a table, with each value as :func:`shown`."""
    return [tuple(shown(value, parsed_args) for value in row) for row in table]
