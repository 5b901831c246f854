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

"""Ledger of moves: what each was predicted to do, what was measured, and the sums by week; and of
the remedies for one VM.

The time in breach that a move avoided is that of a counterfactual: what would have been without
the move is the prediction, since it was never observed.
"""

from __future__ import annotations

import bisect
import datetime
import math
from typing import Any, Iterable, Mapping, Sequence

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.engine import episode_tracker
from tracon_watcher.engine import sequential_test

#: Seconds after a move for which it counts: until the last measurement of its outcome.
HORIZON = 86400.0
_HOUR = 3600.0

Document = dict[str, Any]


def entries(moves: Sequence[Mapping[str, Any]], error: float, now: float) -> list[Document]:
    """Return an entry for each move that was made, in the order given.

    For a VM with limit L, predicted slowdowns S₀ before and S₁ after, and measured ones M, the
    hours in breach that a move avoided are H · (⟦S₀ > L⟧ − mean of ⟦M > L⟧). H is the time from
    the end of the move until the VM is concerned by another one, or to :data:`HORIZON`, or to now.
    S₁ stands for each M that is unknown. The bounds of the hours follow from the bounds of all
    these slowdowns, those that are worst for the move together, and those that are best.

    :param moves: documents of :class:`tracon_watcher.api.explanations.Records`, all that ended
        after the first of them among them
    :param error: mean relative error of measured slowdowns; NaN where unknown
    :param now: seconds since the epoch
    """
    ends: dict[str, list[float]] = {}
    for move in moves:
        for change in move['changes']:
            bisect.insort(ends.setdefault(change['vm'], []), move['ended_at'])
    return [_entry(move, ends, math.inf if math.isnan(error) else error, now) for move in moves]


def _entry(move: Mapping[str, Any], ends: Mapping[str, Sequence[float]], error: float,
           now: float) -> Document:
    # As the sequential test, which counts the first result that is known.
    judged = next((one for one in move['outcomes'] if one['verdict'] in (
        sequential_test.HELPED, sequential_test.DID_NOT_HELP)), None)
    end, hours = move['ended_at'], np.zeros(3)
    known = 0
    for change in move['changes']:
        if 'limit' not in change:
            continue
        known += 1
        if change['limit'] is not None:
            later = bisect.bisect_right(ends[change['vm']], end)
            last = min(now, end + HORIZON, *ends[change['vm']][later:later + 1])
            hours += _avoided(change, move['outcomes'], error, max(last - end, 0.0) / _HOUR)
    return {
        **{name: move[name] for name in ('id', 'vm', 'audit', 'source', 'destination',
                                         'ended_at')},
        'verdict': sequential_test.UNKNOWN if judged is None else judged['verdict'],
        'gain': {name: math.nan if judged is None else judged[name]
                 for name in ('predicted', 'measured')},
        'avoided': _hours(hours if known else np.full(3, np.nan)),
        'slowdowns': [
            {'vm': one['vm'], 'before': one['before']['predicted'],
             'after': one['after']['predicted'],
             'measured': [outcome['slowdowns'].get(one['vm'], math.nan)
                          for outcome in move['outcomes']]}
            for one in move['changes'] if one['vm'] == move['vm'] or one['relieved']]}


def _avoided(change: Mapping[str, Any], outcomes: Iterable[Mapping[str, Any]], error: float,
             hours: float) -> FloatArray:
    """Return the hours in breach that a VM was spared, (3,): lower bound, expected, upper bound.
    """
    limit = change['limit']
    before, predicted = (_breach(change[name], limit) for name in ('before', 'after'))
    after = []
    for one in outcomes:
        if one['delay'] <= hours * _HOUR:
            slowdown = one['slowdowns'].get(change['vm'], math.nan)
            after.append(predicted if not math.isfinite(slowdown) else np.array(
                [slowdown / (1 + error), slowdown, slowdown * (1 + error)]) > limit)
    found: FloatArray = hours * (before - np.mean(after or [predicted], axis=0)[::-1])
    return found


def _breach(prediction: Mapping[str, Any], limit: float) -> FloatArray:
    """Return whether a limit is breached, 0 or 1, (3,): by lower bound, expected, upper bound.

    Without bounds it is neither sure nor ruled out.
    """
    low, high = (default if prediction[name] is None else prediction[name]
                 for name, default in (('lower', 0.0), ('upper', math.inf)))
    return np.array([low > limit, prediction['predicted'] > limit, high > limit], dtype=float)


