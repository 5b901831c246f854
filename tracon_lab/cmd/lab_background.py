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

"""``tracon lab background``, ``second vm``: what is beside a VM, and what limits it."""

import argparse
import dataclasses
import datetime
import pathlib
import shlex
import sys
import typing

from cliff import lister

from tracon_lab.cmd import arguments
from tracon_watcher import numerals

#: Seconds in which DIAL adapts.
_ADAPT = 12.0
#: Of a smoke test: it shows that all works, and its numbers mean nothing.
_QUICK = {'runs': 1, 'seconds': 4.0, 'settle': 1.0, 'grow': 2.0, 'learning': 6}
_Windows = dict[tuple[int, str], dict[str, float]]


class _Compared(lister.Lister):
    """Table of windows, which are measured now or were before."""

    window = 40.0

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add('file', nargs='?', metavar='FILE', type=pathlib.Path,
            help='windows (CSV) that were measured before')
        add('--output', metavar='FILE', type=pathlib.Path,
            help='measure, and write the windows to this file')
        add('--runs', type=numerals.whole(1), default=6, metavar='N',
            help='number of runs (default: %(default)s)')
        add('--window', type=numerals.number(1, 3600), default=self.window, metavar='SECONDS',
            help='length of a window (default: %(default)s)')
        add('--quick', action='store_true',
            help='one short run, which shows that everything works; its numbers mean nothing')
        add('--seed', type=numerals.whole(0), default=1, metavar='N',
            help='random seed for the order and for requests (default: %(default)s)')
        add('--accelerator', choices=('auto', 'kvm', 'qemu'), default='auto')
        add('--cache', type=pathlib.Path, metavar='DIR', help='folder of images')
        return parser

    def windows(self, parsed_args: argparse.Namespace, measure: typing.Callable[..., None],
                arms: typing.Sequence[str], **more: typing.Any) -> _Windows:
        """Measure, or read what was measured.

        :param measure: measures runs, each of which has a window of each arm
        :param more: of :class:`tracon_lab.background.measurement.Measurement`
        """
        from tracon_lab.background import comparison
        from tracon_watcher import errors

        source = parsed_args.output or parsed_args.file
        if source is None:
            raise errors.InvalidOption('FILE', '', 'name windows that were measured before, or '
                                                   'measure with --output')
        if parsed_args.output is not None:
            _measure(parsed_args, measure, len(arms), more)
        return comparison.read(source, arms)


class Background(_Compared):
    """Compare what limits background work beside real guests, in half an hour by default.

    In front are a Web service and two of TRACON's programs, a guest each. Behind are stressors of
    CPU, memory, disk and network and a batch sort, in control groups. In a run each of these has
    a window, in a changing order: nothing behind, cores of its own alone, static quotas,
    tracon-background. The table has means over runs and half of their 95 % intervals. With
    --output the command measures; it needs root, libvirt, QEMU, and a machine without other load.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add('--cores', choices=('shared', 'separate'), default='shared',
            help='cores of the guests: all, as those of VMs without pinning, or the last one, '
                 'which the background never uses (default: %(default)s)')
        add('--dial', action='store_true',
            help='two guests for the Web service, one on the cores of the background and one on '
                 'the last one; HAProxy balances requests by "tracon dial run" in all arms')
        add('--factor', type=numerals.number(0.01, 10), metavar='C',
            help="std-factor of tracon-background's CPU quota (default: that of the product)")
        add('--plot', metavar='FILE', type=arguments.picture('.png', '.svg', '.pdf'),
            help='plot file of slowdowns and work (PNG, SVG or PDF)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...],
                                                                    list[tuple[typing.Any, ...]]]:
        from tracon_lab.background import comparison
        from tracon_lab.background import measurement

        chosen: dict[str, typing.Any] = {'shared': parsed_args.cores == 'shared'}
        if parsed_args.dial:
            chosen.update(dial=True, settle=_ADAPT)
        if parsed_args.factor is not None:
            chosen['factor'] = parsed_args.factor
        rows = comparison.table(self.windows(parsed_args, measurement.measure, comparison.ARMS,
                                             **chosen))
        if parsed_args.plot:
            _plot(rows, parsed_args.plot)
        return comparison.TABLE, numerals.rows(rows, parsed_args)


class SecondVM(_Compared):
    """Show the response time of a Web service beside a second VM, in 22 minutes by default.

    The second VM computes, reads and computes, or writes to memory; it shares the core of the
    service or has another one, in a changing order. The table has percentiles, as means over runs
    with half of their 95 % intervals. With --output the command measures; it needs root, libvirt,
    QEMU, and a machine without other load.
    """

    window = 20.0

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...],
                                                                    list[tuple[typing.Any, ...]]]:
        from tracon_lab.background import second_vm

        found = self.windows(parsed_args, second_vm.measure, tuple(second_vm.SETTINGS))
        return second_vm.TABLE, numerals.rows(second_vm.table(found), parsed_args)


def _measure(parsed_args: argparse.Namespace, measure: typing.Callable[..., None],
             arms: int, more: dict[str, typing.Any]) -> None:
    from tracon_lab.background import comparison
    from tracon_lab.background import measurement
    from tracon_lab.cmd import lab
    from tracon_lab.testbed import interruption
    from tracon_watcher import progress

    interruption.signals.install()
    chosen = measurement.Measurement(
        parsed_args.runs, parsed_args.window, seed=parsed_args.seed,
        accelerator=parsed_args.accelerator, cache=parsed_args.cache, **more)
    if parsed_args.quick:
        chosen = dataclasses.replace(chosen, **_QUICK)
    shown = progress.Progress(chosen.runs * arms)
    head = {
        # Where the file lies on this machine does not matter elsewhere.
        'command': 'tracon ' + shlex.join(sys.argv[1:]).replace(
            str(parsed_args.output), parsed_args.output.name),
        'date': datetime.datetime.now(datetime.UTC).date().isoformat()}

    def keep(facts: dict[str, str], windows: _Windows) -> None:
        comparison.write(parsed_args.output, {**head, **facts}, windows)
        shown.report(len(windows), 1.0)

    measure(chosen, lab.say, keep)


def _plot(rows: list[tuple[typing.Any, ...]], path: pathlib.Path) -> None:
    from matplotlib import figure
    import numpy as np

    from tracon_lab.background import comparison

    drawing = figure.Figure(figsize=(10, 4), layout='constrained')
    for axes, word, unit, title in zip(
            drawing.subplots(1, 2), ('slowdown of ', 'work of '), ('ratio', comparison.RELATIVE),
            ('slowdown of the foreground', 'work of the background, static quotas = 1')):
        shown = [row for row in rows if row[0].startswith(word) and row[1] == unit]
        for number, arm in enumerate(comparison.ARMS[1:]):
            column = comparison.TABLE.index(arm)
            axes.bar(np.arange(len(shown)) + 0.27 * (number - 1), [row[column] for row in shown],
                     0.27, yerr=[row[column + 1] for row in shown], label=arm)
        axes.set_xticks(range(len(shown)), [
            row[0].removeprefix(word) for row in shown])
        axes.axhline(1.0, color='black', linewidth=0.5)
        axes.set_title(title, fontsize='medium')
    drawing.legend(*axes.get_legend_handles_labels(), loc='outside lower center', ncols=3,
                   frameon=False, fontsize='small')
    drawing.savefig(path)
