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

"""``tracon probe``: sensors on the hosts of a cloud, and their readings."""

from __future__ import annotations

import argparse
import ipaddress
import math
import pathlib
from typing import Any, Iterable

from cliff import lister

from tracon_watcher import errors
from tracon_watcher import numerals


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the numbers of the settings: of each phase rate, seconds and amount."""
    from tracon_watcher.probe import phases

    parser.add_argument('--tuning', action='append', default=[], type=pathlib.Path,
                        metavar='FILE', help='setting of a phase, from "tracon probe tune"')
    for name, setting in phases.DEFAULT.items():
        group = parser.add_argument_group(f'{name} phase')
        group.add_argument(f'--{name}-rate', type=numerals.number(0, 10000), default=setting.rate,
                           metavar='N',
                           help='requests a second (default: %(default)g)')
        group.add_argument(f'--{name}-seconds', type=numerals.number(0, 10000),
                           default=setting.seconds, metavar='N',
                           help='duration of a phase (default: %(default)g)')
        group.add_argument(f'--{name}-amount', type=numerals.whole(1), default=setting.amount,
                           metavar='N',
                           help=f'{phases.PHASES[name].amount} in a request '
                                f'(default: %(default)s)')


def settings(parsed_args: argparse.Namespace) -> dict[str, Any]:
    """Return the settings that were given."""
    from tracon_watcher.probe import phases
    from tracon_watcher.probe import tuning

    return {**{name: phases.Setting(*(getattr(parsed_args, f'{name}_{part}')
                                      for part in ('rate', 'seconds', 'amount')))
               for name in phases.PHASES},
            **dict(map(tuning.load, parsed_args.tuning))}


def add_sensor(parser: argparse.ArgumentParser) -> None:
    """Add a sensor, and how it is read."""
    from tracon_watcher.probe import phases

    parser.add_argument('address', metavar='ADDRESS',
                        help='address of the sensor: a host, or host:port (default port: 8640)')
    parser.add_argument('--secret-file', required=True, type=pathlib.Path, metavar='FILE',
                        help='file with the secret shared with the sensor, 64 hexadecimal digits')
    parser.add_argument('--phase', action='append', choices=tuple(phases.PHASES),
                        help='phase to read (default: all, one after the other)')
    parser.add_argument('--deadline', type=numerals.number(1, 3600), default=10.0,
                        metavar='SECONDS',
                        help='longest time for one request (default: %(default)g)')
    add_settings(parser)


def read(parsed_args: argparse.Namespace, times: int = 1) -> dict[str, list[Any]]:
    """Read the chosen phases of the sensor so many times; a reading may be a NoReading."""
    import asyncio

    from tracon_watcher.probe import answers
    from tracon_watcher.probe import phases

    chosen = settings(parsed_args)
    wanted = parsed_args.phase or list(phases.PHASES)
    for name in wanted:
        chosen[name].check(phases.PHASES[name])
    address = parsed_args.address
    if ':' not in address:
        address = f'{address}:{answers.PORT}'
    return asyncio.run(_read(address, answers.read_secret(parsed_args.secret_file),
                             {name: chosen[name] for name in wanted}, parsed_args.deadline,
                             times))


class Read(lister.Lister):
    """Take one reading of a sensor: the time of its work, phase by phase.

    Times are in milliseconds. R of the connection phase counts from when a request was due to the
    end of its answer; E of the other phases is the time of the work. Exit status 1 if a phase
    gives no reading.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_sensor(parser)
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Fail where a phase gives no reading."""
        self._status = 0
        super().run(parsed_args)
        return self._status

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...],
                                                                    list[tuple[Any, ...]]]:
        from tracon_watcher.probe import readings

        rows = []
        for name, (one,) in read(parsed_args).items():
            if isinstance(one, readings.NoReading):
                self._status = 1
                self.app.LOG.error('%s: no reading: %s', name, one)
                rows.append((name, *[math.nan] * 6, 0, one.reason))
            else:
                rows.append((name, one.mean * 1e3, one.half * 1e3,
                             *(value * 1e3 for value in one.percentiles), one.answers, ''))
        return (('Phase', 'Mean (ms)', '95 % ± (ms)', 'Median', '90 %', '99 %', 'Slowest',
                 'Answers', 'No reading'),
                numerals.rows(rows, parsed_args))


class Baseline(lister.Lister):
    """Measure the baseline of a host type: readings of a sensor that is alone on a host.

    No other VM may run there meanwhile. An existing file keeps the baselines of other types and
    phases. Readings alternate between phases, and the sensor rests in between.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        from tracon_watcher.probe import phases

        parser = super().get_parser(prog_name)
        add_sensor(parser)
        parser.add_argument('--host-type', required=True, metavar='NAME',
                            help='host type, as in the metadata tracon:host_type of the host\'s '
                                 'aggregate')
        parser.add_argument('--readings', type=numerals.whole(phases.LEAST_READINGS), default=10,
                            metavar='N',
                            help=f'readings of each phase, at least {phases.LEAST_READINGS} '
                                 f'(default: %(default)s)')
        parser.add_argument('--output', required=True, type=pathlib.Path, metavar='FILE',
                            help='document of baselines to write (JSON)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...],
                                                                    list[tuple[Any, ...]]]:
        import dataclasses
        import time
        from tracon_watcher.probe import detection
        from tracon_watcher.probe import readings

        known = detection.load(parsed_args.output) if parsed_args.output.exists() else {}
        for name, found in read(parsed_args, parsed_args.readings).items():
            for one in found:
                if isinstance(one, readings.NoReading):
                    self.app.LOG.warning('%s: no reading: %s', name, one)
            known[parsed_args.host_type, name] = detection.learn(parsed_args.host_type, [
                one for one in found if not isinstance(one, readings.NoReading)])
        detection.save(known, parsed_args.output)
        rows = [(one.host_type, one.phase, *dataclasses.astuple(one.setting), one.mean * 1e3,
                 one.half * 1e3, one.reach * 1e3, one.readings,
                 time.strftime('%Y-%m-%d %H:%M', time.localtime(one.at)))
                for _, one in sorted(known.items())]
        return (('Host type', 'Phase', 'Rate (1/s)', 'Seconds', 'Amount', 'Mean (ms)',
                 '95 % ± of the mean', '95 % ± of a reading', 'Readings', 'Measured'),
                numerals.rows(rows, parsed_args))


