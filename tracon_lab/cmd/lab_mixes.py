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

from __future__ import annotations

import argparse
import pathlib
import shlex
import sys
import typing

from cliff import command
from cliff import lister

from tracon_lab.cmd import arguments
from tracon_watcher import numerals


class Measure(command.Command):
    """Measure mixes of up to eight guests on all cores of this machine, into a CSV file.

    Needs root, libvirt and QEMU, and a machine without other load.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add('--output', required=True, metavar='FILE', type=pathlib.Path)
        add('--mixes', type=numerals.whole(1), default=20, metavar='N',
            help='number of mixes (default: %(default)s)')
        add('--window', type=numerals.number(1, 3600), default=10.0, metavar='SECONDS',
            help='length of a window (default: %(default)s)')
        add('--seed', type=numerals.whole(0), default=1, metavar='N',
            help='random seed for drawing mixes (default: %(default)s)')
        add('--accelerator', choices=('auto', 'kvm', 'qemu'), default='auto')
        add('--cache', type=pathlib.Path, metavar='DIR',
            help='folder of images: 1 GB of scratch disk a guest')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        from tracon_lab.cmd import lab
        from tracon_lab.testbed import interruption
        from tracon_lab.testbed import mixes

        interruption.signals.install()
        mixes.measure(
            parsed_args.output, parsed_args.mixes, parsed_args.window, parsed_args.seed,
            # where the file lies on this machine does not matter elsewhere
            'tracon ' + shlex.join(sys.argv[1:]).replace(
                str(parsed_args.output), parsed_args.output.name),
            lab.say, parsed_args.accelerator, parsed_args.cache)


class Show(lister.Lister):
    """Compare the measured slowdown of guests in mixes with the law of queueing's prediction."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('file', metavar='FILE', nargs='?', type=pathlib.Path,
                            help='measurements of mixes (CSV) (default: those in the package)')
        parser.add_argument('--plot', metavar='FILE',
                            type=arguments.picture('.png', '.svg', '.pdf'),
                            help='plot file of predicted over measured slowdown (PNG, SVG or PDF)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[
            tuple[str, ...], list[tuple[typing.Any, ...]]]:
        from tracon_lab.testbed import mixes

        cores, rows = mixes.read(parsed_args.file or mixes.PACKAGED)
        judged = mixes.judge(rows, cores)
        if parsed_args.plot:
            _plot(judged, parsed_args.plot)
        return mixes.TABLE, numerals.rows(mixes.table(judged), parsed_args)


def _plot(judged: typing.Any, path: pathlib.Path) -> None:
    from matplotlib import figure
    from matplotlib import ticker
    import numpy as np

    from tracon_lab.testbed import mixes

    drawing = figure.Figure(figsize=(11, 4), layout='constrained')
    shown = (mixes.LAW, mixes.ESTIMATED, mixes.COUNTERS)
    disk = np.array([row.reads + row.writes > 0 for row in judged.rows])
    large = np.array([row.vcpus > 1 for row in judged.rows])
    most = 1.1 * float(np.nanmax([judged.measured, *(judged.predicted[name] for name in shown)]))
    for axes, name in zip(drawing.subplots(1, len(shown), sharey=True), shown):
        for label, marker, rows in (('computing, 1 vCPU', 'o', ~disk & ~large),
                                    ('computing, 2 vCPUs', '^', large),
                                    ('with a disk', 'x', disk)):
            axes.plot(judged.measured[rows], judged.predicted[name][rows], marker, alpha=0.6,
                      label=label)
        axes.plot([1, most], [1, most], color='grey', linewidth=0.8)
        axes.set(xscale='log', yscale='log', xlim=(0.9, most), ylim=(0.9, most), title=name,
                 xlabel='measured slowdown')
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(ticker.LogLocator(10, (1, 2, 5)))
            axis.set_major_formatter('{x:g}')
            axis.set_minor_locator(ticker.NullLocator())
    drawing.axes[0].set_ylabel('predicted, or seen by counters')
    drawing.axes[0].legend(frameon=False)
    drawing.savefig(path, dpi=110)
