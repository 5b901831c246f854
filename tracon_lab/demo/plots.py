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

"""The plots of the report, as SVG that stands inside a page."""

from __future__ import annotations

import io
import math
from typing import Any, Mapping, Sequence

import matplotlib
import matplotlib.axes
import matplotlib.cm
import matplotlib.colors
import matplotlib.figure
import matplotlib.patches
import matplotlib.ticker
import numpy as np

from tracon_lab.demo import arms
from tracon_lab.demo import comparison
from tracon_lab.simulator import truth as truths

COLOURS = {arms.STOCK: '#8a8f98', 'weigh, history': '#7fb2e5', 'weigh, oracle': '#2f6fb3',
           'enforce, history': '#f2b266', 'enforce, oracle': '#d9741a'}
_INK, _FAINT, _BAD = '#22272e', '#c9ced6', '#b3261e'
_HEAT = matplotlib.colors.LinearSegmentedColormap.from_list(
    'harm', ['#eef4ee', '#fdf3c9', '#f9c66b', '#ea7a3f', '#b3261e'])
_STYLE = {'font.size': 9, 'axes.edgecolor': _FAINT, 'axes.labelcolor': _INK, 'text.color': _INK,
          'xtick.color': _INK, 'ytick.color': _INK, 'axes.spines.top': False,
          'axes.spines.right': False, 'axes.titlesize': 10, 'axes.titleweight': 'bold',
          'axes.titlelocation': 'left', 'svg.hashsalt': 'tracon'}
#: Tiles of hosts in a row of the map.
_ACROSS = 8


def _figure(width: float, height: float) -> matplotlib.figure.Figure:
    return matplotlib.figure.Figure(figsize=(width, height), layout='constrained')


def _svg(figure: matplotlib.figure.Figure, said: str) -> str:
    """Return the drawing with ``said`` as what a screen reader reads out."""
    text = io.StringIO()
    figure.savefig(text, format='svg', metadata={'Date': None})
    drawing = text.getvalue()
    return drawing[drawing.index('<svg'):].replace(
        '<svg', f'<svg role="img" aria-label="{said}"', 1)


def story(rows: Sequence[comparison.Row], repair: comparison.Repair | None,
          neighbour: Sequence[float] | None, seed: int) -> str:
    """Draw the first picture: placement, one neighbour's slowdown, and breaches until repaired.

    :param neighbour: its measured slowdown before the change, during it and after the audits;
        None without an audit
    """
    with matplotlib.rc_context(_STYLE):
        figure = _figure(10.2, 2.9)
        axes = figure.subplots(1, 3 if repair is not None and neighbour is not None else 1)
        first, *others = np.atleast_1d(axes)
        _columns(first, [row.arm.replace(', ', '\n') for row in rows],
                 [row.in_breach for row in rows], [COLOURS[row.arm] for row in rows],
                 '1. Placement: VMs in breach')
        if others and repair is not None and neighbour is not None:
            line, last = others
            line.plot(range(3), neighbour, '-o', color='#d9741a', linewidth=2.5, markersize=7)
            for place, value in enumerate(neighbour):
                line.annotate(f'{value:.2f}×', (place, value), (0, 9 if place == 1 else -17),
                              textcoords='offset points', ha='center', weight='bold')
            line.set_xticks(range(3), ['before', 'a VM\nchanges', 'after\naudits'])
            line.set_title(f'2. Its neighbour’s slowdown (seed {seed})')
            high = max(neighbour) - 1.0 + 0.2
            line.set_ylim(1.0 - 0.25 * high, 1.0 + 1.1 * high)
            line.margins(x=0.2)
            _columns(last, ['before', 'change, if\nnothing\nis done', 'after\naudits',
                            'oracle’s\nbest'],
                     [repair.breaches[state] for state in comparison.STATES],
                     [COLOURS[arms.STOCK], _BAD, '#d9741a', '#2f6fb3'],
                     '3. Repair: VMs in breach')
        return _svg(figure, 'VMs in breach by arm; the slowdown of the neighbour of a VM that '
                            'changes; VMs in breach before and after the audits')


def _columns(axis: matplotlib.axes.Axes, names: Sequence[str], values: Sequence[float],
             colours: Sequence[str], title: str) -> None:
    axis.bar(range(len(names)), values, color=colours, width=0.66)
    for place, value in enumerate(values):
        axis.annotate(f'{value:.3g}', (place, value), (0, 3), textcoords='offset points',
                      ha='center', weight='bold')
    axis.set_xticks(range(len(names)), names)
    axis.set_title(title)
    axis.set_ylim(0, max([*values, 1.0]) * 1.18)
    axis.set_yticks([])
    axis.spines['left'].set_visible(False)
    axis.tick_params(bottom=False)


