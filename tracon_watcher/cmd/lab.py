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


class Measure(command.Command):
    """Measure two virtual machines beside each other, into a CSV file.

    Needs root, libvirt and QEMU. Continues a file that was cut short.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--host-type', required=True, metavar='NAME',
                            help='same-core-raw-disk or shared-slow-device')
        parser.add_argument('--output', required=True, metavar='FILE', type=pathlib.Path)
        parser.add_argument('--plan', choices=('full', 'small'), default='full')
        parser.add_argument('--limit-minutes', type=float, metavar='N',
                            help='stop after this time; the same command goes on later')
        parser.add_argument('--seed', type=int, default=1, metavar='N')
        parser.add_argument('--window', type=float, default=2.0, metavar='SECONDS')
        parser.add_argument('--core', type=int, metavar='N',
                            help='the measured core; by default the last one')
        parser.add_argument('--accelerator', choices=('auto', 'kvm', 'qemu'), default='auto')
        parser.add_argument('--canary-tolerance', type=float, default=0.07, metavar='SHARE')
        parser.add_argument('--cache', type=pathlib.Path, metavar='DIR',
                            help='where guest images are kept (1 GB and 2 GB of disks)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        from tracon_watcher.lab import acceptance
        from tracon_watcher.lab import interruption
        from tracon_watcher.lab import measure

        def report(line: str) -> None:
            print(datetime.datetime.now().strftime('%H:%M:%S'), line, file=sys.stderr,
                  flush=True)

        cores = sorted(os.sched_getaffinity(0))
        core = cores[-1] if parsed_args.core is None else parsed_args.core
        # A terminated run has to take its guests down as an interrupted one does.
        interruption.signals.install()
        settings = measure.Settings(
            host_type=parsed_args.host_type, output=parsed_args.output, plan=parsed_args.plan,
            seed=parsed_args.seed, core=core, accelerator=parsed_args.accelerator,
            window_seconds=parsed_args.window,
            limits=acceptance.Limits(canary=parsed_args.canary_tolerance),
            limit_minutes=parsed_args.limit_minutes, cache=parsed_args.cache,
            # where the file lies on this machine is nobody's business elsewhere
            command='tracon ' + shlex.join(sys.argv[1:]).replace(
                str(parsed_args.output), parsed_args.output.name))
        measure.measure(settings, report)


class Show(lister.Lister):
    """Summarise a file of measurements: its points, slowdowns and noise floor."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('file', metavar='FILE')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...],
                                                                    list[tuple[typing.Any, ...]]]:
        from tracon_watcher.lab import summary
        from tracon_watcher.models import dataset
        return summary.COLUMNS, summary.summarise(dataset.read(parsed_args.file))
