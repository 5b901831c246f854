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

from tracon_watcher import errors


def add_cloud_size(parser: argparse.ArgumentParser, hosts: str = 'hosts of the cloud') -> None:
    """Add the size of a synthetic cloud."""
    parser.add_argument('--hosts', type=int, default=10000, metavar='N',
                        help=f'{hosts} (default: %(default)s)')
    parser.add_argument('--vms-per-host', type=int, default=20, metavar='N',
                        help='VMs on each host (default: %(default)s)')


def require_at_least(arguments: argparse.Namespace, **least: int) -> None:
    """Refuse numbers that are too small.

    :param least: by the name of the argument
    :raises tracon_watcher.errors.InvalidOption: naming the first of them
    """
    for name, low in least.items():
        value = getattr(arguments, name)
        if value < low:
            raise errors.InvalidOption(f'--{name.replace("_", "-")}', value, f'at least {low}')
