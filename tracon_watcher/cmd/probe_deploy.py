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

"""``tracon probe deploy`` and ``tracon probe remove``: sensors on the hosts of a cloud."""

from __future__ import annotations

import argparse
import ipaddress
import pathlib
from typing import Any, Iterable

from cliff import lister

from tracon_watcher import errors
from tracon_watcher import numerals

_COLUMNS = ('Host', 'Server', 'Address', 'State', 'Why')
_SENSORS = pathlib.Path('/etc/tracon/sensors.json')
_SECRET = pathlib.Path('/etc/tracon/probe.secret')


def connect(name: str | None) -> Any:
    """Return a connection to a cloud of clouds.yaml, or to that of OS_* without a name."""
    from keystoneauth1 import exceptions as keystone_errors
    import openstack
    from openstack import exceptions as sdk_errors

    try:
        connection = openstack.connect(cloud=name)
        connection.authorize()
    except (sdk_errors.SDKException, keystone_errors.ClientException) as error:
        raise errors.InvalidOption(
            '--os-cloud', name, f'{error}: name a cloud of clouds.yaml, or set OS_* as for the '
                                f'openstack command') from None
    return connection


class _Command(lister.Lister):
    """Base of the commands; exit status 1 if something is not as it should be."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--os-cloud', metavar='NAME',
                            help='cloud in clouds.yaml, of an administrator in the service '
                                 'project (default: OS_CLOUD, or the variables OS_*)')
        parser.add_argument('--output', type=pathlib.Path, default=_SENSORS, metavar='FILE',
                            help='list of sensors for tracon-probe (default: %(default)s)')
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Fail where a host lacks what it should have."""
        self._status = 0
        super().run(parsed_args)
        return self._status

    def _rows(self, rows: Iterable[Any]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        found = []
        for row in rows:
            found.append((row.host, row.server, row.address, row.state, row.why))
            if row.missing:
                self._status = 1
                self.app.LOG.error('%s: %s: %s', row.host or row.server, row.state, row.why)
        return _COLUMNS, found


class Deploy(_Command):
    """Give each compute host a sensor, and write the list of them.

    A sensor that has failed or was moved is replaced, and one whose host is in maintenance is
    removed; all others stay as they are. Exit status 1 if a host that is enabled and up has no
    sensor.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--network', required=True, metavar='NAME',
                            help='network of the sensors, which has an IPv4 subnet')
        parser.add_argument('--generator', required=True, action='append', metavar='CIDR',
                            help='network of tracon-probe, such as 192.0.2.7/32; may be repeated. '
                                 'No other address can connect to sensors')
        parser.add_argument('--secret-file', type=pathlib.Path, default=_SECRET, metavar='FILE',
                            help='file with the secret shared with the sensors; it is created if '
                                 'missing (default: %(default)s)')
        parser.add_argument('--aggregate', metavar='NAME',
                            help='aggregate whose hosts get sensors (default: all hosts)')
        parser.add_argument('--host', action='append', default=[], metavar='NAME',
                            help='host that gets a sensor; may be repeated (default: all)')
        parser.add_argument('--host-type', metavar='NAME',
                            help='type of hosts whose aggregates have no tracon:host_type')
        parser.add_argument('--headroom-mb', type=numerals.whole(0), default=1024, metavar='N',
                            help='memory to keep free on each host, by Placement\'s count; hosts '
                                 'with less are left out (default: %(default)s)')
        parser.add_argument('--cache', type=pathlib.Path, metavar='DIR',
                            help='folder for building and keeping the image')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...],
                                                                    list[tuple[str, ...]]]:
        from tracon_watcher.probe import controller
        from tracon_watcher.probe import deployment
        from tracon_watcher.probe import guest_image
        from tracon_watcher.probe import sensor_image
        from tracon_watcher import progress

        def build() -> deployment.Image:
            cache = parsed_args.cache or guest_image.default_cache()
            built = sensor_image.build(cache.absolute())
            return deployment.Image(
                built.kernel, built.initramfs, built.disk,
                f'{guest_image.COMMAND_LINE} {sensor_image.OPTIONS}', sensor_image.MEMORY_MIB)

        generators = tuple(map(_network, parsed_args.generator))
        secret = deployment.make_secret(parsed_args.secret_file)
        made = deployment.Deployment(
            connect(parsed_args.os_cloud),
            deployment.Wishes(parsed_args.network, generators, secret, parsed_args.headroom_mb,
                              tuple(parsed_args.host), parsed_args.aggregate,
                              parsed_args.host_type), build)
        bar = progress.Progress(max(len(made.hosts), 1))
        rows = made.deploy(bar.report)
        controller.save(made.sensors(parsed_args.host_type), parsed_args.output)
        return self._rows(rows)


class Remove(_Command):
    """Remove all sensors of the project with their ports; the list of sensors becomes empty."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--all', action='store_true',
                            help='remove the flavor, the images and the security group, too')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...],
                                                                    list[tuple[str, ...]]]:
        from tracon_watcher.probe import controller
        from tracon_watcher.probe import deployment
        from tracon_watcher import progress

        project = deployment.Project(connect(parsed_args.os_cloud))
        there = project.servers()
        bar = progress.Progress(max(len(there), 1))
        # Nothing is to read what is about to go.
        controller.save((), parsed_args.output)
        return self._rows(project.remove(there, parsed_args.all, bar.report))


def _network(text: str) -> str:
    try:
        return str(ipaddress.IPv4Network(text))
    except ValueError as error:
        raise errors.InvalidOption('--generator', text, f'{error}; give an IPv4 network as '
                                                        f'192.0.2.0/24') from None
