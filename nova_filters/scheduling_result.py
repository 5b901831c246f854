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

"""Result of one assessment: which hosts pass, their weights, and the log record of refusals."""

from __future__ import annotations

import dataclasses
import itertools
import json
import threading
from typing import Any
import weakref

import numpy as np

from nova_filters import policy as policies
from nova_filters import reassessment
from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray
from tracon_watcher.placement import assessment
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher import tie_breaking

WORST = 10


def refusal_content(judged: SchedulingResult, hosts: BoolArray, outcome: str,
                    flavor: limits_module.Limits = limits_module.NONE) -> dict[str, Any]:
    """Return what there is to say of the hosts of a judgement on which a limit is breached.

    :param hosts: (n,) which of the request's hosts it is about
    :param outcome: what came of it
    :param flavor: limits that the newcomer's flavor states
    """
    found = judged.assessment
    assert found is not None
    positions = np.flatnonzero(hosts)
    rows = judged.rows[positions]
    worst = []
    for place in _largest(found.overshoot[rows]):
        breach = found.breach(int(rows[place]))
        position = positions[place]
        state = judged.states[position]
        # The snapshot does not say where a resident's limit is stated.
        limit_aggregates = (
            policies.limit_aggregates(state.aggregates, breach.response, flavor)
            if breach.vm == assessment.NEWCOMER else None)
        worst.append({'host': state.host, 'vm': breach.vm,
                      'response': breach.response, 'predicted_bound': round(breach.bound, 4),
                      'limit': round(breach.limit, 4), 'limit_aggregates': limit_aggregates,
                      'mode_aggregates': policies.mode_aggregates(
                          state.aggregates, judged.modes[position])})
    known = judged.rows >= 0
    status = np.full(len(judged.rows), int(assessment.Status.UNKNOWN_HOST))
    status[known] = found.status[judged.rows[known]]
    unknown = {assessment.Status(value).name.lower(): int(count) for value, count in zip(
        *np.unique(status[status != assessment.Status.KNOWN], return_counts=True))}
    return {'instance': judged.uuid, 'outcome': outcome, 'hosts': len(judged.states),
            'breached': len(positions), 'reasons': found.reasons(rows), 'unknown': unknown,
            'expected_from': found.newcomer.source, 'snapshot': found.cluster.version,
            'worst': worst}


def _largest(values: FloatArray) -> IntArray:
    """Return where the largest :data:`WORST` of some values are, of equals the first."""
    places = np.arange(len(values))
    if len(values) > WORST:
        least = np.partition(values, -WORST)[-WORST]
        places = np.flatnonzero(~tie_breaking.less(values, least))
    return places[tie_breaking.argsort(-values[places])[:WORST]]


def refusal_text(said: dict[str, Any]) -> str:
    """Return the record: a sentence, then the same as JSON."""
    first = said['worst'][0]
    reasons = ', '.join(f'{reason}: {count}' for reason, count in said['reasons'].items())
    return (f'Interference of instance {said["instance"]}: {said["outcome"]}, '
            f'{said["breached"]} of {said["hosts"]} hosts ({reasons}); worst on {first["host"]}, '
            f'{first["vm"]}: {first["response"]} {first["predicted_bound"]:g} beyond its limit '
            f'{first["limit"]:g} {json.dumps(said, sort_keys=True)}')


#: By this factor the weights are multiplied when every host would be refused and the least harm
#: must decide. Nova's penalties of a million, for failed builds and foreign cells, stay larger.
DECISIVE = 1000.0
#: Harm that halves what little harm weighs: some VMs made twice as slow. With much less, hosts
#: that are full already would hardly differ any more, and a burst would not spread over them.
HALVING = 3.0
_DECIMALS = 6


def as_weighed(weights: FloatArray) -> FloatArray:
    """Return weights as Nova is told them: hosts that differ by rounding alone are equal to it."""
    return np.round(weights, _DECIMALS)


@dataclasses.dataclass(frozen=True)
class AssessmentInputs:
    """The inputs of one assessment of a request.

    :param at: seconds since the epoch
    :param snapshot: epoch and version
    :param part: hosts that differed from the snapshot, None where none did
    :param pool: see :meth:`tracon_watcher.placement.assessment.Assessor.assess`
    :param background: whether the newcomer is background work
    :param multiplier: of this extension's weigher
    """

    at: float
    snapshot: tuple[int, int]
    newcomer: newcomer_profiles.Profile
    assessor: assessment.Assessor
    part: reassessment.Reassessment | None
    pool: int
    background: bool
    multiplier: float


