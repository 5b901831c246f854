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
"""A file of measurements in a few numbers: points, slowdowns, how they scatter."""

import typing

import numpy as np

from tracon_lab.models import dataset
from tracon_lab.models import naming
from tracon_lab.testbed import application_plans
from tracon_lab.testbed import host_types

COLUMNS = ('Kind', 'Target', 'Points', 'Slowdown median', 'Slowdown max', 'IOPS ratio median',
           'Spread')


def spread(data: dataset.Dataset) -> dict[str, float]:
    """How each repeated point scatters: standard deviation of its slowdown over its mean.

    :returns: point → coefficient of variation, for points repeated at least three times
    """
    repeated = data.text['kind'] == 'repeat'
    found = {}
    for point in np.unique(data.text['point'][repeated]):
        slowdown = data.numbers['slowdown'][repeated & (data.text['point'] == point)]
        if len(slowdown) >= 3:
            found[str(point)] = float(slowdown.std(ddof=1) / slowdown.mean())
    return found


def of_plan(data: dataset.Dataset) -> tuple[int, int] | None:
    """How many points of its plan a file holds, and how many the plan has.

    :returns: None for a file of no plan of this lab
    """
    plan, seed = data.header.get('plan'), data.header.get('seed', '')
    if (plan not in application_plans.PLANS or data.host_type not in host_types.HOST_TYPES
            or not seed.isdecimal()):
        return None
    keys = {window.key for window in application_plans.planned(
        plan, host_types.named(data.host_type), int(seed)).windows}
    done = set(zip(data.text['point'].tolist(), data.numbers['repetition'].astype(int).tolist()))
    return len(keys & done), len(keys)


def solo_spread(data: dataset.Dataset, name: str) -> float:
    """Standard deviation over mean of a program's time per unit alone; NaN if measured once."""
    chosen = (data.text['kind'] == 'solo') & (data.text['target'] == name)
    if 'time_per_unit' not in data.numbers:
        return float('nan')
    times = data.numbers['time_per_unit'][chosen]
    return float(times.std(ddof=1) / times.mean()) if len(times) > 1 else float('nan')


def summarise(data: dataset.Dataset) -> list[tuple[typing.Any, ...]]:
    """Rows of :data:`COLUMNS`; generator settings are one line a kind.

    The spread of a solo line is that of the time per unit alone, of a repeat line the mean of
    its repeated points' slowdowns.
    """
    spreads = spread(data)
    generated = naming.generated(data.text['target'])
    names = np.where(generated, 'generator', data.text['target'])
    result: list[tuple[typing.Any, ...]] = []
    for kind in dataset.KINDS:
        for name in np.unique(names[data.text['kind'] == kind]):
            chosen = (data.text['kind'] == kind) & (names == name)
            slowdown = data.numbers['slowdown'][chosen]
            ratio = data.numbers['iops_ratio'][chosen]
            ratio = ratio[np.isfinite(ratio)]
            scatter = float('nan')
            if kind == 'solo' and name != 'generator':
                scatter = solo_spread(data, str(name))
            elif kind == 'repeat':
                of_name = [spreads[point] for point in np.unique(data.text['point'][chosen])
                           if point in spreads]
                scatter = float(np.mean(of_name)) if of_name else scatter
            result.append((
                kind, str(name), int(chosen.sum()), _rounded(np.median(slowdown)),
                _rounded(slowdown.max()), _rounded(np.median(ratio)) if len(ratio) else None,
                _rounded(scatter)))
    return result


def _rounded(value: typing.Any) -> float | None:
    return None if np.isnan(value) else round(float(value), 3)
