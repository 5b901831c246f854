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

"""Bars of prediction errors, as in TRACON's Fig. 3."""

import html
import io
import pathlib
from typing import Sequence

import matplotlib.axes
import matplotlib.figure
import numpy as np

from tracon_lab.models import evaluation


def draw(rows: Sequence[evaluation.Row], path: str) -> None:
    """Write a figure: a panel a host type, response and test; heights are means, bars deviations.

    :param path: ends in ``.png``, or in ``.html`` for a page that needs no other file
    :raises OSError: when it cannot be written
    """
    panels = list(dict.fromkeys((row.host_type, row.response, row.tested_on) for row in rows))
    figure = matplotlib.figure.Figure(figsize=(11, 3.2 * max(len(panels), 1)),
                                      layout='constrained')
    axes = np.atleast_1d(figure.subplots(max(len(panels), 1)))
    models = list(dict.fromkeys(row.model for row in rows))
    for axis, panel in zip(axes, panels):
        _panel(axis, panel, models, [row for row in rows if
                                     (row.host_type, row.response, row.tested_on) == panel])
    if path.endswith('.png'):
        figure.savefig(path, dpi=110)
        return
    picture = io.StringIO()
    figure.savefig(picture, format='svg')
    drawing = picture.getvalue()
    title = html.escape('Prediction errors')
    pathlib.Path(path).write_text(
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f'</head><body><h1>{title}</h1>{drawing[drawing.index("<svg"):]}</body></html>\n',
        encoding='utf-8')


def _panel(axis: matplotlib.axes.Axes, panel: tuple[str, str, str], all_models: list[str],
           rows: list[evaluation.Row]) -> None:
    applications = list(dict.fromkeys(row.application for row in rows))
    models = [model for model in all_models if any(row.model == model for row in rows)]
    width = 0.8 / len(models)
    for index, model in enumerate(models):
        own = [row for row in rows if row.model == model]
        places = [applications.index(row.application) + (index - len(models) / 2 + 0.5) * width
                  for row in own]
        means = np.array([row.mean_error for row in own]) * 100
        spread = np.array([row.standard_deviation for row in own]) * 100
        axis.bar(places, means, width, label=model, color=f'C{all_models.index(model)}',
                 yerr=[np.minimum(means, spread), spread], error_kw={'linewidth': 0.7})
    floors = {row.application: row.noise_floor * 100 for row in rows}
    for place, application in enumerate(applications):
        axis.plot([place - 0.4, place + 0.4], [floors[application]] * 2, 'k--', linewidth=1,
                  label='noise floor' if place == 0 else None)
    top = max((row.mean_error for row in rows), default=0.1) * 100
    axis.set_ylim(0, min(1.8 * top, 200))
    axis.set_xticks(range(len(applications)), applications)
    axis.set_ylabel('error in %')
    axis.set_title(', '.join(panel))
    axis.legend(fontsize='small', ncols=len(models) + 1, loc='upper left')