@dataclasses.dataclass
class SchedulingResult:
    """The judgement of one instance's placement on the n hosts of a request.

    :param states: HostStates
    :param rows: (n,) index of each in the assessment's cluster, -1 where it is not there
    :param modes: (n,) :class:`~nova_filters.policy.Mode`
    :param assessment: by which hosts are refused; None when nothing is known of the newcomer
    :param foreseen: by which hosts are weighed: the same, with the VMs of requests whose host is
        not known yet on those that they will most likely take. No host is refused for these.
    :param exempt: whether the request is a move or names its host, and is never refused
    :param alternates: whether the instance has its host, so that Nova asks once more only for
        where else it could be built: of such a request nothing is recorded
    :param other_weights: (n,) sums of what other weighers gave, NaN where they are not known
    """

    uuid: str
    states: list
    rows: IntArray
    modes: IntArray
    assessment: assessment.Assessment | None
    foreseen: assessment.Assessment | None
    exempt: bool
    least_harm: bool
    inputs: AssessmentInputs | None = None
    alternates: bool = False
    other_weights: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(0))
    _left: tuple[list, IntArray] | None = None

    def __post_init__(self) -> None:
        if not len(self.other_weights):
            self.other_weights = np.full(len(self.rows), np.nan)

    def breached(self) -> BoolArray:
        """Say on which hosts a limit would be breached, (n,)."""
        return self._breached(self.assessment)

    def _breached(self, by: assessment.Assessment | None) -> BoolArray:
        breached = np.zeros(len(self.states), dtype=bool)
        if by is not None:
            known = self.rows >= 0
            breached[known] = by.refused[self.rows[known]]
        return breached

    def refused(self) -> BoolArray:
        """Say which hosts the filter takes out, (n,), before ``on_all_refused`` is applied."""
        if self.exempt:
            return np.zeros(len(self.states), dtype=bool)
        return np.asarray(self.breached() & (self.modes == policies.Mode.ENFORCE))

    def taken_out(self) -> BoolArray:
        """Say the same, (n,), after it is applied."""
        if self.least_harm and self.all_refused:
            return np.zeros(len(self.states), dtype=bool)
        return self.refused()

    @property
    def all_refused(self) -> bool:
        """Whether no host would be left."""
        return bool(len(self.states)) and bool(self.refused().all())

    def harm(self) -> FloatArray | None:
        """Return the harm by which hosts are ranked, (n,); None when none is known.

        Where it is unknown, the median of the request's known hosts.
        """
        if self.foreseen is None:
            return None
        known = self.rows >= 0
        among = self.rows[known]
        if np.isnan(self.foreseen.score[among]).all():
            return None
        if known.all():
            return self.foreseen.ranked(among)
        harm = np.empty(len(self.rows))
        harm[known] = self.foreseen.ranked(among)
        harm[~known] = self.foreseen.typical(among)
        return harm

    def weights(self) -> FloatArray:
        """Return weights, (n,), from 0 to 1: half for breaching no limit, half for little harm.

        The scale is fixed, so that a difference weighs the same in each request. Hosts whose mode
        is less than ``weigh`` have the median weight of the others; when there are none, and when
        nothing is known, all have 0, which changes no order.
        """
        harm = self.harm()
        judged = self.modes >= policies.Mode.WEIGH
        if harm is None or not judged.any():
            return np.zeros(len(self.states))
        little = 1.0 / (1.0 + np.maximum(harm, 0.0) / HALVING)
        weights = (self._within_limits() + little) / 2
        if not judged.all():
            weights[~judged] = np.median(weights[judged])
        if self.least_harm and self.all_refused:
            return np.asarray(weights * DECISIVE)
        return np.asarray(np.clip(weights, 0.0, 1.0))

    def _within_limits(self) -> FloatArray:
        """Return 1 for hosts on which no limit would be breached and 0 for the others, (n,).

        Where it is unknown, the median of the request's known hosts.
        """
        assert self.foreseen is not None
        within = 1.0 - self._breached(self.foreseen)
        known = self.rows >= 0
        known[known] = self.foreseen.known[self.rows[known]]
        if not known.all():
            within[~known] = np.median(within[known])
        return within

    def without(self, hosts: BoolArray) -> list:
        """Return the HostStates without these, (n,)."""
        left = ~hosts
        self._left = (list(itertools.compress(self.states, left.tolist())), np.flatnonzero(left))
        return self._left[0]

    def favourite(self, states: list, weights: list[float]) -> int | None:
        """Return the position of the host that wins if other weighers do not decide.

        :param states: and weights, as for and from :meth:`weights_of`
        :returns: None when no host was weighed
        """
        if not any(weights):
            return None
        place = weights.index(max(weights))     # of equals Nova takes the first
        if self._left is not None and states == self._left[0]:
            return int(self._left[1][place])
        return place if states == self.states else None

    def positions(self, states: list) -> IntArray | slice:
        """Return the positions of those HostStates that the filters have left, in their order."""
        if self._left is not None and states == self._left[0]:
            return self._left[1]
        if states == self.states:
            return slice(None)
        place = {id(state): index for index, state in enumerate(self.states)}
        return np.array([place[id(state)] for state in states], dtype=np.intp)

    def weights_of(self, states: list) -> list[float]:
        """Return the weights of those HostStates that the filters have left, in their order."""
        # Noise shall not rank; and Nova prints each weight, which is faster for short numbers.
        result: list[float] = as_weighed(self.weights())[self.positions(states)].tolist()
        return result


class SchedulingResultCache:
    """Results that the filter hands to the weigher, which Nova calls next with the same request.

    RequestSpecs are told apart by identity; a reference that has died marks what can be forgotten.
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref, SchedulingResult]] = {}
        self._lock = threading.Lock()

    def keep(self, spec, judged: SchedulingResult) -> None:
        """Keep the result of a RequestSpec until it is taken, or the spec is gone."""
        with self._lock:
            for key in [key for key, (ref, _judged) in self._kept.items() if ref() is None]:
                del self._kept[key]
            self._kept[id(spec)] = (weakref.ref(spec), judged)

    def take(self, spec) -> SchedulingResult | None:
        """Return it, once: Nova filters and weighs again for each instance of a request."""
        with self._lock:
            ref, judged = self._kept.pop(id(spec), (None, None))
        return judged if ref is not None and ref() is spec else None
