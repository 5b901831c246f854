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
"""The plot of a demonstration: the tail latency over time, an arm below the other."""

from __future__ import annotations

import pathlib
from typing import Mapping

import matplotlib.figure
import numpy as np

from tracon_lab.tenant_demo import experiment

_COLOURS = {'cpu': '#f2b266', 'memory': '#b9a3e3', 'disk': '#7fb2e5', 'network': '#8fcf9f'}


def draw(outcomes: Mapping[str, experiment.Outcome], path: pathlib.Path) -> None:
    """Write the plot of one outcome for each arm as PNG."""
    figure = matplotlib.figure.Figure(figsize=(10, 6), layout='constrained')
    for axes, (arm, outcome) in zip(figure.subplots(len(outcomes), sharey=True),
                                    outcomes.items()):
        for kind, begin, end in outcome.windows:
            if kind != experiment.QUIET:
                axes.axvspan(begin, end, color=_COLOURS[kind], alpha=0.4, label=kind)
        seconds = outcome.sent.astype(int)
        tails = [np.percentile(outcome.taken[seconds == one], 90) * 1e3
                 for one in np.unique(seconds)]
        axes.step(np.unique(seconds), tails, where='post', color='#22272e')
        axes.set(title=arm, ylabel='T90 of a second (ms)', yscale='log')
    axes.set_xlabel('time (s); contention beside one of three workers')
    figure.get_axes()[0].legend(ncols=4, loc='upper left')
    figure.savefig(path, dpi=110)
