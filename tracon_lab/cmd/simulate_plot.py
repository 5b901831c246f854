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

"""The simulator's figures as plots."""

from __future__ import annotations

import io
import math
from typing import Any, Sequence

import matplotlib.axes
import matplotlib.figure
import matplotlib.ticker

from tracon_lab.simulator import figures
from tracon_lab.simulator import results

_COLOURS = {'FIFO-packed': '#c9ced6', 'FIFO-spread': '#8a8f98', 'FIFO-single': '#7b5a3a',
            'MIOS': '#7fb2e5', 'MIBS': '#3b8a3e', 'MIBS_2': '#b5dcae', 'MIBS_4': '#77bb69',
            'MIBS_8': '#3b8a3e', 'MIX_8': '#e8952f', 'PRICED_8': '#b3261e', 'matching': '#b3261e',
            'optimum': '#22272e'}
_DASHES = {'-residents': '-.', '-paired': '--', '-eager': ':', '-partial': '-.'}
_LABELS = {'speedup': 'speedup', 'io_boost': 'IOBoost', 'throughput': 'normalised throughput',
           'distance': 'distance to the optimum', 'machines': 'machines', 'model': 'model',
           'rate': 'tasks a minute', 'sigma': 'standard deviation of the mix',
           'event_cost': 'µs an event', 'occupied': 'slots in use'}
#: Ratios beyond it are drawn on a logarithmic axis.
_WIDE = 4.0
_LOGARITHMIC = ('machines',)


def draw(figure: figures.Figure, rows: Sequence[results.Row]) -> matplotlib.figure.Figure:
    """Return the plot: a column of panels a mix or objective, a line of them a value shown."""
    columns = list(dict.fromkeys(getattr(row, figure.panels) for row in rows))
    drawing = matplotlib.figure.Figure(
        figsize=(max(4.0 * len(columns), 6.0), 3.3 * len(figure.y)), layout='constrained')
    axes = drawing.subplots(len(figure.y), len(columns), squeeze=False)
    for line, value in enumerate(figure.y):
        for place, column in enumerate(columns):
            own = [row for row in rows if getattr(row, figure.panels) == column
                   and _shows(figure, value, row)]
            axis = axes[line, place]
            _panel(axis, figure, value, own)
            axis.set_title(str(column), loc='left', fontsize=10, fontweight='bold')
            for one in figure.published:
                if one.panel == column and one.field == value:
                    _published(axis, one.at, one.value)
        axes[line, 0].set_ylabel(_LABELS[value])
    labelled = {label: handle for axis in axes.flat
                for handle, label in zip(*axis.get_legend_handles_labels())}
    drawing.legend(labelled.values(), labelled.keys(), loc='outside lower center', ncols=6,
                   fontsize='small', frameon=False)
    return drawing


def svg(drawing: matplotlib.figure.Figure, said: str) -> str:
    """Return the drawing, with ``said`` as what a screen reader reads out."""
    text = io.StringIO()
    drawing.savefig(text, format='svg', metadata={'Date': None})
    whole = text.getvalue()
    return whole[whole.index('<svg'):].replace('<svg', f'<svg role="img" aria-label="{said}"', 1)


def _shows(figure: figures.Figure, value: str, row: results.Row) -> bool:
    """Say whether a row belongs into a line of panels: runtime for RT, IOPS for IO."""
    if figure.panels == 'objective' or value not in ('speedup', 'io_boost'):
        return True
    return (row.objective == 'RT') == (value == 'speedup')


def _panel(axis: matplotlib.axes.Axes, figure: figures.Figure, value: str,
           rows: Sequence[results.Row]) -> None:
    names = list(dict.fromkeys(row.scheduler for row in rows))
    categories = list(dict.fromkeys(getattr(row, figure.x) for row in rows))
    highest = 0.0
    for place, name in enumerate(names):
        own = [row for row in rows if row.scheduler == name]
        ending = next((one for one in _DASHES if name.endswith(one)), '')
        bare = name.removesuffix(ending)
        style: dict[str, Any] = {'color': _COLOURS.get(bare, '#6a4c93'), 'label': name,
                                 'linewidth': 1.8 if bare.startswith(('PRICED', 'match')) else 1.3,
                                 'linestyle': _DASHES.get(ending, '-')}
        if figure.x == 'model':
            # Beside each other: between models there is nothing.
            style['linestyle'] = 'none'
            x = [categories.index(row.model) + 0.12 * (place - (len(names) - 1) / 2)
                 for row in own]
        else:
            x = [getattr(row, figure.x) for row in own]
        y = [getattr(row, value) * (1e6 if value == 'event_cost' else 1) for row in own]
        highest = max([highest, *(one for one in y if math.isfinite(one))])
        spread = [row.interval if _has_interval(row, value) else 0.0 for row in own]
        axis.errorbar(x, y, yerr=spread, marker='o', markersize=3, elinewidth=0.8, capsize=2,
                      **style)
    if figure.x == 'model':
        axis.set_xticks(range(len(categories)), categories)
    elif figure.x in _LOGARITHMIC:
        axis.set_xscale('log', base=2)
        axis.set_xticks(categories, [f'{number:,}' for number in categories], rotation=45)
        axis.xaxis.set_minor_locator(matplotlib.ticker.NullLocator())
    if value in ('distance', 'occupied'):
        axis.yaxis.set_major_formatter(matplotlib.ticker.PercentFormatter(1.0))
    if value in ('distance', 'event_cost', 'occupied'):
        axis.set_ylim(bottom=0)
    elif highest > _WIDE:
        # Ratios around 1, and one that is many times larger.
        axis.set_yscale('log', base=2)
        axis.yaxis.set_major_formatter(matplotlib.ticker.FormatStrFormatter('%g'))
    axis.set_xlabel(_LABELS[figure.x])
    axis.grid(axis='y', color='#eceef2')
    for side in ('top', 'right'):
        axis.spines[side].set_visible(False)


def _has_interval(row: results.Row, value: str) -> bool:
    """Say whether a row's interval is that of the value shown."""
    shown = 'throughput' if not math.isnan(row.throughput) else (
        'speedup' if row.objective == 'RT' else 'io_boost')
    return value == shown and not math.isnan(row.interval)


def _published(axis: matplotlib.axes.Axes, at: float | None, value: float) -> None:
    if at is None:
        axis.axhline(value, color='#22272e', linestyle=':', linewidth=1, label='published (MIBS)')
        return
    low, high = axis.get_xlim()
    if low <= at <= high:
        axis.plot([at], [value], marker='*', markersize=9, color='#22272e', linestyle='none',
                  label='published (MIBS)')