class Status(lister.Lister):
    """Show the contention measured by the sensors of tracon-probe."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--url', default='http://127.0.0.1:8641',
                            help='URL of tracon-probe (default: %(default)s)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...],
                                                                    list[tuple[Any, ...]]]:
        import asyncio

        rows = [(sensor['host'], sensor['host_type'], phase, one['state'], one['ratio'],
                 one['low'], one['age'], one['reason'])
                for sensor in asyncio.run(_ask(parsed_args.url))
                for phase, one in sensor['phases'].items()]
        return (('Host', 'Host type', 'Phase', 'State', 'Times the baseline', 'At least',
                 'Age (s)', 'Reason'),
                [tuple(numerals.shown(math.nan if value is None else value, parsed_args)
                       for value in row) for row in rows])


async def _ask(url: str) -> list[dict[str, Any]]:
    import aiohttp

    from tracon_watcher import errors
    from tracon_watcher.probe import controller
    from tracon_watcher.probe import generator

    try:
        async with generator.session() as client, client.get(f'{url}/v1/states') as answer:
            content = await answer.json()
            if content['schema'] == controller.STATES:
                return list(content['sensors'])
            text = f'answers with {content["schema"]}'
    except aiohttp.ClientConnectorError as error:
        text = error.os_error.strerror or str(error)
    except (aiohttp.ClientError, OSError, ValueError, LookupError, TypeError) as error:
        text = str(error) or type(error).__name__
    raise errors.InvalidOption('--url', url, f'{text}; state where tracon-probe listens')


async def _read(address: str, secret: bytes, chosen: dict[str, Any], deadline: float, times: int
                ) -> dict[str, list[Any]]:
    from tracon_watcher.probe import generator
    from tracon_watcher.probe import phases
    from tracon_watcher.probe import readings
    from tracon_watcher import progress

    bar = progress.Progress(times * sum(setting.seconds for setting in chosen.values()))
    found: dict[str, list[Any]] = {name: [] for name in chosen}
    async with generator.session() as client:
        for turn in range(times):
            for name, setting in chosen.items():
                task = f'{name} {turn + 1}' if times > 1 else name
                try:
                    found[name].append(await generator.take(
                        client, address, secret, phases.PHASES[name], setting, deadline,
                        lambda share: bar.report(task, share, setting.seconds)))
                except readings.NoReading as reason:
                    found[name].append(reason)
                    bar.report(task, 1.0, setting.seconds)
    return found


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
        from tracon_watcher.probe import images
        from tracon_watcher import progress

        def build() -> deployment.Image:
            cache = parsed_args.cache or images.default_cache()
            built = images.build(cache.absolute())
            return deployment.Image(
                built.kernel, built.initramfs, built.disk,
                f'{images.COMMAND_LINE} {images.OPTIONS}', images.MEMORY_MIB)

        generators = tuple(map(_network, parsed_args.generator))
        secret = deployment.make_secret(parsed_args.secret_file)
        made = deployment.Deployment(
            connect(parsed_args.os_cloud),
            deployment.DeploymentOptions(parsed_args.network, generators, secret,
                                         parsed_args.headroom_mb,
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
