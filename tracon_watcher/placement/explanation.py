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

"""Explanation of a decision, host by host, with what would have had to differ."""

from __future__ import annotations

import math
from typing import Any, Callable, Mapping

import numpy as np

from tracon_watcher.characteristics import COUNT, FloatArray, IntArray
from tracon_watcher.placement import assessment
from tracon_watcher.placement import counterfactual
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import storage_backends
from tracon_watcher import tie_breaking

_RESPONSES = {'slowdown': 'slowdown', 'iops_ratio': 'IOPS ratio'}
_UNKNOWN = {
    'unknown_cores': 'it is not known how many cores its VMs share',
    'stale': 'its data is stale',
    'unknown_profile': 'nothing is known of a VM there, or of this one',
    'unknown_storage': 'its storage is unknown',
    'unknown_host': 'no telemetry of it has come yet',
    'drifted': 'predictions and measurements differ too much on hosts of its type'}

#: Returns what a VM is called, given its uuid.
Call = Callable[[str], str]


def why(host: Mapping[str, Any], call: Call = str) -> str:
    """Say why a host of an explanation is where it is, in one or two sentences.

    :param host: of the document of :func:`tracon_watcher.placement.explanation.explain`
    :param call: what a VM is called
    """
    reason = _UNKNOWN.get(str(host['status']))
    if reason is not None:
        return f'unknown: {reason}; such a host ranks by the median of the others.'
    place = 'chosen' if host['chosen'] else 'not chosen'
    if host['rank'] is not None:
        place += f', rank {host["rank"]}'
    said = []
    worst = host['worst']
    if host['refused']:
        said.append(f'refused: {_breach(worst, call)}' if _is_breach(worst) else 'refused')
    elif _is_breach(worst) and host['would_pass']:
        said.append(f'{place}, though {_breach(worst, call)}')
    else:
        said.append(place)
    behind = host['behind']
    if behind is not None and not host['refused']:
        said[0] += (f'; harm {host["score"]:.3f}, {abs(behind):.3f} '
                    f'{"more" if behind >= 0 else "less"} than on the chosen host')
    elif host['score'] is not None:
        said[0] += f'; harm {host["score"]:.3f}'
    most = host['most']
    if most is not None:
        said.append(f'{call(most["vm"])} accounts for {most["part"]:.3f} of it' + (
            ', and without it this host would be ahead' if most['ahead_without'] else ''))
    return '. '.join(said) + '.'


def what_would_differ(host: Mapping[str, Any], call: Call = str) -> str:
    """Say what would have let a host pass; empty for one on which no limit is breached."""
    passing = host['would_pass']
    if passing is None:
        return ''
    # Rounded to the side on which it passes.
    wanted = [f'{_RESPONSES[one["response"]]} limit of {_of(one["vm"], call)} '
              + (f'at {one["needed"] + 0.005:.2f} or more' if one['response'] == 'slowdown'
                 else f'at {max(one["needed"] - 0.0005, 0.0):.3f} or less')
              for one in passing['limits'] if one['needed'] is not None]
    said = []
    if wanted:
        said.append('It would have passed with the ' + ' and the '.join(wanted)
                    + ('' if passing['complete'] else ', as far as was recorded'))
    without = passing['without']
    if without:
        said.append('It would have passed without ' + ' or without '.join(
            call(vm) for vm in without))
    elif without is not None:
        said.append('No single VM\'s absence would have let it pass')
    return ''.join(f'{one}. ' for one in said).strip()


def _is_breach(worst: Mapping[str, Any] | None) -> bool:
    # Of hosts on which no limit is breached the VM harmed most is recorded, without a limit.
    return worst is not None and worst.get('bound') is not None and worst.get('limit') is not None


def _breach(worst: Mapping[str, Any], call: Call) -> str:
    response = worst['response']
    way = 'at least' if response == 'slowdown' else 'at most'
    text = (f'the {_RESPONSES[response]} of {_of(worst["vm"], call)} would be {way} '
            f'{worst["bound"]:.2f}, beyond its limit {worst["limit"]:.2f}')
    if worst.get('before') is not None and worst.get('after') is not None:
        text += f' (expected: {worst["after"]:.2f}, now {worst["before"]:.2f})'
    return text


def _of(vm: str, call: Call) -> str:
    return 'the VM itself' if vm == assessment.NEWCOMER else call(vm)