def bars(rows: Sequence[comparison.Row], per_seed: Mapping[str, Sequence[tuple[float, int]]],
         ) -> str:
    """Draw mean slowdown and VMs in breach by arm, a dot a seed where there are several.

    :param per_seed: by arm, mean slowdown and VMs in breach of each seed
    """
    with matplotlib.rc_context(_STYLE):
        figure = _figure(9.6, 2.6)
        left, right = figure.subplots(1, 2)
        places = np.arange(len(rows))[::-1]
        colours = [COLOURS[row.arm] for row in rows]
        for axis, values, which, title in (
                (left, [row.mean_slowdown for row in rows], 0, 'Mean slowdown, measured'),
                (right, [row.in_breach for row in rows], 1, 'VMs in breach of their limit')):
            start = 1.0 if which == 0 else 0.0
            axis.barh(places, np.array(values) - start, left=start, color=colours, height=0.66)
            for place, row, value in zip(places, rows, values):
                seeds = [one[which] for one in per_seed[row.arm]]
                edge = max([value, *seeds])
                if len(seeds) > 1:
                    axis.plot(seeds, place + np.linspace(-0.2, 0.2, len(seeds)), '.',
                              color=_INK, markersize=3, alpha=0.5)
                axis.annotate(f'{value:.2f}' if which == 0 or len(seeds) > 1 else f'{value:.0f}',
                              (edge, place), (4, 0), textcoords='offset points', va='center',
                              weight='bold')
            axis.set_yticks(places, [row.arm for row in rows])
            axis.set_title(title)
            axis.spines['left'].set_visible(False)
            axis.tick_params(left=False)
            axis.margins(x=0.12)
            axis.set_xlim(start, max(axis.get_xlim()[1], start + (0.2, 1.0)[which]))
        right.set_yticklabels([])
        return _svg(figure, 'Bars of mean slowdown and VMs in breach by arm')


def differences(rows: Sequence[comparison.Row]) -> str:
    """Draw each arm's paired difference to stock with its confidence interval."""
    compared = [row for row in rows if row.slowdown is not None]
    with matplotlib.rc_context(_STYLE):
        figure = _figure(9.6, 2.2)
        for axis, name, title in zip(figure.subplots(1, 2), ('slowdown', 'breaches'), (
                'Mean slowdown, difference to stock', 'VMs in breach, difference to stock')):
            axis.axvline(0, color=_INK, linewidth=1)
            for place, row in enumerate(reversed(compared)):
                found = getattr(row, name)
                axis.plot([found.low, found.high], [place] * 2, color=COLOURS[row.arm],
                          linewidth=4, solid_capstyle='round')
                axis.plot(found.mean, place, 'o', color=_INK, markersize=5)
            axis.set_yticks(range(len(compared)), [row.arm for row in reversed(compared)])
            axis.set_title(title)
            axis.set_xlabel('← better than stock        worse than stock →')
            axis.margins(x=0.15, y=0.25)
        return _svg(figure, 'Paired differences to stock with 95 % confidence intervals')


def hosts(panels: Sequence[tuple[str, Sequence[Mapping[str, Any]]]], names: Sequence[str],
          marked: Sequence[str] = ()) -> str:
    """Draw maps of hosts: a tile a host, a half a slot, its colour the measured slowdown.

    :param panels: title and judged VMs of each map
    :param names: of all hosts
    :param marked: names of VMs to point out
    """
    across = min(_ACROSS, len(names))
    lines = math.ceil(len(names) / across)
    top = max([vm['slowdown'] for _title, vms in panels for vm in vms] + [1.5])
    norm = matplotlib.colors.LogNorm(1.0, top)
    with matplotlib.rc_context(_STYLE):
        figure = _figure(9.8, len(panels) * (0.3 + 0.62 * lines))
        axes = np.atleast_1d(figure.subplots(len(panels), 1))
        for axis, (title, vms) in zip(axes, panels):
            _map(axis, vms, names, across, norm, marked)
            axis.set_title(title)
        scale = figure.colorbar(matplotlib.cm.ScalarMappable(norm, _HEAT), ax=list(axes),
                                fraction=0.025, pad=0.01, aspect=30, ticks=_ticks(top))
        scale.ax.set_yticklabels([f'{value:g}×' for value in _ticks(top)])
        scale.ax.minorticks_off()
        scale.outline.set_visible(False)
        return _svg(figure, 'Maps of hosts, coloured by measured slowdown')


def _ticks(top: float) -> list[float]:
    return [value for value in (1, 1.5, 2, 3, 5, 10, 20, 50) if value <= top]


