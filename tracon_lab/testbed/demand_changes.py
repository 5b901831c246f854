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

"""How soon a VM that does something else is seen to do so, on measured programs beside others.

Each stream of :mod:`.demand` goes on with the windows of another one, of whatever program.
"""

import typing

import numpy as np

from tracon_lab.models import dataset
from tracon_lab.testbed import demand
from tracon_lab.testbed import demand_calibration as learning
from tracon_watcher.contention import calibration as documents
from tracon_watcher.contention import profile_tracker

COLUMNS = ('file', 'host_type', 'polls', 'rises', 'rises_seen', 'falls', 'falls_seen')
#: By what factor a demand has to change to count, and which share of the capacity the larger one
#: has to be.
TIMES, SHARE = 3.0, 0.1
_POLLS = (1, 2, 3)
_BEFORE = 10
_MINUTE = 60.0


def evaluate(datasets: typing.Sequence[dataset.Dataset], seed: int = 1,
             ) -> list[tuple[typing.Any, ...]]:
    """Rows of :data:`COLUMNS`: a file, and polls since the change.

    `rises_seen` is the share of characteristics that rose whose profile has passed half of the new
    demand by then; `falls_seen` of those that fell, to within twice the new demand, or
    :data:`~.demand_calibration.LEAST_SHARE` of the capacity. What is learnt is learnt from all
    programs.
    """
    found = {data.name: learning.cases(data) for data in datasets}
    learnt = learning.learn(learning.join([*found.values()]))
    rows = []
    for data in datasets:
        cases = found[data.name]
        streams = demand.draw(cases, np.random.default_rng(seed)).beside
        if not len(streams):
            continue
        others = streams[np.random.default_rng(seed).permutation(len(streams))]
        before, after = cases.demand[streams[:, 0]], cases.demand[others[:, 0]]
        capacity = cases.capacity[0]
        rose = (after > TIMES * before) & (after > SHARE * capacity)
        fell = (before > TIMES * after) & (before > SHARE * capacity)
        low = 2 * np.maximum(after, learning.LEAST_SHARE * capacity)
        for polls in _POLLS:
            mean = _profiles(cases, np.hstack([streams[:, :_BEFORE], others[:, :polls]]), learnt)
            rows.append((data.name, data.host_type, polls,
                         int(rose.sum()), _share(mean >= after / 2, rose),
                         int(fell.sum()), _share(mean <= low, fell)))
    return rows


def _share(seen: np.ndarray, of: np.ndarray) -> float:
    return float(seen[of].mean()) if of.any() else float('nan')


def _profiles(cases: learning.Cases, rows: np.ndarray,
              learnt: documents.Calibrated) -> np.ndarray:
    """Profiles, (s, 4), after these cases, (s, i), one a minute, with the usual window."""
    state = profile_tracker.ProfileTracker(learnt)
    names = [f'stream {index:05}' for index in range(len(rows))]
    for turn in range(rows.shape[1]):
        begin = np.full(len(rows), (turn + 1) * _MINUTE)
        state.update(names, np.arange(len(rows)), begin, begin + _MINUTE,
                     cases.usage.take(rows[:, turn]), pools=np.zeros(len(rows), np.intp))
    return state.profiles((rows.shape[1] + 1) * _MINUTE).mean
