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

"""The report's figures, as SVG that stands inside a page."""

import io
import typing

import matplotlib
import matplotlib.figure
import numpy as np

from tracon_lab.models import evaluation

INK, FAINT = '#22272e', '#c9ced6'
COLOURS = {'WMM': '#8a8f98', 'LM': '#c9ced6', 'NLM': '#f2b266', 'NLM without host CPU': '#d9741a'}
# Names that have room below an axis.
_SIDE_BY_SIDE = 11
STYLE = {'font.size': 9, 'axes.edgecolor': FAINT, 'axes.labelcolor': INK, 'text.color': INK,
         'xtick.color': INK, 'ytick.color': INK, 'axes.spines.top': False,
         'axes.spines.right': False, 'axes.titlesize': 10, 'axes.titleweight': 'bold',
         'axes.titlelocation': 'left', 'svg.hashsalt': 'tracon'}


def _drawn(figure: matplotlib.figure.Figure, said: str) -> str:
    """The drawing, with `said` as what a screen reader reads out."""
    text = io.StringIO()
    figure.savefig(text, format='svg', metadata={'Date': None})
    drawing = text.getvalue()
    return drawing[drawing.index('<svg'):].replace(
        '<svg', '<svg role="img" aria-label="%s"' % said, 1)


def _figure(width: float, height: float) -> matplotlib.figure.Figure:
    return matplotlib.figure.Figure(figsize=(width, height), layout='constrained')


def errors(rows: typing.Sequence[evaluation.Row], title: str) -> str:
    """Fig. 3: mean error of each model for each application, with standard deviations.

    :param rows: of one host type, response and test
    """
    names = list(dict.fromkeys(row.application for row in rows))
    models = [name for name in COLOURS if any(row.model == name for row in rows)]
    with matplotlib.rc_context(STYLE):
        figure = _figure(9.6, 2.7)
        axis = figure.subplots()
        width = 0.8 / max(len(models), 1)
        for index, model in enumerate(models):
            own = {row.application: row for row in rows if row.model == model}
            places = [n + (index - len(models) / 2 + 0.5) * width
                      for n, name in enumerate(names) if name in own]
            means = np.array([100 * own[name].mean_error for name in names if name in own])
            spread = np.array([100 * own[name].standard_deviation for name in names
                               if name in own])
            axis.bar(places, means, 0.92 * width, color=COLOURS[model], label=model,
                     yerr=[np.minimum(means, spread), spread],
                     error_kw={'linewidth': 0.6, 'ecolor': INK})
        for place, name in enumerate(names):
            floor = next(100 * row.noise_floor for row in rows if row.application == name)
            axis.plot([place - 0.42, place + 0.42], [floor] * 2, '--', color=INK, linewidth=1,
                      label='noise floor' if place == 0 else None)
        top = max([row.mean_error for row in rows] + [0.1]) * 100
        axis.set_ylim(0, min(1.7 * top, 150))
        _name(axis, names)
        axis.set_ylabel('error in %')
        axis.set_title(title)
        axis.legend(fontsize='small', ncols=len(models) + 1, loc='upper left', frameon=False)
        return _drawn(figure, 'Bars of mean prediction errors by application and model')


def _name(axis: typing.Any, names: typing.Sequence[str]) -> None:
    """Write names below the axis, aslant where there are too many to stand side by side."""
    slant = {'rotation': 25, 'ha': 'right'} if len(names) > _SIDE_BY_SIDE else {}
    axis.set_xticks(range(len(names)), names, **slant)


def adaptation(series: typing.Mapping[str, np.ndarray], moved: int,
               alarm: int | None, settled: float, title: str, window: int = 20) -> str:
    """Fig. 7: the error of each policy, a running mean over some points, through the move.

    :param moved: point at which the storage changed
    :param alarm: at which drift was noticed, None for never
    :param settled: error of a model of the new storage
    """
    with matplotlib.rc_context(STYLE):
        figure = _figure(9.6, 3.0)
        axis = figure.subplots()
        colours = ['#8a8f98', '#2f6fb3']
        top = 0.0
        for colour, (name, values) in zip(colours, series.items()):
            mean = np.convolve(values, np.ones(window) / window, 'valid') * 100
            axis.plot(np.arange(len(mean)) + window - 1 - moved, mean, color=colour, label=name)
            top = max(top, float(mean.max()))
        if alarm is not None:
            axis.axvline(alarm - moved, color=INK, linewidth=1, linestyle=':')
        axis.axvline(0, color=INK, linewidth=1)
        axis.axhline(100 * settled, color='#5aa469', linewidth=1, linestyle='--',
                     label='model of the new storage')
        axis.set_xlabel('points since the storage changed (dotted: drift noticed)')
        axis.set_ylabel('error in %%, mean of %d' % window)
        axis.set_ylim(0, 1.1 * top)
        axis.set_title(title)
        axis.legend(fontsize='small', ncols=4, loc='upper left', frameon=False)
        return _drawn(figure, 'Prediction error before and after the storage changed')
