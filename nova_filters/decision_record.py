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

"""Records of decisions, and the queue in which they wait for the engine."""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
import threading
from typing import Any, Callable
import uuid as uuids

import numpy as np
from oslo_context import context

from nova_filters import assumed_placements
from nova_filters import log_once
from nova_filters import periodic_worker
from nova_filters import policy as policies
from nova_filters import scheduling_result
from nova_filters import snapshot_client
from tracon_watcher.characteristics import FloatArray, IntArray, RESPONSES
from tracon_watcher.messaging import protocol
from tracon_watcher.placement import assessment
from tracon_watcher.placement import queues
from tracon_watcher import tie_breaking

SCHEMA = 'tracon-decision/1'
SETTLED = 'tracon-decision-settled/1'
#: Hosts of a document at most: so many of the best, and so many of the worst that were refused.
HOSTS = 25
_DIGITS = 6
#: Intervals of breached limits of a host at most, and log slowdowns that one has to span.
_INTERVALS, _NARROW = 5, 1e-3


@dataclasses.dataclass(frozen=True)
class CapturedDecision:
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
    judged: scheduling_result.SchedulingResult
    names: dict[int, str]


#: Log responses before and after, by response and uuid.
_Residents = dict[tuple[int, str], tuple[float, float]]
#: Of limits as log slowdowns, [from, to) each: disjoint, in ascending order.
_Intervals = list[tuple[float, float]]


@dataclasses.dataclass(frozen=True)
class _HostEffects:
    """What a newcomer does to the residents of a host; see :func:`breached_limits`."""

    log_responses: _Residents
    breached_limits: _Intervals


def to_document(captured: CapturedDecision) -> dict[str, Any]:
    """Return the document, in a form that JSON can hold."""
    judged, found = captured.judged, captured.judged.assessment
    known = judged.rows >= 0
    status = np.full(len(judged.rows), int(assessment.Status.UNKNOWN_HOST))
    status[known] = (int(assessment.Status.UNKNOWN_PROFILE) if found is None
                     else found.status[judged.rows[known]])
    out = judged.taken_out()
    weights = judged.weights()
    best = np.flatnonzero(~out)
    best = best[np.argsort(-scheduling_result.as_weighed(weights[best]), kind='stable')][:HOSTS]
    worst = np.flatnonzero(out)
    if found is not None:
        worst = worst[tie_breaking.argsort(-found.overshoot[judged.rows[worst]])]
    worst = worst[:HOSTS]
    chosen = np.concatenate([best, worst])
    effects = _effects(captured, judged.rows[chosen])
    made = captured.judged.inputs
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
                        else {'storage_wait': made.newcomer.storage_wait}),
                     **({'cpu_weight': made.newcomer.cpu_weight}
                        if made.newcomer.cpu_weight != 1.0 else {}),
                     **({'limits': {'background': True}} if made.background else {})},
        'considered': len(judged.rows), 'refused': int(out.sum()),
        'unknown': int((status != assessment.Status.KNOWN).sum()), 'outcome': captured.outcome,
        'weight_multiplier': _number(made.multiplier),
        'on_all_refused': 'least_harm' if judged.least_harm else 'refuse',
        'hosts': [_host(captured, int(position), int(status[position]), bool(out[position]),
                        float(weights[position]), rank, effects)
                  for position, rank in zip(chosen, ranks)],
        'chosen': None}


def settled(uuid: str, chosen: str | None, at: float, decision: str | None) -> dict[str, Any]:
    """Return the document that says which host a VM was given; None when it came to nothing."""
    return {'schema': SETTLED, 'id': decision, 'vm': uuid, 'chosen': chosen, 'at': at}


def _host(captured: CapturedDecision, position: int, status: int, refused: bool, weight: float,
          rank: int | None, effects: dict[int, _HostEffects]) -> dict[str, Any]:
    judged, found = captured.judged, captured.judged.assessment
    row = int(judged.rows[position])
    name = (captured.names[position] if row < 0
            else captured.judged.inputs.assessor.cluster.hosts[row])
    said: dict[str, Any] = {
        'host': name, 'mode': policies.Mode(judged.modes[position]).name.lower(),
        'status': assessment.Status(status).name.lower(), 'refused': refused,
        'weight': _number(weight), 'other_weights': _number(judged.other_weights[position]),
        'rank': rank, 'score': None, 'slowdown': None, 'iops_ratio': None, 'worst': None,
        'breached_limits': None, 'reasons': {}}
    if row < 0 or found is None or status != assessment.Status.KNOWN:
        return said
    assert judged.foreseen is not None
    said['score'] = _number(judged.foreseen.score[row])
    for response, name in enumerate(RESPONSES):
        log_responses = [float(one[response, row])
                         for one in (found.lower, found.log_response, found.upper)]
        if not math.isnan(log_responses[1]):
            values = [_response(response, value) for value in log_responses]
            said[name] = values if response == 0 else values[::-1]
    said['worst'] = _worst(found, row, effects[row].log_responses)
    said['breached_limits'] = [[round(math.exp(value), 4) for value in one]
                               for one in effects[row].breached_limits]
    if found.refused[row]:
        said['reasons'] = found.reasons(np.array([row]))
    return said


