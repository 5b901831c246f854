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

"""Options that all lists have, and what they ask of the engine."""

from __future__ import annotations

import argparse
from typing import Any

from osc_lib import exceptions

from tracon_watcher import numerals


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