SCHEMA = 'tracon-explanation/1'
DECISION = 'tracon-decision/1'
#: Best-ranked and worst-refused hosts that are listed of a judgement of now.
_LISTED = 25
#: Residents of a host, those hit hardest, whose prediction is listed.
_RESIDENTS = 10
#: Scores that are recorded are rounded.
_SAME = 1e-3

_KEPT = ('id', 'request', 'vm', 'at', 'operation', 'snapshot', 'considered', 'refused', 'unknown',
         'outcome', 'chosen', 'settled')
_OF_HOST = ('host', 'mode', 'status', 'refused', 'weight', 'rank', 'score', 'slowdown',
            'iops_ratio', 'worst', 'reasons')

Document = dict[str, Any]


def explain(decision: Mapping[str, Any], assessor: assessment.Assessor | None = None,
            identity: tuple[int, int] | None = None, now: float | None = None,
            most: int = 1500, judged: assessment.Assessment | None = None) -> Document:
    """Explain a decision.

    :param decision: its document
    :param assessor: of a state that is at hand; None for none
    :param identity: epoch and version of that state
    :param now: seconds since the epoch, for staleness of a judgement of now
    :param most: times that hosts are judged again, with one thing changed each
    :param judged: the judgement of all hosts of that state, if it is at hand
    :returns: a document of :data:`SCHEMA`; what is unknown is null
    """
    listed = [one for one in decision.get('hosts') or () if isinstance(one, Mapping)]
    chosen = next((one for one in listed if one.get('host') == decision.get('chosen')), None)
    found: Document = {'schema': SCHEMA, **{name: decision.get(name) for name in _KEPT}}
    newcomer = decision.get('newcomer')
    found['newcomer'] = dict(newcomer) if isinstance(newcomer, Mapping) else None
    trials, found['judged_again'] = _trials(
        decision, listed, assessor, identity, now, most, judged)
    found['hosts'] = [_host(one, chosen, trials, assessor) for one in listed]
    return found


def of_now(assessor: assessment.Assessor, uuid: str, now: float | None = None) -> Document:
    """Return the decision that a placement of a resident would be now, as one that moves.

    What counts as chosen is the host where it is.

    :raises KeyError: for a VM that is not in the cluster
    """
    cluster = assessor.cluster
    row = cluster.resident_index[uuid]
    limits = cluster.resident_limits(row)
    profile = cluster.resident_profile(row)
    judged = counterfactual.CounterfactualSearch(
        assessor, profile, lambda host: limits, uuid, now).everywhere
    return _of_now(judged, np.flatnonzero(storage_backends.reachable(cluster, row)), limits, uuid,
                   int(cluster.host[row]), now)


def of_newcomer(assessor: assessment.Assessor, profile: newcomer_profiles.Profile,
                limits: limits_module.Limits,
                now: float | None = None) -> tuple[Document, assessment.Assessment]:
    """Return the decision that the placement of a newcomer would be now, and its judgement.

    What counts as chosen is the host of rank 1.

    :param profile: its expected profile
    :param limits: the same on each host
    :param now: seconds since the epoch, for staleness
    """
    judged = assessor.assess(profile, limits, now)
    return _of_now(judged, np.arange(len(assessor.cluster.hosts)), limits, None, None, now), judged


def _of_now(judged: assessment.Assessment, candidates: IntArray, limits: limits_module.Limits,
            uuid: str | None, own: int | None, now: float | None) -> Document:
    """Return the decision.

    :param candidates: indices of the hosts that are considered
    :param own: index of the VM's host; None for a newcomer
    """
    cluster, profile = judged.cluster, judged.newcomer
    order = candidates[np.lexsort((tie_breaking.ranks(judged.ranked(candidates)),
                                   judged.refused[candidates]))]
    ranks = {int(host): place + 1 for place, host in enumerate(order)
             if not judged.refused[host]}
    best = [int(host) for host in order[:_LISTED] if int(host) in ranks]
    refused = [int(host)
               for host in
               candidates[tie_breaking.argsort(-judged.overshoot[candidates])][:_LISTED] if
               judged.refused[host]]
    chosen = (best[0] if best else None) if own is None else own
    shown = best + refused + ([chosen] if chosen is not None and chosen not in (
        *best, *refused) else [])
    lower, upper = judged.lower, judged.upper
    return {
        'schema': DECISION, 'id': None, 'request': None, 'vm': uuid, 'at': now,
        'operation': 'now', 'snapshot': None,
        'newcomer': {'source': profile.source, 'mean': _plain(profile.mean),
                     'deviation': _plain(profile.deviation), 'limits': _limits_document(limits),
                     **({'own_wait': profile.own_wait} if profile.own_wait else {}),
                     **({'apart': True} if profile.apart else {}),
                     **({'vcpus': profile.vcpus} if profile.vcpus > 1 else {}),
                     **({} if math.isnan(profile.storage_wait)
                        else {'storage_wait': profile.storage_wait}),
                     **({'cpu_weight': profile.cpu_weight} if profile.cpu_weight != 1.0
                        else {})},
        'considered': len(candidates), 'refused': int(judged.refused[candidates].sum()),
        'unknown': int((~judged.known[candidates]).sum()), 'outcome': 'judged now, not decided',
        'chosen': None if chosen is None else cluster.hosts[chosen],
        'hosts': [_judged(judged, host, ranks.get(host), lower, upper) for host in shown]}


