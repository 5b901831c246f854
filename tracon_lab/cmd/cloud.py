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

"""``tracon cloud``: a whole OpenStack with real guests on this machine, for trials and tests."""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import shutil
import sys
import time
from typing import Any

from cliff import command
from cliff import lister

from tracon_watcher import errors
from tracon_watcher import numerals
from tracon_watcher import progress

_DIRECTORY = pathlib.Path('/var/tmp/tracon-cloud')
_OPTIONS = ('port_base', 'polling_seconds', 'scheduler_workers', 'memory_mib', 'debug')


def _add_directory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('--directory', type=pathlib.Path, default=_DIRECTORY, metavar='DIR',
                        help='folder of all files of the cloud (default: %(default)s)')


class _Shown:
    """Tells of the steps as they are done."""

    def __init__(self) -> None:
        self._progress = progress.Progress(1.0)
        self._begin = time.monotonic()

    def __call__(self, step: Any, seconds: float, share: float) -> None:
        if seconds >= 0.5:
            self._progress.say(f'{time.monotonic() - self._begin:6.1f} s  {share:4.0%}  '
                               f'{step.name} ({seconds:.1f} s)')


class Start(command.Command):
    """Start all stopped parts of a cloud, and create the cloud first if there is none.

    Needs root, and the system packages that it names if they are missing. Keystone, Placement,
    Glance, Neutron's API, Nova with compute hosts that run real guests, Ceilometer, Gnocchi and
    Watcher run as processes that listen on the loopback device only.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        _add_directory(parser)
        add('--host', action='append', metavar='NAME',
            help='compute host; may be repeated (default: cmp1 and cmp2)')
        add('--cores', action='append', metavar='LIST',
            help='cores of a host\'s guests, such as 0 or 2,3, once for each host (default: a '
                 'core of its own for each host if there are enough)')
        add('--port-base', type=numerals.whole(1, 65535), metavar='N',
            help='first of the ports (default: 27000)')
        add('--polling-seconds', type=numerals.whole(1, 86400), metavar='N',
            help='seconds between two polls of Ceilometer (default: 10)')
        add('--scheduler-workers', type=numerals.whole(1), metavar='N',
            help='number of workers of nova-scheduler (default: 1)')
        add('--memory-mib', type=numerals.whole(1), metavar='N',
            help='memory of the flavors (default: 256)')
        add('--cache', type=pathlib.Path, metavar='DIR',
            help='folder of databases and disks that take long to create')
        add('--debug-services', dest='debug', action='store_true', default=None,
            help='let the services log at level DEBUG')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        from tracon_lab.testcloud import cloud
        made = cloud.TestCloud(_wanted(parsed_args), _Shown())
        made.start()
        settings = made.settings
        print(f'Keystone is at {settings.auth_url}, logs are in {settings.logs}. For a shell:\n'
              f'  eval "$(tracon cloud env --directory {settings.directory})"')


def _wanted(parsed_args: argparse.Namespace) -> Any:
    """Return the settings of the cloud that is there, changed by what was given."""
    from tracon_lab.testcloud import errors as cloud_errors
    from tracon_lab.testcloud import settings as settings_module

    directory = parsed_args.directory.absolute()
    changes: dict[str, Any] = {name: getattr(parsed_args, name) for name in _OPTIONS}
    changes['cache'] = parsed_args.cache and parsed_args.cache.absolute()
    changes['hosts'] = parsed_args.host and tuple(parsed_args.host)
    changes['cores'] = parsed_args.cores and tuple(parsed_args.cores)
    changes = {name: value for name, value in changes.items() if value is not None}
    try:
        found = settings_module.Settings.load(directory)
    except cloud_errors.NoCloud:
        return settings_module.Settings(directory=directory, **changes)
    for name in ('hosts', 'port_base'):
        if name in changes and changes[name] != getattr(found, name):
            raise errors.InvalidOption(
                f'--{name.rstrip("s").replace("_", "-")}', changes[name],
                f'the cloud in {directory} has {getattr(found, name)!r}: delete it first '
                f'("tracon cloud stop --delete"), or name another directory')
    return dataclasses.replace(found, **changes)


class Stop(command.Command):
    """Stop a cloud and its guests; its data is kept for the next start."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_directory(parser)
        parser.add_argument('--delete', action='store_true',
                            help='delete the data of the cloud, too')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        made = _existing(parsed_args, _Shown())
        made.stop()
        if parsed_args.delete:
            shutil.rmtree(made.settings.directory)


class Status(lister.Lister):
    """List the services of a cloud; exit code 1 when one is not running."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_directory(parser)
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        self._running = True
        return super().run(parsed_args) or int(not self._running)

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...],
                                                                    list[tuple[Any, ...]]]:
        found = _existing(parsed_args).status()
        self._running = all(one.state == 'running' for one in found)
        return ('service', 'state', 'pid', 'processes', 'resident_mib'), [
            (one.name, one.state, one.pid, one.processes, round(one.resident_bytes / 2 ** 20))
            for one in found]


class Env(command.Command):
    """Print the variables that the openstack command reads, for a shell to evaluate."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        _add_directory(parser)
        parser.add_argument('--user', default='admin',
                            help='user: admin, demo or reader (default: %(default)s)')
        parser.add_argument('--project', help='project (default: the project of that user)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        from tracon_lab.testcloud import seed
        project = parsed_args.project or ('admin' if parsed_args.user == 'admin' else
                                          seed.USERS.get(parsed_args.user, ('demo',))[0])
        variables = _existing(parsed_args).environment(parsed_args.user, project)
        for name, value in variables.items():
            sys.stdout.write(f'export {name}={value}\n')


def _existing(parsed_args: argparse.Namespace, *report: Any) -> Any:
    from tracon_lab.testcloud import cloud
    from tracon_lab.testcloud import settings as settings_module
    return cloud.TestCloud(settings_module.Settings.load(parsed_args.directory.absolute()),
                           *report)
