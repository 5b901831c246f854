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

"""What OpenStackClient asks of a plugin: options, and a client when a command needs one."""

from __future__ import annotations

import argparse
from typing import Any

from osc_lib import utils

from tracon_watcher.osc import client

DEFAULT_API_VERSION = '1'
API_VERSION_OPTION = 'os_interference_api_version'
API_NAME = 'interference'
API_VERSIONS = (DEFAULT_API_VERSION,)


def make_client(instance: Any) -> client.Client:
    """Return a client that uses the session of OpenStackClient.

    :param instance: its ClientManager
    """
    endpoint = instance.get_configuration().get('interference_endpoint')
    return client.Client(instance.session, endpoint or None, instance.interface,
                         instance.region_name)


def build_option_parser(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the global options."""
    parser.add_argument(
        '--os-interference-api-version', metavar='<interference-api-version>',
        default=utils.env('OS_INTERFERENCE_API_VERSION', default=DEFAULT_API_VERSION),
        help=f'Interference API version, default={DEFAULT_API_VERSION} '
             '(Env: OS_INTERFERENCE_API_VERSION)')
    parser.add_argument(
        '--interference-endpoint', metavar='<url>',
        default=utils.env('OS_INTERFERENCE_ENDPOINT'),
        help='URL of tracon-engine\'s API, instead of the one in Keystone\'s catalogue '
             '(Env: OS_INTERFERENCE_ENDPOINT)')
    return parser