def _judged(judged: assessment.Assessment, host: int, rank: int | None, lower: FloatArray,
            upper: FloatArray) -> Document:
    log_responses = np.array([lower[:, host], judged.log_response[:, host], upper[:, host]])
    refused = bool(judged.refused[host])
    worst = judged.breach(host) if refused else None
    return {
        'host': judged.cluster.hosts[host], 'mode': None,
        'status': assessment.Status(int(judged.status[host])).name.lower(), 'refused': refused,
        'weight': None, 'rank': rank, 'score': _number(judged.score[host]),
        'slowdown': _interval(np.exp(log_responses[:, 0])),
        'iops_ratio': _interval(np.exp(-log_responses[::-1, 1])),
        'worst': None if worst is None else {
            'vm': worst.vm, 'response': worst.response, 'before': None, 'after': None,
            'bound': worst.bound, 'limit': worst.limit},
        'reasons': None}


def _trials(decision: Mapping[str, Any], listed: list[Mapping[str, Any]],
            assessor: assessment.Assessor | None, identity: tuple[int, int] | None,
            now: float | None, most: int, judged: assessment.Assessment | None
            ) -> tuple[counterfactual.CounterfactualSearch | None, str]:
    """Return trials on the state of the decision, and why there are none, or that there are."""
    if assessor is None:
        return None, 'no: no state of the cloud is at hand'
    made_on = decision.get('snapshot')
    if made_on is not None and (identity is None or list(made_on) != list(identity)):
        return None, (f'no: the decision was made on snapshot {_identity(made_on)}, at hand is '
                      f'{_identity(identity)}')
    profile = _profile(decision.get('newcomer'))
    if profile is None or not profile.known:
        return None, 'no: nothing was known of the VM'
    index = assessor.cluster.host_index
    limits = {index[one['host']]: _limits(decision, one) for one in listed
              if one.get('host') in index}
    return counterfactual.CounterfactualSearch(
        assessor, profile, lambda host: limits.get(host, limits_module.NONE), decision.get('vm'),
        now if made_on is None else None, most, judged), 'yes'


def _host(entry: Mapping[str, Any], chosen: Mapping[str, Any] | None,
          trials: counterfactual.CounterfactualSearch | None,
          assessor: assessment.Assessor | None) -> Document:
    found: Document = {name: entry.get(name) for name in _OF_HOST}
    found['chosen'] = entry is chosen
    score = _number(entry.get('score'))
    reference = None if chosen is None else _number(chosen.get('score'))
    found['behind'] = (None if score is None or reference is None or entry is chosen
                       else score - reference)
    again = None
    if trials is not None and assessor is not None:
        host = assessor.cluster.host_index.get(str(entry.get('host')))
        again = None if host is None else trials.of(host)
        if again is not None and not _same(entry, again):
            again = None
        if again is not None and host is not None:
            found['residents'] = [
                {'vm': one.vm, 'slowdown': _pair(one.before[0], one.after[0]),
                 'iops_ratio': _pair(-one.before[1], -one.after[1])}
                for one in trials.effects(host)[:_RESIDENTS]]
    found['would_pass'] = _would_pass(entry, again)
    found['most'] = _most(found['behind'], again)
    return found


