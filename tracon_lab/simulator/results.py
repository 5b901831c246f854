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

"""From runs to rows: each scheduler beside FIFO and the optimum, as means over the runs.

One FIFO is the baseline of all ratios, named beforehand: to take the better of several after the
runs would favour it by chance. It spreads VMs over the hosts, as Nova's weighers do by default.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Callable, Iterable, Sequence

import numpy as np
import scipy.stats

from tracon_lab.scheduling import objective as objectives
from tracon_lab.simulator import experiment

BASELINE = 'FIFO-spread'
#: Of the interval of a mean.
CONFIDENCE = 0.95


@dataclasses.dataclass(frozen=True)
class Row:
    """What a scheduler does in one setting; NaN is undefined. Ratios are against :data:`BASELINE`.

    :param rate: λ, tasks a minute
    :param load: ρ
    :param speedup: RT_FIFO / RT_S (Chiang & Huang, TRACON, SC'11, eq. 5)
    :param io_boost: IOPS_S / IOPS_FIFO (eq. 6)
    :param throughput: T_S / T_FIFO
    :param distance: to the optimum, as a share of it: static, by how much the objective is worse;
        dynamic, how much less is completed than is possible at most. Below saturation all counts
        the same; above, each class by its price in the optimum, so that leaving out what is hard
        to place gains nothing
    :param interval: half the width of the 95 % confidence interval of the mean (Student's t) of
        speedup (static, RT), io_boost (static, IO) or throughput (dynamic), over the runs' ratios
        to the baseline's run of the same seed; NaN for a single run
    :param ceiling: the same ratio for the optimum that ``distance`` refers to
    :param deviation: standard deviation of the same over the runs; NaN for a single run
    :param occupied: mean share of the slots in which a task runs
    :param event_cost: seconds of computing for each event
    :param per_minute: tasks that are completed
    :param runtime: mean seconds from start to end of a task
    :param waited: mean seconds before the start
    """

    scheduler: str
    machines: int
    mix: str
    objective: str
    rate: float
    load: float
    speedup: float
    io_boost: float
    throughput: float
    interval: float
    distance: float
    ceiling: float
    occupied: float
    scheduling: float
    deviation: float
    runs: int
    per_minute: float
    runtime: float
    waited: float
    overtaken: int
    migrations: int
    sigma: float
    model: str
    host_type: str
    event_cost: float


def rows(found: Iterable[experiment.Result]) -> list[Row]:
    """Gather runs that differ by nothing but their seed, in the order in which they come."""
    settings: dict[experiment.Case, dict[str, list[experiment.Result]]] = {}
    for one in found:
        setting = dataclasses.replace(one.case, scheduler='', seed=0)
        settings.setdefault(setting, {}).setdefault(one.case.scheduler, []).append(one)
    return [_row(name, runs, by_name.get(BASELINE, ())) for by_name in settings.values()
            for name, runs in by_name.items()]


def _static(one: experiment.Result) -> bool:
    return math.isnan(one.most)


def _row(name: str, runs: Sequence[experiment.Result],
         baseline: Sequence[experiment.Result]) -> Row:
    case, first = runs[0].case, runs[0]
    speedup = _ratios(baseline, runs, lambda base, own: _over(base.runtime, own.runtime))
    boost = _ratios(baseline, runs, lambda base, own: _over(own.iops, base.iops))
    tasks = _ratios(baseline, runs, lambda base, own: _over(own.tasks, base.tasks))
    static = _static(first)
    if static:
        shown = speedup if case.objective == objectives.RT else boost
        ceiling = _ratios(baseline, runs, lambda base, own: _over(
            base.runtime, own.best_runtime) if case.objective == objectives.RT
            else _over(own.best_iops, base.iops))
        distance = [_over(one.runtime, one.best_runtime) - 1 if case.objective == objectives.RT
                    else 1 - _over(one.iops, one.best_iops) for one in runs]
        runtime = _mean([_over(one.runtime, one.tasks) for one in runs])
        per_minute = math.nan
    else:
        shown = tasks
        ceiling = _ratios(baseline, runs, lambda base, own: _over(own.most, base.tasks))
        distance = [1 - _over(one.valued, one.most) for one in runs]
        runtime = _mean([one.runtime for one in runs])
        per_minute = (math.nan if case.trace else
                      _mean([one.tasks / case.hours / 60 for one in runs]))
    return Row(name, case.machines, case.mix, case.objective,
               math.nan if static or case.trace else case.rate, first.load, _mean(speedup),
               _mean(boost), math.nan if static else _mean(tasks), interval(shown),
               _mean(distance), _mean(ceiling), _mean([one.occupied for one in runs]),
               _mean([one.scheduling for one in runs]),
               float(np.std(shown, ddof=1)) if len(shown) > 1 else math.nan, len(runs),
               per_minute, runtime, _mean([one.waited for one in runs]),
               max(one.overtaken for one in runs), sum(one.migrations for one in runs),
               case.sigma, case.setup.model, ' and '.join(case.setup.host_types),
               _mean([one.elapsed / one.events for one in runs if one.events]))


def interval(values: Sequence[float]) -> float:
    """Return half of Student's interval of the mean of independent values; NaN of fewer than two.
    """
    if len(values) < 2:
        return math.nan
    quantile = float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, len(values) - 1))
    return quantile * float(np.std(values, ddof=1)) / math.sqrt(len(values))


def _ratios(baseline: Sequence[experiment.Result], runs: Sequence[experiment.Result],
            ratio: Callable[[experiment.Result, experiment.Result], float]) -> list[float]:
    of_seed = {one.case.seed: one for one in baseline}
    found = [ratio(of_seed[one.case.seed], one) for one in runs if one.case.seed in of_seed]
    return [one for one in found if not math.isnan(one)]


def _over(one: float, other: float) -> float:
    """Divide, NaN where that is undefined."""
    return one / other if other else math.nan


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return float(np.mean(known)) if known else math.nan
