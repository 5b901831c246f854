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

"""Arguments that several commands have in common."""

from __future__ import annotations

import argparse
import pathlib
from typing import Any, Callable

from tracon_watcher import numerals


def add_cloud_size(parser: argparse.ArgumentParser, hosts: str = 'hosts of the cloud',
                   least_hosts: int = 1, least_vms: int = 0) -> None:
    """Add the size of a synthetic cloud."""
    parser.add_argument('--hosts', type=numerals.whole(least_hosts), default=10000, metavar='N',
                        help=f'{hosts} (default: %(default)s)')
    parser.add_argument('--vms-per-host', type=numerals.whole(least_vms), default=20, metavar='N',
                        help='VMs on each host (default: %(default)s)')


def listed(parse: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """Return the ``type`` of an argument that is a list, with commas.

    :param parse: makes an entry of a text
    """
    return lambda text: [parse(word.strip()) for word in text.split(',')]


def picture(*endings: str) -> Callable[[str], pathlib.Path]:
    """Return the ``type`` of an argument that is a file of one of these endings, such as .png."""
    def parse(text: str) -> pathlib.Path:
        if pathlib.Path(text).suffix not in endings:
            raise argparse.ArgumentTypeError(
                f'{text!r}: expected a file name that ends in {" or ".join(endings)}')
        return pathlib.Path(text)
    return parse