def _would_pass(entry: Mapping[str, Any], again: counterfactual.Counterfactual | None
                ) -> Document | None:
    """Say what would have let a host pass on which a limit is breached; None for others."""
    if again is not None:
        if not again.refused:
            return None
        return {'judged_again': True, 'complete': again.complete,
                'limits': [{'vm': one.vm, 'response': one.response, 'limit': one.limit,
                            'needed': one.needed} for one in again.limits],
                'without': None if again.absences is None else [
                    one.vm for one in again.absences if one.passes]}
    worst = entry.get('worst')
    if not _breached(entry) or not isinstance(worst, Mapping):
        return None
    return {'judged_again': False, 'complete': False, 'without': None,
            'limits': [{'vm': worst.get('vm'), 'response': worst.get('response'),
                        'limit': worst.get('limit'), 'needed': worst.get('bound')}]}


def _most(behind: float | None, again: counterfactual.Counterfactual | None) -> Document | None:
    """Say which resident accounts for most of what a host is behind; None where none does."""
    if behind is None or behind <= 0 or again is None or not again.absences:
        return None
    first = again.absences[0]
    if first.relief <= 0:
        return None
    return {'vm': first.vm, 'part': first.relief, 'share': min(first.relief / behind, 1.0),
            'ahead_without': bool(tie_breaking.less(behind, first.relief))}


def _same(entry: Mapping[str, Any], again: counterfactual.Counterfactual) -> bool:
    """Say whether a host is judged again as it was then."""
    score = _number(entry.get('score'))
    return score is not None and abs(score - again.score) <= _SAME * (1 + abs(score)) and (
        _breached(entry) == again.refused)


def _breached(entry: Mapping[str, Any]) -> bool:
    """Say whether a limit would be breached on a host, whether it was refused for it or not."""
    worst = entry.get('worst')
    if entry.get('refused'):
        return True
    if not isinstance(worst, Mapping):
        return False
    bound, limit = _number(worst.get('bound')), _number(worst.get('limit'))
    if bound is None or limit is None:
        return False
    return bound > limit if worst.get('response') == 'slowdown' else bound < limit


def _limits(decision: Mapping[str, Any], entry: Mapping[str, Any]) -> limits_module.Limits:
    """Return the newcomer's limits on a host, as far as they were recorded."""
    newcomer = decision.get('newcomer')
    stated = entry.get('limits') or (newcomer or {}).get('limits') or {}
    limits = limits_module.Limits(_number(stated.get('max_slowdown')) or math.inf,
                                  _number(stated.get('min_iops_ratio')) or 0.0,
                                  stated.get('background') is True)
    worst = entry.get('worst')
    if not stated and isinstance(worst, Mapping) and (
            worst.get('vm') in (assessment.NEWCOMER, decision.get('vm'))):
        limit = _number(worst.get('limit'))
        if limit is not None:
            limits = (limits_module.Limits(max_slowdown=limit)
                      if worst.get('response') == 'slowdown'
                      else limits_module.Limits(min_iops_ratio=limit))
    return limits


def _limits_document(limits: limits_module.Limits) -> Document:
    return {'max_slowdown': limits.max_slowdown if math.isfinite(limits.max_slowdown) else None,
            'min_iops_ratio': limits.min_iops_ratio or None,
            **({'background': True} if limits.background else {})}


def _profile(content: object) -> newcomer_profiles.Profile | None:
    if not isinstance(content, Mapping):
        return None
    values = [_array(content.get(name)) for name in ('mean', 'deviation')]
    if values[0] is None:
        return None
    storage_wait, weight = (_number(content.get(name)) for name in ('storage_wait', 'cpu_weight'))
    return newcomer_profiles.Profile(
        values[0], np.zeros(COUNT) if values[1] is None else values[1],
        source=str(content.get('source')), apart=content.get('apart') is True,
        own_wait=_number(content.get('own_wait')) or 0.0,
        vcpus=int(_number(content.get('vcpus')) or 1),
        storage_wait=math.nan if storage_wait is None else storage_wait,
        cpu_weight=1.0 if weight is None else weight)


def _array(content: object) -> FloatArray | None:
    if not isinstance(content, (list, tuple)) or len(content) != COUNT:
        return None
    numbers = [_number(value) for value in content]
    if any(value is None or value < 0 for value in numbers):
        return None
    return np.array(numbers, dtype=np.float64)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return None
    return float(value)


def _plain(values: FloatArray) -> list[float | None]:
    return [_number(float(value)) for value in values]


def _interval(values: FloatArray) -> list[float | None] | None:
    return None if np.isnan(values).any() else _plain(values)


def _pair(before: float, after: float) -> list[float | None]:
    return _plain(np.exp(np.array([before, after])))


def _identity(identity: object) -> str:
    return '.'.join(str(part) for part in identity) if isinstance(
        identity, (list, tuple)) else 'none'
