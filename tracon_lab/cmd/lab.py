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
"""``tracon lab``: measure interference between real virtual machines, and look at the result."""

import argparse
import datetime
import os
import pathlib
import shlex
import sys
import typing

from cliff import command
from cliff import lister

from tracon_watcher import numerals


def say(line: str) -> None:
    print(datetime.datetime.now().strftime('%H:%M:%S'), line, file=sys.stderr, flush=True)


class Image(lister.Lister):
    """Build the images and programs of guests, and list their contents.

    Needs root; downloads Debian packages through apt and nothing else. `tracon lab measure` does
    the same if needed.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--cache', type=pathlib.Path, metavar='DIR',
                            help='folder of images')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...],
                                                                    list[tuple[str, str]]]:
        from tracon_lab.testbed import application_image
        from tracon_lab.testbed import image
        from tracon_watcher.probe import images

        cache = (parsed_args.cache or images.default_cache()).absolute()
        built = image.build(cache)
        applications = application_image.build(cache, say)
        rows = [('kernel', built.kernel_release), ('initramfs', str(built.initramfs)),
                ('applications', str(applications.disk))]
        return ('Part', 'Path or version'), [*rows, *sorted(applications.versions.items())]


class Measure(command.Command):
    """Measure virtual machines beside each other, into a CSV file.

    It measures on this machine, which needs root, libvirt and QEMU, or with --cloud on hosts of an
    OpenStack. It continues an interrupted file.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        from tracon_lab.cmd import lab_cloud
        from tracon_lab.testbed import host_types

        parser = super().get_parser(prog_name)
        parser.add_argument('--host-type', metavar='NAME',
                            help=f'host type: {", ".join(sorted(host_types.HOST_TYPES))}')
        parser.add_argument('--output', required=True, metavar='FILE', type=pathlib.Path)
        parser.add_argument('--plan', choices=(
            'full', 'small', 'applications', 'reduced', 'co-residents', 'table1'), default='full')
        parser.add_argument('--limit-minutes', type=numerals.number(0, 1e6), metavar='N',
                            help='time after which the run ends; the same command continues it')
        parser.add_argument('--seed', type=numerals.whole(0), default=1, metavar='N')
        parser.add_argument('--window', type=numerals.number(0.1, 3600), default=2.0,
                            metavar='SECONDS')
        parser.add_argument('--core', type=numerals.whole(0), metavar='N',
                            help='core to measure (default: the last one)')
        parser.add_argument('--accelerator', choices=('auto', 'kvm', 'qemu'), default='auto')
        parser.add_argument('--canary-tolerance', type=numerals.number(0, 1), default=0.07,
                            metavar='SHARE')
        parser.add_argument('--cache', type=pathlib.Path, metavar='DIR',
                            help='folder of images: 1 GB of scratch disk a guest, 1 GB more with '
                                 'the database program')
        lab_cloud.add_options(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        from tracon_lab.cmd import lab_cloud
        from tracon_lab.testbed import interruption
        from tracon_watcher import errors

        # A terminated run has to take its guests down as an interrupted one does.
        interruption.signals.install()
        if not parsed_args.cloud and parsed_args.host:
            raise errors.InvalidOption('--host', parsed_args.host[0], 'hosts of a cloud are '
                                                                      'measured with --cloud')
        if parsed_args.cloud:
            finished = lab_cloud.measure(parsed_args, say)
        elif parsed_args.host_type is None:
            raise errors.InvalidOption('--host-type', None, 'name one, or measure a cloud\'s '
                                                            'hosts with --cloud')
        else:
            finished = self._on_this_machine(parsed_args)
        if finished:
            return 0
        say('points are missing; the same command goes on with %s' % parsed_args.output)
        return 1

    def _on_this_machine(self, parsed_args: argparse.Namespace) -> bool:
        from tracon_lab.testbed import acceptance
        from tracon_lab.testbed import measure

        cores = sorted(os.sched_getaffinity(0))
        core = cores[-1] if parsed_args.core is None else parsed_args.core
        settings = measure.Settings(
            host_type=parsed_args.host_type, output=parsed_args.output, plan=parsed_args.plan,
            seed=parsed_args.seed, core=core, accelerator=parsed_args.accelerator,
            window_seconds=parsed_args.window,
            limits=acceptance.Limits(canary=parsed_args.canary_tolerance),
            limit_minutes=parsed_args.limit_minutes, cache=parsed_args.cache,
            # where the file lies on this machine does not matter elsewhere
            command='tracon ' + shlex.join(sys.argv[1:]).replace(
                str(parsed_args.output), parsed_args.output.name))
        return measure.measure(settings, say)


class Show(lister.Lister):
    """Summarise a file of measurements: its points, slowdowns and their scatter."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('file', metavar='FILE')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...],
                                                                    list[tuple[typing.Any, ...]]]:
        from tracon_lab.models import dataset
        from tracon_lab.testbed import summary
        return summary.COLUMNS, summary.summarise(dataset.read(parsed_args.file))


class _Table(lister.Lister):
    """Table computed for each file."""

    columns = ''
    rows = ''

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('file', nargs='*', metavar='FILE',
                            help='measurements (CSV) (default: those in the package)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...],
                                                                    list[tuple[typing.Any, ...]]]:
        from tracon_lab.cmd import packaged
        from tracon_lab.testbed import counters

        found: list[tuple[typing.Any, ...]] = []
        for data in packaged.read(parsed_args.file):
            found += getattr(counters, self.rows)(data)
        return getattr(counters, self.columns), numerals.rows(found, parsed_args)


class Track(_Table):
    """Show how well what is seen from outside follows the slowdown that is measured inside."""

    columns, rows = 'TRACKING', 'tracking'


class Limits(_Table):
    """Show which resource limits each program, alone and beside others, and what would help."""

    columns, rows = 'LIMITS', 'limits'


class Events(_Table):
    """Show running time as a linear function of hardware events, where the host counts them."""

    columns, rows = 'EVENTS', 'events'


class Report(_Table):
    """Make TRACON's tables and figures from measurements, as HTML and CSV, in a minute or two."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--output', metavar='DIR', type=pathlib.Path,
                            default=pathlib.Path('lab-report'),
                            help='folder of report.html and the CSV files (default: %(default)s)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...],
                                                                    list[tuple[typing.Any, ...]]]:
        import threadpoolctl

        from tracon_lab.cmd import packaged
        from tracon_lab.testbed import report

        # The matrices are small: threads only wait for each other.
        with threadpoolctl.threadpool_limits(1):
            made = report.Report(packaged.read(parsed_args.file), say)
            path = made.write(parsed_args.output)
        return ('file', 'rows'), [(str(path), None), *(
            (str(parsed_args.output / (name + '.csv')), len(rows))
            for name, (_columns, rows) in made.tables.items())]
