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

"""Commands that measure probes beside real guests."""

from __future__ import annotations

import argparse
import pathlib
import shlex
import sys
from typing import Any

from cliff import command
from cliff import lister

from tracon_watcher import numerals


class Measure(command.Command):
    """Measure readings of a sensor in quiet, contended and control windows, into a CSV file.

    Needs root, libvirt, QEMU and genisoimage, and a machine without other load.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        from tracon_watcher.probe import phases

        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add('--output', required=True, metavar='FILE', type=pathlib.Path)
        add('--phase', action='append', choices=tuple(phases.PHASES),
            help='phase to measure (default: all)')
        add('--windows', type=numerals.whole(1), default=30, metavar='N',
            help='number of windows of each phase and scene (default: %(default)s)')
        add('--seed', type=numerals.whole(0), default=1, metavar='N',
            help='random seed for the order of windows (default: %(default)s)')
        add('--cache', type=pathlib.Path, metavar='DIR', help='folder of images')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        from tracon_lab.testbed import interruption
        from tracon_lab.testbed import probe_windows
        from tracon_watcher.probe import phases
        from tracon_watcher import progress

        interruption.signals.install()
        bar = progress.Progress(1.0)
        probe_windows.measure(
            parsed_args.output, parsed_args.phase or list(phases.PHASES), parsed_args.windows,
            parsed_args.seed, 'tracon ' + shlex.join(sys.argv[1:]).replace(
                str(parsed_args.output), parsed_args.output.name), parsed_args.cache,
            lambda text, share: bar.report('windows', share))


class Show(lister.Lister):
    """Show how often readings of windows are flagged, or with --costs their cost."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('file', metavar='FILE', nargs='?', type=pathlib.Path,
                            help='windows (CSV) (default: those in the package)')
        parser.add_argument('--costs', action='store_true',
                            help='show the sensor\'s share of a core, and the slowdown of '
                                 'neighbours')
        parser.add_argument('--interval', type=numerals.number(1, 86400), default=300.0,
                            metavar='SECONDS',
                            help='time between two readings of a phase, for the averages of '
                                 '--costs (default: %(default)g)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[
            tuple[str, ...], list[tuple[Any, ...]]]:
        from tracon_lab.testbed import probe_windows

        windows = probe_windows.read(parsed_args.file or
                                     probe_windows.PACKAGED / 'two-cores.csv')
        names, rows = (probe_windows.COSTS, probe_windows.costs(windows, parsed_args.interval)
                       ) if parsed_args.costs else (probe_windows.TABLE,
                                                    probe_windows.table(windows))
        return names, numerals.rows(rows, parsed_args)
