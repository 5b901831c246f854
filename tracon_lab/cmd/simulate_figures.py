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

"""``tracon simulate figures``: TRACON's figures of schedulers, with the published values."""

from __future__ import annotations

import argparse
import csv
import html
import pathlib
from typing import Any

from cliff import lister

from tracon_lab.cmd import simulate
from tracon_lab import page
from tracon_watcher import errors
from tracon_watcher import numerals

_NAMES = ('4', '8', '9', '10', '11', '12', 'table1', 'sigma', 'cost')


class Figures(lister.Lister):
    """Make TRACON's Figures 4 and 8 to 12 from measurements: plots, CSV, and text.

    In the folder each figure becomes figure-NAME.png and figure-NAME.csv. figures.html shows all
    of them, with the paper's published results and our differences.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add('--output', default='tracon-figures', metavar='DIR',
            help='folder for figures (default: %(default)s)')
        add('--figures', type=simulate.words, default=list(_NAMES), metavar='NAME[,NAME…]',
            help=f'figures to compute (default: {",".join(_NAMES)})')
        add('--runs', type=numerals.whole(1), default=20, metavar='N',
            help='runs of each setting; Figure 4 has twice as many batches, 512 machines and more '
                 'have half as many runs, "cost" has one (default: %(default)s)')
        add('--seed', type=numerals.whole(0), default=1,
            help='random seed of the first run (default: %(default)s)')
        add('--hours', type=numerals.number(0, 1e6), default=4.0,
            help='simulated hours; less with many machines (default: %(default)s)')
        add('--largest', type=numerals.whole(1), default=1024, metavar='N',
            help='largest number of machines; the figure "cost" has up to ten times as many '
                 '(default: %(default)s)')
        add('--processes', type=numerals.whole(1), default=2, metavar='N',
            help='processes at the same time (default: %(default)s)')
        simulate.add_world(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        unknown = [name for name in parsed_args.figures if name not in _NAMES]
        if unknown or not parsed_args.figures:
            raise errors.InvalidOption('--figures', ','.join(parsed_args.figures),
                                       f'expected some of {", ".join(_NAMES)}')
        folder = pathlib.Path(parsed_args.output)
        folder.mkdir(parents=True, exist_ok=True)
        found = _make(parsed_args, folder)
        columns = simulate.COLUMNS if parsed_args.formatter == 'table' else (
            simulate.COLUMNS + simulate.MORE)
        return ('figure', *columns), [
            (name, *simulate.listed(row, parsed_args)[:len(columns)]) for name, row in found]


def _make(arguments: argparse.Namespace, folder: pathlib.Path) -> list[tuple[str, Any]]:
    from tracon_lab.cmd import simulate_plot
    from tracon_lab.cmd import simulate_run
    from tracon_lab.simulator import figures
    from tracon_lab.simulator import results
    from tracon_lab.simulator import words
    setup = simulate.setup(arguments)
    wanted = [one for one in figures.all_figures(setup, arguments.runs, arguments.seed,
                                                 arguments.hours, arguments.largest)
              if one.name in arguments.figures]
    # What several figures show is simulated once. What is timed runs alone, afterwards.
    shared = list(dict.fromkeys(case for one in wanted if one.name != 'cost'
                                for case in one.cases))
    done = dict(zip(shared, simulate_run.run(shared, arguments.processes)))
    for one in wanted:
        if one.name == 'cost':
            done.update(zip(one.cases, simulate_run.run(one.cases, 1)))
    # One of the figures has a truth of its own, and may be the only one that is wanted.
    shown = next((one for one in done.values() if one.case.setup.truth == setup.truth),
                 next(iter(done.values())))
    parts = [_head(shown.case.setup, shown.factor, arguments)]
    found = []
    for one in wanted:
        rows = results.rows(done[case] for case in one.cases)
        found += [(one.name, row) for row in rows]
        said = words.of_figure(one.name, rows)
        drawing = simulate_plot.draw(one, rows)
        drawing.savefig(folder / f'figure-{one.name}.png', dpi=110)
        _write(folder / f'figure-{one.name}.csv', one, rows, arguments)
        parts.append(_section(one, rows, said, simulate_plot.svg(drawing, html.escape(
            one.title, quote=True)), arguments))
    (folder / 'figures.html').write_text(''.join((*parts, page.END)), encoding='utf-8')
    return found


def _write(path: pathlib.Path, figure: Any, rows: Any, arguments: argparse.Namespace) -> None:
    """Write a figure's rows, with what the paper published at the same place."""
    with path.open('w', encoding='utf-8', newline='') as file:
        writer = csv.writer(file, lineterminator='\n')
        writer.writerow((*simulate.COLUMNS, *simulate.MORE, 'published'))
        for row in rows:
            # The last is the most particular.
            published = next((one.value for one in reversed(figure.published)
                              if one.belongs(figure, row)), '')
            writer.writerow((*('' if value is None else value
                               for value in simulate.listed(row, arguments)), published))


def _head(setup: Any, factor: float, arguments: argparse.Namespace) -> str:
    from tracon_lab.simulator import results
    world = html.escape(simulate.world_in_words(setup, factor))
    return (page.begin('TRACON\'s schedulers on measured interference')
            + '<h1>TRACON\'s schedulers on measured interference</h1><p class="lead">'
            f'{world} A task takes {setup.minutes:g} minutes alone on average; models have seen '
            f'none of the pairs. Means of {arguments.runs} runs with their 95 % intervals, as '
            f'ratios to {results.BASELINE}, beside what Chiang &amp; Huang (SC\'11) published. '
            f'PRICED and matching are this product\'s.</p>')


def _section(figure: Any, rows: Any, said: list[str], drawing: str,
             arguments: argparse.Namespace) -> str:
    heading = f'Figure {figure.name}: ' if figure.name.isdigit() else ''
    table = page.table((*simulate.COLUMNS, *simulate.MORE), (
        tuple('' if value is None else value for value in simulate.listed(row, arguments))
        for row in rows))
    told = ''.join(f'<li>{html.escape(sentence)}</li>' for sentence in said)
    return (f'<section><h2>{html.escape(heading + figure.title)}</h2>{drawing}'
            f'<p>Published: {html.escape(figure.said)}</p><ul>{told}</ul>'
            f'<details><summary>All numbers</summary>{table}</details></section>')
