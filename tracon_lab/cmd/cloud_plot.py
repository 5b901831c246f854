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

"""What was seen of the VMs of ``tracon cloud demo``, as a plot."""

from __future__ import annotations

import math
from typing import Any

import matplotlib.figure

_MEASURED, _OBSERVED, _PREDICTED, _MARK = '#22272e', '#b3261e', '#7fb2e5', '#8a8f98'


def draw(outcome: Any) -> matplotlib.figure.Figure:
    """Return the plot: a panel a VM, slowdown over seconds since the hammering began.

    :param outcome: ``tracon_lab.testcloud.story.Outcome``
    """
    names = list(dict.fromkeys(one.name for one in outcome.sights))
    drawing = matplotlib.figure.Figure(figsize=(4.0 * len(names), 3.4), layout='constrained')
    axes = drawing.subplots(1, len(names), squeeze=False, sharey=True)[0]
    for axis, name in zip(axes, names):
        own = [one for one in outcome.sights if one.name == name]
        after = [one.after for one in own]
        for label, colour, style, values in (
                ('measured in the guest', _MEASURED, 'o-', [one.measured for one in own]),
                ('observed from outside', _OBSERVED, 's-', [one.observed for one in own]),
                ('predicted', _PREDICTED, '^--', [one.predicted for one in own])):
            axis.plot(after, [math.nan if value is None else value for value in values], style,
                      color=colour, label=label, markersize=4, linewidth=1.2)
        axis.axvline(0, color=_MARK, linewidth=0.8)
        if outcome.named_after is not None:
            axis.axvline(outcome.named_after, color=_MARK, linewidth=0.8, linestyle=':',
                         label='culprit named')
        axis.set_title(f'{name} on {own[0].host}', loc='left', fontsize=10, fontweight='bold')
        axis.set_xlabel('seconds since batch began to hammer')
        axis.grid(color='#e6e8eb', linewidth=0.6)
        axis.spines[['top', 'right']].set_visible(False)
    axes[0].set_ylabel('slowdown')
    drawing.legend(*axes[0].get_legend_handles_labels(), loc='outside lower center', ncols=4,
                   fontsize='small', frameon=False)
    return drawing


def draw_hidden(outcome: Any) -> matplotlib.figure.Figure:
    """Return the plot: a panel a host, factors over seconds since the process began.

    :param outcome: ``tracon_lab.testcloud.hidden.Outcome``
    """
    hosts = list(dict.fromkeys(one.host for one in outcome.looks))
    drawing = matplotlib.figure.Figure(figsize=(5.0 * len(hosts), 3.4), layout='constrained')
    axes = drawing.subplots(1, len(hosts), squeeze=False, sharey=True)[0]
    for axis, host in zip(axes, hosts):
        own = [one for one in outcome.looks if one.host == host]
        after = [one.after for one in own]
        for label, colour, style, values in (
                ('sensor, times as long as undisturbed', _MEASURED, 'o-',
                 [one.ratio for one in own]),
                ('its VM: slowdown observed by counters', _OBSERVED, 's-',
                 [one.observed for one in own]),
                ('its VM: slowdown predicted', _PREDICTED, '^--', [one.predicted for one in own])):
            axis.plot(after, [math.nan if value is None else value for value in values], style,
                      color=colour, label=label, markersize=4, linewidth=1.2)
        axis.axvline(0, color=_MARK, linewidth=0.8)
        if outcome.found_after is not None:
            axis.axvline(outcome.found_after, color=_MARK, linewidth=0.8, linestyle=':',
                         label='contention found')
        title = host + (', whose memory is taken' if host == outcome.host else '')
        axis.set_title(title, loc='left', fontsize=10, fontweight='bold')
        axis.set_xlabel('seconds since the process began')
        axis.grid(color='#e6e8eb', linewidth=0.6)
        axis.spines[['top', 'right']].set_visible(False)
    axes[0].set_ylabel('factor')
    drawing.legend(*axes[0].get_legend_handles_labels(), loc='outside lower center', ncols=4,
                   fontsize='small', frameon=False)
    return drawing
