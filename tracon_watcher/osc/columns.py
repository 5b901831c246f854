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

"""Columns and options that the lists have in common."""

from __future__ import annotations

import argparse
import math
from typing import Any

from cliff import columns
from osc_lib import exceptions

from tracon_watcher import numerals

#: What is not known, or does not exist, in a table; null for programs.
NONE = '-'


class Value(columns.FormattableColumn):
    """A value that may be unknown.

    :param value: for programs
    :param text: for people
    :param order: to sort by; None for the value itself
    """

    def __init__(self, value: Any, text: str, order: float | None = None) -> None:
        super().__init__(value)
        self._text = text
        self._order = order

    def human_readable(self) -> str:
        """Return what people read."""
        return self._text

    def __lt__(self, other: object) -> bool:
        return isinstance(other, Value) and self._key() < other._key()

    def _key(self) -> tuple[bool, float, str]:
        if self._order is not None:
            return True, self._order, ''
        if isinstance(self._value, (int, float)):
            return True, float(self._value), ''
        return self._value is not None, -math.inf, self._text


def number(value: float | None, decimals: int = 2) -> Value:
    """Return a number."""
    return Value(value, NONE if value is None else f'{value:.{decimals}f}')


def text(value: Any) -> Value:
    """Return a text, or whatever is shown as it is."""
    return Value(value, NONE if value in (None, '') else str(value))


def name(vm: dict[str, Any] | None) -> str:
    """Return a VM's name, or its uuid where it has none."""
    return NONE if vm is None else str(vm['name'] or vm['uuid'])


def vm(one: dict[str, Any] | None) -> Value:
    """Return a VM."""
    return Value(one, name(one))


def minutes(seconds: float | None) -> Value:
    """Return a duration, which people read in minutes."""
    return Value(seconds, NONE if seconds is None else f'{seconds / 60:.0f} min')


def share(value: float | None) -> str:
    """Return a share in per cent, for people."""
    return NONE if value is None else f'{100 * value:.0f} %'


def percentage(value: float | None) -> Value:
    """Return a share, which people read in per cent."""
    return Value(value, share(value))


def observed(slowdown: dict[str, Any]) -> Value:
    """Return a slowdown that counters show, with the error that these have."""
    value, error = slowdown['observed'], slowdown['observed_error']
    if value is None:
        return Value(None, NONE)
    return Value(value, f'{value:.2f}' + ('' if error is None else f' ± {value * error:.2f}'))


def culprit(found: dict[str, Any]) -> Value:
    """Return who causes most of a VM's slowdown, and how much of it."""
    one = found['culprit']
    if one is None:
        return Value(None, NONE)
    shown = {field: one[field] for field in ('uuid', 'name', 'share')}
    # Where the slowdown is next to nothing, no VM is to blame.
    if max(found['slowdown']['predicted'] or 1, found['slowdown']['now'] or 1) < 1.01:
        return Value(shown, NONE, 0.0)
    return Value(shown, f'{name(one)} ({share(one["share"])})', one['share'])


def limit(found: dict[str, Any]) -> Value:
    """Return a VM's limit on its slowdown, and whether it is breached; background work has none.
    """
    value = found['limits']['max_slowdown']
    if found.get('background'):
        return Value(None, 'background')
    if value is None:
        return Value(None, NONE)
    breached = found['in_breach'] and (found['slowdown']['lower'] or 0) > value
    return Value(value, f'{value:.2f}' + (' (breached)' if breached else ''))


def lines(values: list[dict[str, Any]], line: Any) -> Value:
    """Return a list, one line for each entry."""
    return Value(values, '\n'.join(line(one) for one in values) or NONE, float(len(values)))


def add(parser: argparse.ArgumentParser, keys: tuple[str, ...], default: str,
        marker: str) -> None:
    """Add ``--sort``, ``--limit`` and ``--marker``.

    :param keys: that the engine can sort by
    :param default: as ``--sort`` takes it
    :param marker: what a marker is
    """
    parser.add_argument(
        '--sort', metavar='<key>[:<direction>][,…]', default=default,
        help=f'Sort by these keys, each ascending (:asc) or descending (:desc), in the engine: '
             f'{", ".join(keys)} (default: {default}). --sort-column sorts the received entries')
    parser.add_argument(
        '--limit', metavar='<number>', type=numerals.whole(1),
        help='Largest number of entries to show (default: all, page after page)')
    parser.add_argument(
        '--marker', metavar=f'<{marker}>',
        help=f'Entry after which the list begins: the last {marker} of an earlier list')


def sorting(given: str, keys: tuple[str, ...]) -> dict[str, Any]:
    """Return the parameters of the engine's API for ``--sort``.

    :raises osc_lib.exceptions.CommandError: naming the key or the direction
    """
    found: dict[str, Any] = {'sort_key': [], 'sort_dir': []}
    for part in given.split(','):
        key, _colon, direction = part.strip().partition(':')
        if key not in keys:
            raise exceptions.CommandError(
                f'--sort {given}: {key!r} is no key; expected {", ".join(keys)}')
        if direction not in ('', 'asc', 'desc'):
            raise exceptions.CommandError(
                f'--sort {given}: {direction!r} is no direction; expected asc or desc')
        found['sort_key'].append(key)
        found['sort_dir'].append(direction or 'asc')
    return found