def _map(axis: matplotlib.axes.Axes, vms: Sequence[Mapping[str, Any]], names: Sequence[str],
         across: int, norm: matplotlib.colors.Normalize, marked: Sequence[str]) -> None:
    for index, name in enumerate(names):
        x, y = index % across, -(index // across)
        here = [vm for vm in vms if vm['host'] == name]
        for slot in range(2):
            vm = here[slot] if slot < len(here) else None
            low = y + 0.46 - 0.4 * slot - 0.4
            axis.add_patch(matplotlib.patches.Rectangle(
                (x, low), 0.94, 0.38, linewidth=0, facecolor='#f4f5f7' if vm is None
                else _HEAT(norm(vm['slowdown']))))
            if vm is None:
                continue
            dark = norm(vm['slowdown']) > 0.72
            axis.text(x + 0.05, low + 0.19, vm['program'], va='center', fontsize=7.4,
                      color='white' if dark else _INK,
                      weight='bold' if vm['name'] in marked else 'normal')
            axis.text(x + 0.9, low + 0.19, f'{vm["slowdown"]:.1f}', va='center', ha='right',
                      fontsize=7.4, color='white' if dark else _INK)
            if vm['in_breach'] or vm['name'] in marked:
                axis.add_patch(matplotlib.patches.Rectangle(
                    (x + 0.01, low + 0.01), 0.92, 0.36, fill=False, linewidth=1.3,
                    edgecolor=_BAD if vm['in_breach'] else '#1c4e80',
                    linestyle='-' if vm['in_breach'] else (0, (2, 1.5))))
        axis.text(x + 0.47, y - 0.36, name, ha='center', va='top', fontsize=6.5, color='#6b7280')
    axis.set_xlim(-0.02, across)
    axis.set_ylim(-math.ceil(len(names) / across) + 0.35, 0.5)
    axis.axis('off')


def scatter(pairs: Sequence[Mapping[str, float]]) -> str:
    """Draw predicted against measured slowdown of pairs of programs that shared hosts.

    :param pairs: with ``count`` of VMs, and means over them of ``slowdown``,
        ``predicted_slowdown``, ``predicted_low`` and ``predicted_high``
    """
    count, measured, predicted, low, high = (np.array([pair[name] for pair in pairs]) for name in (
        'count', 'slowdown', 'predicted_slowdown', 'predicted_low', 'predicted_high'))
    with matplotlib.rc_context(_STYLE):
        figure = _figure(5.0, 4.2)
        axis = figure.subplots()
        top = max(measured.max(initial=1.5), high.max(initial=1.5)) * 1.1
        axis.plot([0.9, top], [0.9, top], color=_INK, linewidth=1)
        axis.vlines(measured, low, high, color='#7fb2e5', linewidth=2.5, alpha=0.5)
        axis.scatter(measured, predicted, 12 + 60 * count / count.max(), color='#2f6fb3',
                     alpha=0.75, linewidth=0, zorder=3)
        axis.set_xscale('log')
        axis.set_yscale('log')
        for which in (axis.xaxis, axis.yaxis):
            which.set_major_locator(matplotlib.ticker.FixedLocator(_ticks(top)))
            which.set_major_formatter(matplotlib.ticker.FormatStrFormatter('%g×'))
            which.set_minor_locator(matplotlib.ticker.NullLocator())
        axis.set_xlim(0.9, top)
        axis.set_ylim(0.9, top)
        axis.set_aspect('equal')
        axis.set_xlabel('measured slowdown (pair rows)')
        axis.set_ylabel('predicted slowdown, one-sided 80 % bounds')
        return _svg(figure, 'Predicted against measured slowdown')


def matrix(truth: truths.Truth) -> str:
    """Draw the measured slowdown of each program beside each."""
    with matplotlib.rc_context(_STYLE):
        figure = _figure(4.7, 4.2)
        axis = figure.subplots()
        top = max(float(truth.slowdown.max()), 1.5)
        norm = matplotlib.colors.LogNorm(1.0, top)
        axis.imshow(np.maximum(truth.slowdown, 1.0), cmap=_HEAT, norm=norm)
        for (row, column), value in np.ndenumerate(truth.slowdown):
            axis.text(column, row, f'{value:.1f}', ha='center', va='center', fontsize=7,
                      color='white' if norm(max(value, 1.0)) > 0.72 else _INK)
        axis.set_xticks(range(len(truth.programs)), truth.programs, rotation=40, ha='right')
        axis.set_yticks(range(len(truth.programs)), truth.programs)
        axis.set_xlabel('… beside')
        axis.set_ylabel('slowdown of …')
        axis.spines[:].set_visible(False)
        axis.tick_params(length=0)
        return _svg(figure, 'Measured slowdown of each program beside each')
