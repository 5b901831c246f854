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

"""Measured responses against a steady baseline, instead of against the nearest window alone.

A window alone is as noisy as any other, and each point divided by one takes over its noise. A
program does the same work all day, though; what changes is the machine, and the canary tells how
fast that was. So every time is brought to the machine's usual speed as far as it was spent on a
core, and the baseline is the median over all windows of the program alone.
"""

from __future__ import annotations

import dataclasses
import warnings

import numpy as np

from tracon_lab.models import dataset
from tracon_lab.models import points as measured
from tracon_watcher.characteristics import BoolArray
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import NAMES

_NEEDED = {'canary_during', 'time_per_unit', 'iops', 'target_vcpu_delay'}


def steady(data: dataset.Dataset) -> measured.Points:
    """Return the points of a file with responses and profiles against steady baselines.

    What was not measured by the testbed, and lacks times of units, stays as the file has it.

    :raises tracon_watcher.errors.InvalidDocument: for a file that lacks what models learn from
    """
    points = data.points
    if not _NEEDED <= set(data.numbers):
        return points
    alone = (points.kind == 'solo') & np.isfinite(data.numbers['time_per_unit'])
    seconds = _at_usual_speed(data, alone)
    operations = data.numbers['iops'] * data.numbers['time_per_unit'] / seconds
    slowdown, ratio = np.copy(points.slowdown), np.copy(points.iops_ratio)
    target, background = np.copy(points.target_alone), np.copy(points.background_alone)
    observed = np.column_stack([data.numbers[f'target_observed_{name}'] for name in NAMES])
    for name in np.unique(points.target[alone]):
        windows = alone & (points.target == name)
        own = (points.target == name) & np.isfinite(seconds)
        slowdown[own] = seconds[own] / _usual(seconds[windows])
        # Undefined stays undefined: too few requests alone make no ratio.
        usual = _usual(operations[windows])
        defined = own & np.isfinite(ratio) & (usual > 0)
        ratio[defined] = operations[defined] / usual
        profile = _usual(observed[windows])
        target[points.target == name] = profile
        background[points.background == name] = profile
    return dataclasses.replace(points, slowdown=slowdown, iops_ratio=ratio, target_alone=target,
                               background_alone=background)


def _usual(values: FloatArray) -> FloatArray:
    """Return the median over windows, the first axis, of what was measured; NaN for nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', RuntimeWarning)         # of columns that are all NaN
        return np.asarray(np.nanmedian(values, axis=0))


def _at_usual_speed(data: dataset.Dataset, alone: BoolArray) -> FloatArray:
    """Return what each unit would have taken on a core of the usual speed, seconds (n,)."""
    canary = data.numbers['canary_during']
    slower = canary / _usual(canary[alone])
    slower = np.where(np.isfinite(slower) & (slower > 0), slower, 1.0)
    # Running, and waiting behind others that run: both take as long as the core is slow.
    share = np.clip(data.numbers['target_observed_guest_cpu']
                    + np.nan_to_num(data.numbers['target_vcpu_delay']), 0.0, 1.0)
    seconds: FloatArray = data.numbers['time_per_unit'] * (1 - share * (1 - 1 / slower))
    return seconds
