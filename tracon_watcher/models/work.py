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


"""How much CPU time a unit of work takes beside another program, over what it takes alone.

Who gets half of a core takes twice as long; whether the same work also needs more of the core than
alone, as it would where another program displaces what its caches hold, is in none of the
characteristics that models learn from. It is looked at here; nothing is fitted to it.
"""

from __future__ import annotations

from typing import Any
from typing import Iterable

import numpy as np

from tracon_watcher.characteristics import NAMES
from tracon_watcher.models import baseline
from tracon_watcher.models import dataset
from tracon_watcher.models import naming

COLUMNS = ('host_type', 'file', 'beside', 'points', 'slowdown', 'cpu_per_unit',
           'cpu_per_unit_low', 'cpu_per_unit_high')
#: Of a core, alone: what programs that do less compute may be something else than their units.
BUSY = 0.5
_BESIDE = {'generator': 'background', 'program': 'pair'}
_CPU = [NAMES.index('guest_cpu'), NAMES.index('host_cpu')]
_QUARTILES = (0.25, 0.5, 0.75)


def work(datasets: Iterable[dataset.Dataset]) -> list[tuple[Any, ...]]:
    """Return a row of :data:`COLUMNS` for each file and sort of neighbour.

    Of targets that use more than :data:`BUSY` of a core alone: medians of the slowdown and of the
    CPU time per unit over that alone, and its quartiles. That ratio is (slowdown × CPU beside) /
    CPU alone, with guest and host CPU in cores. Targets without a slowdown say nothing.
    """
    rows: list[tuple[Any, ...]] = []
    for one in datasets:
        points = baseline.steady(one)
        alone = points.target_alone[:, _CPU].sum(axis=1)
        beside = (one.numbers['target_observed_guest_cpu']
                  + one.numbers['target_observed_host_cpu'])
        # A unit takes `slowdown` times as long, at this share of the CPU instead of that.
        ratio = np.divide(points.slowdown * beside, alone, out=np.full(len(alone), np.nan),
                          where=alone > BUSY)
        ratio[naming.generated(points.target)] = np.nan
        for sort, kind in _BESIDE.items():
            chosen = (points.kind == kind) & np.isfinite(ratio)
            if chosen.any():
                low, middle, high = np.quantile(ratio[chosen], _QUARTILES)
                rows.append((one.host_type, one.name, sort, int(chosen.sum()),
                             float(np.median(points.slowdown[chosen])), float(middle),
                             float(low), float(high)))
    return rows