def _worst(found: assessment.Assessment, row: int, residents: _Residents) -> dict[str, Any]:
    """Return who is harmed most: on a host with a breach whose limit, on others in all."""
    all_vms = {**residents, **{
        (response, assessment.NEWCOMER): (0.0, float(found.log_response[response, row]))
        for response in range(len(RESPONSES))}}
    breach = found.breach(row) if found.refused[row] else None
    if breach is None:
        response, uuid = max(
            (one for one, log_responses in all_vms.items() if not math.isnan(log_responses[1])),
            key=lambda one: round(all_vms[one][1] - all_vms[one][0], _DIGITS))
    else:
        response, uuid = RESPONSES.index(breach.response), breach.vm
    # Somebody on another host may be meant, with whom a pool is shared.
    before, after = all_vms.get((response, uuid), (math.nan, math.nan))
    return {'vm': uuid, 'response': RESPONSES[response],
            'before': _response(response, before), 'after': _response(response, after),
            'bound': None if breach is None else _number(breach.bound),
            'limit': None if breach is None else _number(breach.limit)}


def _effects(captured: CapturedDecision, rows: IntArray) -> dict[int, _HostEffects]:
    """Predict once more what the newcomer does on some hosts of the snapshot, by their rows."""
    if captured.judged.assessment is None:
        return {}
    made = captured.judged.inputs
    wanted = {int(row) for row in rows if row >= 0}
    changed = {} if made.part is None else {
        place: row for place, row in enumerate(made.part.hosts) if row in wanted}
    found = {} if made.part is None else _of_assessor(
        made.part.assessor, changed, queues.Newcomer(made.newcomer, made.part.pool, False))
    rest = {row: row for row in wanted.difference(changed.values())}
    return {**found, **_of_assessor(
        made.assessor, rest, queues.Newcomer(made.newcomer, made.pool, made.pool >= 0))}


def _of_assessor(assessor: assessment.Assessor, wanted: dict[int, int],
                 coming: queues.Newcomer) -> dict[int, _HostEffects]:
    """Predict on some hosts of a state.

    :param wanted: what each is to be called by, by its index
    """
    cluster = assessor.cluster
    part = assessor.of(
        cluster.restricted(wanted, [coming.pool] if coming.pool >= 0 else ()))
    if coming.pool >= 0:
        coming = dataclasses.replace(coming, pool=part.cluster.io_domains.index(
            cluster.io_domains[coming.pool]))
    names, law = list(wanted.values()), part.law
    beside = law.beside(coming)[1]
    breached = breached_limits(part, coming, beside)
    found = {name: _HostEffects({}, _widest(breached.get(place, [])))
             for place, name in enumerate(names)}
    for response, one in enumerate(np.stack([law.log_response, beside], axis=-1)):
        for row, (before, after) in zip(law.residents, one):
            if not math.isnan(after):
                found[names[part.cluster.host[row]]].log_responses[
                    response, part.cluster.uuids[row]] = float(before), float(after)
    return found


def breached_limits(assessor: assessment.Assessor, coming: queues.Newcomer,
                    beside: FloatArray) -> dict[int, _Intervals]:
    """Return by host which limits of their slowdown residents would breach.

    With lower bounds b before the newcomer and b′ after it, a limit L is breached where L < b′,
    and b ≤ L or the slowdown rises by more than the margin. What background work suffers counts
    nothing, nor what VMs of other hosts do.

    :param beside: (2, n) the residents' log responses beside the newcomer
    """
    law, confidence = assessor.law, assessor.settings.confidence
    if coming.newcomer.deviation.any():
        beside = law.harmed_for_sure(coming, confidence, np.arange(len(law.residents)))
    begin, end = (law.bound(1 - confidence, one)[0] for one in (law.log_response, beside))
    begin[beside[0] - law.log_response[0] > assessor.settings.least_rise] = 0.0
    rows = np.flatnonzero((end > begin) & ~assessor.cluster.background[law.residents])
    found: dict[int, _Intervals] = {}
    for row in rows[np.argsort(begin[rows], kind='stable')]:
        intervals = found.setdefault(int(law.host_of(row)), [])
        first, last = float(begin[row]), float(end[row])
        if intervals and first <= intervals[-1][1]:
            first, before = intervals.pop()
            last = max(last, before)
        intervals.append((first, last))
    return found


