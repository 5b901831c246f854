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

"""Arms against each other: paired differences over seeds, with confidence intervals."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Mapping, Sequence

import numpy as np

from tracon_lab.demo import arms
from tracon_lab.demo import outcome

CONFIDENCE = 0.95


@dataclasses.dataclass(frozen=True)
class Difference:
    """The mean of paired differences, an arm's value minus stock's, and its interval.

    :param low: lower end of the interval; NaN when there are fewer than two pairs
    """

    mean: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """Say whether less is what is seen; less is better in all that is compared here."""
        if math.isnan(self.low):
            return 'one seed: no interval'
        if self.high < 0:
            return 'better'
        if self.low > 0:
            return 'WORSE'
        return 'no difference seen'


def paired(differences: Sequence[float], confidence: float = CONFIDENCE) -> Difference:
    """Return mean and Student's t interval of differences that are paired by seed.

    :param differences: (n,) one a seed, NaN where a seed has none
    """
    values = np.array(differences, dtype=np.float64)
    values = values[np.isfinite(values)]
    count = len(values)
    if not count:
        return Difference(math.nan, math.nan, math.nan)
    mean = float(values.mean())
    if count == 1:
        return Difference(mean, math.nan, math.nan)
    from scipy import stats
    half = float(stats.t.ppf(0.5 + confidence / 2, count - 1) * values.std(ddof=1)
                 / math.sqrt(count))
    return Difference(mean, mean - half, mean + half)


@dataclasses.dataclass(frozen=True)
class Row:
    """One arm over all seeds: means over seeds, and the worst slowdown of all.

    :param refused: VMs for which no host was left
    :param hosts_refused: hosts that were refused to VMs, placed elsewhere or not
    :param score: of all VMs that the arm has placed
    :param slowdown: difference to stock in mean slowdown of the VMs placed in both
    :param log_slowdown: the same of the mean log slowdown: the ratio of the geometric means
    :param breaches: difference to stock in VMs in breach among those placed in both
    """

    arm: str
    seeds: int
    placed: float
    refused: float
    hosts_refused: float
    mean_slowdown: float
    geometric_mean: float
    worst_slowdown: float
    limited: float
    in_breach: float
    slowdown: Difference | None = None
    log_slowdown: Difference | None = None
    breaches: Difference | None = None


@dataclasses.dataclass(frozen=True)
class Repair:
    """What audits did after a VM changed its behaviour: means over seeds.

    VMs in breach and mean slowdowns are measured: before the change, during it (which is also the
    outcome of doing nothing), after all audits, and in the best assignment that an oracle finds.

    :param seeds: with audits
    :param healed: seeds in which the neighbour of the VM that changed is as fast as before the
        change again, and not in breach
    :param put_in_breach: seeds in which the change puts that neighbour in breach of its limit
    :param released: of these, in which it is not in breach after the audits
    :param quiet: seeds in which the last audit recommended nothing more
    :param migrations: that the audits recommended and carried out
    :param oracle_migrations: that the oracle's best assignment takes
    :param audits: until quiet, the last one without a recommendation
    :param vms: that run
    :param not_healed: by seed, the slowdown after the audits of a neighbour that is not healed
    """

    seeds: int
    healed: int
    put_in_breach: int
    released: int
    quiet: int
    audits: float
    migrations: float
    oracle_migrations: float
    vms: float
    breaches: dict[str, float]
    slowdowns: dict[str, float]
    not_healed: dict[int, float]


#: States of an audited cloud, in the order in which they are told.
STATES = ('before', 'during', 'after', 'oracle')


def repair(results: Mapping[int, Mapping[str, Mapping[str, Any]]], arm: str) -> Repair | None:
    """Sum up the audits after the change of behaviour; None where there were none.

    :param results: by seed and arm
    :param arm: the one that audits follow
    """
    found = {seed: one[arm]['audit'] for seed, one in results.items()
             if one.get(arm, {}).get('audit')}
    if not found:
        return None
    audits = list(found.values())
    scores = {name: [outcome.score(one[name]) for one in audits] for name in STATES}
    neighbours = {seed: {name: next(vm for vm in one[name]
                                    if vm['name'] == one['changed']['neighbour'])
                         for name in STATES} for seed, one in found.items()}
    hit = [one for one in neighbours.values()
           if one['during']['in_breach'] and not one['before']['in_breach']]
    return Repair(
        len(audits), sum(one['healed'] for one in audits), len(hit),
        sum(not one['after']['in_breach'] for one in hit), sum(one['quiet'] for one in audits),
        _mean([len(one['audits']) for one in audits]),
        _mean([len(one['moves']) for one in audits]),
        _mean([one['oracle_migrations'] for one in audits]),
        _mean([one.vms for one in scores['before']]),
        {name: _mean([one.in_breach for one in scores[name]]) for name in STATES},
        {name: _mean([one.mean_slowdown for one in scores[name]]) for name in STATES},
        {seed: neighbours[seed]['after']['slowdown'] for seed, one in found.items()
         if not one['healed']})


def rows(results: Mapping[int, Mapping[str, Mapping[str, Any]]]) -> list[Row]:
    """Compare the arms.

    A VM counts in a difference only where both arms have placed it. What its neighbour does to it
    counts in each arm as it is, also where the neighbour was refused in the other.

    :param results: by seed and arm, results of :func:`arms.run` with judged ``vms``
    """
    return [_row(name, [seed[name] for seed in results.values() if name in seed],
                 [(seed[name], seed[arms.STOCK]) for seed in results.values()
                  if name in seed and arms.STOCK in seed])
            for name in arms.ARMS if any(name in seed for seed in results.values())]


def _row(name: str, own: Sequence[Mapping[str, Any]],
         pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> Row:
    scores = [outcome.score(one['vms']) for one in own]
    refused = [one['requests'] - len(one['vms']) for one in own]
    hosts = [sum(refusal['breached'] for refusal in one['refusals']
                 if refusal['outcome'] == 'refused') for one in own]
    row = Row(name, len(own), _mean([one.vms for one in scores]), _mean(refused), _mean(hosts),
              _mean([one.mean_slowdown for one in scores]),
              math.exp(_mean([math.log(one.geometric_mean) for one in scores])),
              max(one.worst_slowdown for one in scores), _mean([one.limited for one in scores]),
              _mean([one.in_breach for one in scores]))
    if name == arms.STOCK or not pairs:
        return row
    both = []
    for mine, stock in pairs:
        common = {vm['name'] for vm in mine['vms']} & {vm['name'] for vm in stock['vms']}
        both.append((outcome.score(mine['vms'], common), outcome.score(stock['vms'], common)))
    return dataclasses.replace(
        row, slowdown=paired([a.mean_slowdown - b.mean_slowdown for a, b in both]),
        log_slowdown=paired([math.log(a.geometric_mean / b.geometric_mean) for a, b in both]),
        breaches=paired([a.in_breach - b.in_breach for a, b in both]))


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else math.nan
