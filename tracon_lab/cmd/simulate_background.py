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
import lzma
import pathlib
from typing import Any

from cliff import lister
import numpy as np

from tracon_lab.cmd import arguments
from tracon_watcher.background import controllers
from tracon_watcher import errors
from tracon_watcher import files
from tracon_watcher import numerals

COLUMNS = ('factor', 'window', 'loads', 'violations_mean', 'violations_most', 'left')
#: Without recorded loads.
QUOTA_COLUMNS = ('factor', 'window', 'cores', 'quota', '± quota', 'learning')
_FULL = 100.0
#: Mean and standard deviation of noise, and how many sequences of how many samples there are.
_NOISE, _SEQUENCES = (1.0, 0.02), (10, 4000)


class Background(lister.Lister):
    """Replay recorded loads, and show how much a reservation leaves for background work.

    The study is that of Fig. 5.4 of Scavenger: for each std-factor c and window w, how often a
    load exceeded the μ + cσ that were reserved for it, and which share of the capacity was left.

    The file is CSV, plain or compressed (.xz, .gz), with the columns day, vm, m0, m1 and so on: a
    row for each VM and day, in per cent. CPU use on PlanetLab is published in this form.

    Without FILE it shows what the CPU quota is while the background harms nothing: the metric of
    the VMs is noise (synthetic: independent, normally distributed). The columns are the mean
    quota, as a share of the cores, half of its 95 % interval over ten sequences of 4,000 samples,
    and the share of the time in which a band is learnt.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add('file', nargs='?', metavar='FILE')
        add('--factors', type=arguments.listed(numerals.number(0.01, 10)), metavar='C,…',
            default=[0.5, 1.0, 1.5, 2.0, 2.5, 3.0],
            help='widths c of the band (default: 0.5 to 3)')
        add('--windows', type=arguments.listed(numerals.whole(2, 1000)), metavar='W,…',
            default=[6, 12, 24, 48], help='windows w, in samples (default: 6, 12, 24, 48)')
        add('--cores', type=arguments.listed(numerals.whole(1, 1000)), metavar='N,…',
            help='without FILE: cores for the background (default: 1, 16)')
        add('--vms', type=numerals.whole(1, 1000), metavar='N',
            help='with FILE: number of successive VMs of one day whose mean is one load '
                 '(default: 1)')
        add('--plot', type=arguments.picture('.png', '.svg'), metavar='FILE',
            help='with FILE: plot file (PNG or SVG); needs the extra "plots"')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        rows: list[tuple[Any, ...]] = []
        for name in ('vms', 'plot') if parsed_args.file is None else ('cores',):
            if getattr(parsed_args, name) is not None:
                raise errors.InvalidOption(f'--{name}', str(getattr(parsed_args, name)), (
                    f'it has no effect {"without" if parsed_args.file is None else "with"} FILE; '
                    'leave it out'))
        if parsed_args.file is None:
            rows = [(factor, window, cores, *beside_noise(
                controllers.Setting(factor, window), cores))
                for cores in parsed_args.cores or [1, 16]
                for factor in parsed_args.factors for window in parsed_args.windows]
            return QUOTA_COLUMNS, numerals.rows(rows, parsed_args)
        load = read(parsed_args.file, parsed_args.vms or 1)
        for factor in parsed_args.factors:
            for window in parsed_args.windows:
                if window >= load.shape[1]:
                    raise errors.InvalidOption('--windows', window, f'the loads have '
                                               f'{load.shape[1]} samples: name fewer')
                violations, left = controllers.replay(
                    load, _FULL, controllers.Setting(factor, window))
                rows.append((factor, window, len(load), float(violations.mean()),
                             int(violations.max()), float(left.mean())))
        if parsed_args.plot:
            _plot(parsed_args.plot, rows)
        return COLUMNS, numerals.rows(rows, parsed_args)


def beside_noise(setting: controllers.Setting, cores: int) -> tuple[float, float, float]:
    """Return the mean CPU quota beside noise.

    The quota depends on which band is learnt, by chance and for a long time: hence several
    sequences.

    :returns: the quota as a share of cores, half of its 95 % interval, and the share of samples
        in which a band is learnt
    """
    from tracon_lab.simulator import results
    quotas, learning = [], 0
    noise = np.random.default_rng(1).normal(*_NOISE, _SEQUENCES)
    for values in noise:
        state, quota = controllers.Quota(controllers.Aimd().minimum), 0.0
        for value in values:
            state = controllers.adapt(state, value, cores, setting, controllers.Aimd())
            quota += state.cores
            learning += state.event == 'learning'
        quotas.append(quota / (len(values) * cores))
    return float(np.mean(quotas)), results.interval(quotas), learning / noise.size


def read(path: str, together: int) -> np.ndarray:
    """Return loads, (n, t) in per cent: of ``together`` rows of one day the mean.

    :raises tracon_watcher.errors.InvalidDocument: naming file, line, column and value
    """
    from tracon_watcher import csv_table
    remedy = 'expected a CSV file with the columns day, vm, m0, m1 …'
    if path.endswith('.xz'):
        try:
            with lzma.open(path, 'rt', encoding='utf-8') as stream:
                table = csv_table.parse(stream.read(), path, ('day', 'vm', 'm0'))
        except (OSError, EOFError, lzma.LZMAError, UnicodeDecodeError) as error:
            raise errors.InvalidDocument(path, 'the file', str(error), remedy) from None
    else:
        table = csv_table.parse(files.text(path, remedy), path, ('day', 'vm', 'm0'))
    columns = [name for name in table.columns if name not in ('day', 'vm')]
    days: dict[str, list[list[float]]] = {}
    for row in table.rows:
        days.setdefault(row.text('day'), []).append(
            [row.optional(name, 0.0, _FULL) for name in columns])
    loads = [np.mean(rows[start:start + together], axis=0) for rows in days.values()
             for start in range(0, len(rows) - together + 1, together)]
    if not loads:
        raise errors.InvalidOption('--vms', together, f'no day in {path} has so many VMs')
    return np.array(loads)


def _plot(path: pathlib.Path, rows: list[tuple[Any, ...]]) -> None:
    from matplotlib import figure
    drawing = figure.Figure(figsize=(8, 3.6), layout='constrained')
    most, left = drawing.subplots(1, 2)
    for window in dict.fromkeys(row[1] for row in rows):
        own = [row for row in rows if row[1] == window]
        factors = [row[0] for row in own]
        most.plot(factors, [row[3] for row in own], 'o-', markersize=3, label=f'w = {window}')
        left.plot(factors, [100 * row[5] for row in own], 'o-', markersize=3)
    most.set(xlabel='std-factor c', ylabel='violations of a load, mean', ylim=(0, None))
    left.set(xlabel='std-factor c', ylabel='left for background work, %', ylim=(0, 100))
    for axes in (most, left):
        axes.grid(alpha=0.3)
    most.legend(frameon=False)
    drawing.savefig(path, dpi=110)