def weeks(listed: Iterable[Mapping[str, Any]]) -> list[Document]:
    """Return the sums of entries by week of ISO 8601 (UTC), the latest week first.

    A sum leaves out what is unknown; it is NaN where nothing is known.
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    for one in listed:
        moment = datetime.datetime.fromtimestamp(one['ended_at'], datetime.timezone.utc)
        found.setdefault(f'{moment:%G-W%V}', []).append(one)
    return [{
        'week': week, 'moves': len(some),
        **{verdict: sum(one['verdict'] == verdict for one in some)
           for verdict in sequential_test.VERDICTS},
        'gain': {name: _sum([one['gain'][name] for one in some])
                 for name in ('predicted', 'measured')},
        'avoided': _hours([_sum([one['avoided'][name] for one in some])
                           for name in ('lower', 'hours', 'upper')]),
        'without_limits': sum(math.isnan(one['avoided']['hours']) for one in some)}
        for week, some in sorted(found.items(), reverse=True)]


#: Remedies in the order in which they are tried.
THROTTLE, REFUSE, REMOVE, MIGRATE = REMEDIES = ('throttle', 'refuse', 'remove', 'migrate')


def remedies(vm: str, decisions: Iterable[Mapping[str, Any]], audits: Iterable[Mapping[str, Any]],
             episodes: Iterable[Mapping[str, Any]],
             moves: Iterable[Mapping[str, Any]]) -> list[Document]:
    """Return what was done for a VM, in order of time.

    Each has ``at`` (seconds since the epoch), ``remedy``, ``vm`` (the one that was refused,
    removed or migrated), ``host`` and ``destination``, and the VM's slowdown predicted ``before``
    and ``after`` it, and ``measured`` after it. A refused newcomer would have brought it
    ``after``. One that was throttled has the slowdowns that were observed, and ``episode``:
    ``resource``, ``until`` (None while its end was not told), ``before`` and ``least``, limits in
    ``unit`` (None: groups were paused), and the ``reason`` for which slowdowns are unknown.

    :param vm: uuid
    :param decisions: ``tracon-decision/1``; those count in which a host was refused for the VM
    :param audits: ``tracon-audit/1``
    :param episodes: as :class:`.storage.records.Episodes` keeps them, all of this VM
    :param moves: documents as for :func:`entries`
    """
    def remedy(at: float, kind: str, other: str, host: str, effect: Mapping[str, Any],
               destination: str | None = None, measured: Sequence[float] = ()) -> Document:
        return {'at': at, 'remedy': kind, 'vm': other, 'host': host, 'destination': destination,
                'before': effect['before'], 'after': effect['after'], 'measured': list(measured)}

    found = [remedy(decision['at'], REFUSE, decision['vm'], host['host'], host['worst'])
             for decision in decisions for host in decision['hosts']
             if host['refused'] and host['worst'] and host['worst']['vm'] == vm
             and host['worst']['response'] == 'slowdown']
    found += [remedy(removal.get('at', audit['at']), REMOVE, removal['vm'], removal['host'],
                     effect)
              for audit in audits for removal in (*audit.get('past', ()),
                                                  *audit.get('removals', ()))
              for effect in removal.get('effects', ()) if effect['vm'] == vm]
    found += [remedy(move['ended_at'], MIGRATE, move['vm'], move['source'],
                     {name: change[name]['predicted'] for name in ('before', 'after')},
                     move['destination'],
                     [outcome['slowdowns'].get(vm, math.nan) for outcome in move['outcomes']])
              for move in moves for change in move['changes']
              if change['vm'] == vm and (change['relieved'] or move['vm'] == vm)]
    found += [remedy(episode['began_at'], THROTTLE, vm, episode['host'], {
        name: episode.get(f'slowdowns_{name}', {}).get(vm) for name in ('before', 'after')})
        | {'episode': _episode(vm, episode)} for episode in episodes]
    return sorted(found, key=lambda each: (each['at'], REMEDIES.index(each['remedy']), each['vm']))


def _episode(vm: str, episode: Mapping[str, Any]) -> Document:
    reasons = []
    if episode['slowdowns_before'].get(vm) is None:
        reasons.append('before: no counters of it from just before')
    if 'slowdowns_after' not in episode:
        reasons.append('after: its end was not told' if episode['ended_at'] is None else
                       'after: not measured, or not yet')
    elif episode['slowdowns_after'].get(vm) is None:
        reasons.append('after: no counters of it there')
    return {'resource': episode['resource'], 'until': episode['ended_at'],
            'before': episode['before'], 'least': episode['least'],
            'unit': episode_tracker.UNITS[episode['resource']],
            'reason': '; '.join(reasons) or None}


def _hours(values: Iterable[float]) -> dict[str, float]:
    return {name: float(value) for name, value in zip(('lower', 'hours', 'upper'), values)}


def _sum(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) if known else math.nan