def _widest(intervals: _Intervals) -> _Intervals:
    """Return those of the most limits, in order, without those of hardly any."""
    return sorted(sorted((one for one in intervals if one[1] - one[0] > _NARROW),
                         key=lambda one: one[0] - one[1])[:_INTERVALS])


def _response(index: int, log_response: float) -> float | None:
    """Return a slowdown or an IOPS ratio of a log response."""
    return _number(math.exp(log_response if index == 0 else -log_response))


def _number(value: float) -> float | None:
    value = float(value)
    return round(value, _DIGITS) if math.isfinite(value) else None


#: Judgements that wait to be told at most: each keeps some hundred bytes a host.
_MOST = 64
_MOST_IDS = 5000


class DecisionQueue:
    """What there is to tell the engine.

    :param post: tells it a document by a remote method, and never blocks
    """

    def __init__(self, post: Callable[[str, dict], None],
                 faults: log_once.FaultLog) -> None:
        self._post = post
        self._faults = faults
        self._captured: collections.deque[CapturedDecision] = collections.deque()
        self._settled: collections.deque[tuple[str, tuple[str, ...], float]] = collections.deque(
            maxlen=_MOST_IDS)
        self._ids: collections.OrderedDict[str, str] = collections.OrderedDict()
        self._dropped = 0
        self._lock = threading.Lock()

    def capture(self, judged: scheduling_result.SchedulingResult, spec, outcome: str) -> None:
        """Keep what is needed of a judgement; on the request path."""
        request = context.get_current()
        states = judged.states
        names = {int(position): states[position].host
                 for position in (judged.rows < 0).nonzero()[0]}
        one = CapturedDecision(
            str(uuids.uuid4()), getattr(request, 'request_id', None), _operation(judged, spec),
            # HostStates are large, and made again for each request.
            outcome, dataclasses.replace(judged, states=[None] * len(states), _left=None), names)
        with self._lock:
            self._captured.append(one)
            self._ids[judged.uuid] = one.id
            while len(self._ids) > _MOST_IDS:
                self._ids.popitem(last=False)
            while len(self._captured) > _MOST:
                self._captured.popleft()
                self._dropped += 1

    def settled(self, found: list[assumed_placements.Placement], failed: list[str],
                now: float) -> None:
        """Keep which hosts were chosen, and which VMs came to nothing."""
        self._settled.extend((one.uuid, (one.node, one.host), one.at) for one in found)
        self._settled.extend((uuid, (), now) for uuid in failed)

    def tell(self, prepared: snapshot_client.PreparedSnapshot | None) -> None:
        """Hand over all there is; in the background.

        :param prepared: the snapshot, by whose names hosts are called
        """
        with self._lock:
            captured, self._captured = self._captured, collections.deque()
            dropped, self._dropped = self._dropped, 0
        if dropped:
            self._faults.report('decisions', (
                f'{dropped} decisions are not recorded, since there were more than {_MOST} '
                f'before they could be looked at'), key='dropped')
        # One by one: so many may take a while, and other native work waits.
        for one in captured:
            document = self._faults.guarded(
                functools.partial(periodic_worker.natively, to_document, one), None,
                'A decision is not recorded')
            if document is not None:
                self._post(protocol.RECORD_DECISIONS, document)
        known = {} if prepared is None else prepared.cluster.host_index
        while self._settled:
            uuid, names, at = self._settled.popleft()
            chosen = next((name for name in names if name in known), names[-1] if names else None)
            self._post(protocol.SETTLED, settled(uuid, chosen, at, self._ids.get(uuid)))


def _operation(judged: scheduling_result.SchedulingResult, spec) -> str:
    if judged.exempt:
        return 'move'
    several = 'num_instances' in spec and spec.num_instances > 1
    return 'multi-create' if several else 'create'
