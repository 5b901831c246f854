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

"""The document of one decision: what was predicted for whom on which host, and what came of it.

It is made in the background of what a request leaves behind (:class:`Captured`): no HostStates,
of which a request has its own thousands.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from nova_filters import judgement as judgements
from nova_filters import overlay
from nova_filters import policy as policies
from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray, RESPONSES
from tracon_watcher.placement import assessment
from tracon_watcher.placement import encounter
from tracon_watcher.placement import newcomer as newcomers
from tracon_watcher.placement import verdict
from tracon_watcher import tie_breaking

SCHEMA = 'tracon-decision/1'
SETTLED = 'tracon-decision-settled/1'
#: Hosts of a document at most: so many of the best, and so many of the worst that were refused.
HOSTS = 25
_DIGITS = 6


@dataclasses.dataclass(frozen=True)
class Circumstances:
    """What a judgement was made of.

    :param at: seconds since the epoch
    :param snapshot: epoch and version
    :param part: hosts that differed from the snapshot, None where none did
    :param pool: see :meth:`tracon_watcher.placement.assessment.Assessor.assess`
    """

    at: float
    snapshot: tuple[int, int]
    newcomer: newcomers.Profile
    assessor: assessment.Assessor
    part: overlay.Part | None
    pool: int


@dataclasses.dataclass(frozen=True)
class Captured:
    """What is kept of a judgement until its document is made.

    :param id: of the decision
    :param request: of Nova's API, None where it is not known
    :param operation: ``create``, ``multi-create`` or ``move``
    :param judged: without its HostStates
    :param names: of hosts that the snapshot does not have, by position
    """

    id: str
    request: str | None
    operation: str
    outcome: str
    judged: judgements.Judgement
    names: dict[int, str]

    @property
    def circumstances(self) -> Circumstances:
        """What the judgement was made of."""
        made: Circumstances = self.judged.circumstances
        return made


@dataclasses.dataclass
class _Detail:
    """What is predicted on one host.

    :param bounds: (2, 2) lower and upper bound of the newcomer's exponents, by response
    :param worst: uuid, response, and exponents before and after, of who is harmed most
    :param residents: (response, uuid): the exponents before and after of those of the host
    """

    bounds: FloatArray
    worst: tuple[str, int, float, float] | None
    residents: dict[tuple[int, str], tuple[float, float]]


def document(captured: Captured) -> dict[str, Any]:
    """Return the document, in a form that JSON can hold."""
    judged, found = captured.judged, captured.judged.assessment
    known = judged.rows >= 0
    status = np.full(len(judged.rows), int(assessment.Status.UNKNOWN_HOST))
    status[known] = (int(assessment.Status.UNKNOWN_PROFILE) if found is None
                     else found.status[judged.rows[known]])
    out = judged.taken_out()
    weights = judged.weights()
    best = np.flatnonzero(~out)
    best = best[np.argsort(-judgements.as_weighed(weights[best]), kind='stable')][:HOSTS]
    worst = np.flatnonzero(out)
    if found is not None:
        worst = worst[tie_breaking.argsort(-found.excess[judged.rows[worst]])]
    worst = worst[:HOSTS]
    chosen = np.concatenate([best, worst])
    details = _details(captured, judged.rows[chosen])
    made = captured.circumstances
    ranks: list[int | None] = [*range(1, len(best) + 1), *[None] * len(worst)]
    return {
        'schema': SCHEMA, 'id': captured.id, 'request': captured.request, 'vm': judged.uuid,
        'at': made.at, 'operation': captured.operation, 'snapshot': list(made.snapshot),
        'newcomer': {'source': made.newcomer.source,
                     'mean': [_number(value) for value in made.newcomer.mean],
                     'deviation': [_number(value) for value in made.newcomer.deviation],
                     **({'apart': True} if made.newcomer.apart else {}),
                     **({'own_wait': _number(made.newcomer.own_wait)}
                        if made.newcomer.own_wait else {}),
                     **({'vcpus': made.newcomer.vcpus} if made.newcomer.vcpus > 1 else {}),
                     **({} if math.isnan(made.newcomer.storage_wait)
                        else {'storage_wait': made.newcomer.storage_wait})},
        'considered': len(judged.rows), 'refused': int(out.sum()),
        'unknown': int((status != assessment.Status.KNOWN).sum()), 'outcome': captured.outcome,
        'hosts': [_host(captured, int(position), int(status[position]), bool(out[position]),
                        float(weights[position]), rank, details)
                  for position, rank in zip(chosen, ranks)],
        'chosen': None}


def settled(uuid: str, chosen: str | None, at: float, decision: str | None) -> dict[str, Any]:
    """Return the document that says which host a VM was given; None when it came to nothing."""
    return {'schema': SETTLED, 'id': decision, 'vm': uuid, 'chosen': chosen, 'at': at}


def _host(captured: Captured, position: int, status: int, refused: bool, weight: float,
          rank: int | None, details: dict[int, _Detail]) -> dict[str, Any]:
    judged, found = captured.judged, captured.judged.assessment
    row = int(judged.rows[position])
    name = (captured.names[position] if row < 0
            else captured.circumstances.assessor.cluster.hosts[row])
    said: dict[str, Any] = {
        'host': name, 'mode': policies.Mode(judged.modes[position]).name.lower(),
        'status': assessment.Status(status).name.lower(), 'refused': refused,
        'weight': _number(weight), 'rank': rank, 'score': None, 'slowdown': None,
        'iops_ratio': None, 'worst': None, 'reasons': {}}
    if row < 0 or found is None or status != assessment.Status.KNOWN:
        return said
    assert judged.foreseen is not None
    said['score'] = _number(judged.foreseen.score[row])
    detail = details.get(row)
    # Hosts without a model have no detail.
    bounds = (np.column_stack([found.lower[:, row], found.upper[:, row]]) if detail is None
              else detail.bounds)
    for response, name in enumerate(RESPONSES):
        exponents = [bounds[response, 0], found.exponent[response, row], bounds[response, 1]]
        if not math.isnan(exponents[1]):
            values = [_response(response, value) for value in exponents]
            said[name] = values if response == 0 else values[::-1]
    said['worst'] = _worst(found, row, detail)
    if found.refused[row]:
        said['reasons'] = found.reasons(np.array([row]))
    return said


def _worst(found: verdict.Assessment, row: int, detail: _Detail | None) -> dict[str, Any] | None:
    """Return who is harmed most: on a host with a breach whose limit, on others in all."""
    if not found.refused[row]:
        if detail is None or detail.worst is None:
            return None
        uuid, response, before, after = detail.worst
        return {'vm': uuid, 'response': RESPONSES[response],
                'before': _response(response, before), 'after': _response(response, after),
                'bound': None, 'limit': None}
    breach = found.breach(row)
    response = RESPONSES.index(breach.response)
    if breach.vm == verdict.NEWCOMER:
        exponents: tuple[float, float] = (0.0, float(found.exponent[response, row]))
    else:
        # Somebody on another host may be meant, with whom a pool is shared.
        nothing = math.nan, math.nan
        exponents = nothing if detail is None else detail.residents.get(
            (response, breach.vm), nothing)
    return {'vm': breach.vm, 'response': breach.response,
            'before': _response(response, exponents[0]),
            'after': _response(response, exponents[1]), 'bound': _number(breach.bound),
            'limit': _number(breach.limit)}


def _details(captured: Captured, rows: IntArray) -> dict[int, _Detail]:
    """Predict once more, in detail, on some hosts of the snapshot."""
    found = captured.judged.assessment
    if found is None:
        return {}
    made = captured.circumstances
    wanted = {int(row) for row in rows if row >= 0}
    changed = {} if made.part is None else {
        place: row for place, row in enumerate(made.part.hosts) if row in wanted}
    details = {} if made.part is None else _of_assessor(made.part.assessor, changed,
                                                        made.newcomer, made.part.pool, False)
    rest = {row: row for row in wanted.difference(changed.values())}
    return {**details, **_of_assessor(made.assessor, rest, made.newcomer, made.pool)}


def _of_assessor(assessor: assessment.Assessor, wanted: dict[int, int],
                 newcomer: newcomers.Profile, pool: int,
                 felt: bool = True) -> dict[int, _Detail]:
    """Predict on some hosts of a state.

    :param wanted: what each is to be called by, by its index
    :param pool: see :meth:`tracon_watcher.placement.assessment.Assessor.assess`, as for ``felt``
    """
    details: dict[int, _Detail] = {}
    for group in assessor.groups:
        places = np.flatnonzero(np.isin(group.hosts, list(wanted)))
        if not len(places):
            continue
        both = [_of_response(assessor, group, index, places, newcomer, pool, felt)
                for index in range(len(RESPONSES))]
        for number, place in enumerate(places):
            here = slice(group.first[place], group.first[place + 1])
            uuids = [assessor.cluster.uuids[row] for row in group.residents[here]]
            residents = {}
            candidates = []
            for response, one in enumerate(both):
                before, after, counted = (part[one.places == number]
                                          for part in (one.before, one.after, one.counted))
                for uuid, *exponents, there in zip(uuids, before, after, counted):
                    if there:
                        residents[response, uuid] = float(exponents[0]), float(exponents[1])
                        candidates.append((uuid, response, *residents[response, uuid]))
                if not math.isnan(one.exponent[number]):
                    candidates.append((verdict.NEWCOMER, response, 0.0,
                                       float(one.exponent[number])))
            details[wanted[int(group.hosts[place])]] = _Detail(
                np.stack([one.bounds[:, number] for one in both]),
                max(candidates, key=lambda one: round(one[3] - one[2], 9), default=None),
                residents)
    return details


@dataclasses.dataclass(frozen=True)
class _Predicted:
    """One response on some hosts.

    :param exponent: (m,) the newcomer's
    :param bounds: (2, m) its lower and upper bound
    :param places: of each resident of these hosts, which of the m it is on
    """

    exponent: FloatArray
    bounds: FloatArray
    places: IntArray
    before: FloatArray
    after: FloatArray
    counted: BoolArray


def _of_response(assessor: assessment.Assessor, group: Any, index: int, places: IntArray,
                 newcomer: newcomers.Profile, pool: int, felt: bool) -> _Predicted:
    response = group.responses[index]
    meeting = encounter.Encounter(assessor.cluster, group, response, pool, felt, newcomer.apart,
                                  newcomer.own_wait)
    of_newcomer = meeting.newcomer_on(places)
    exponent = of_newcomer(newcomer.mean)
    spread = np.hypot(encounter.spread(of_newcomer, newcomer, exponent),
                      meeting.doubt(newcomer.mean, exponent, places))
    counts = group.first[places + 1] - group.first[places]
    rows = np.concatenate([np.arange(group.first[place], group.first[place + 1])
                           for place in places])
    return _Predicted(
        exponent, np.stack([assessor.lower(response.model, exponent, spread),
                            assessor.upper(response.model, exponent, spread)]),
        np.repeat(np.arange(len(places)), counts), response.exponent[rows],
        meeting.residents(newcomer.mean, rows) if len(rows) else np.empty(0),
        response.counted[rows])


def _response(index: int, exponent: float) -> float | None:
    """Return a slowdown or an IOPS ratio of an exponent."""
    return _number(math.exp(exponent if index == 0 else -exponent))


def _number(value: float) -> float | None:
    value = float(value)
    return round(value, _DIGITS) if math.isfinite(value) else None
