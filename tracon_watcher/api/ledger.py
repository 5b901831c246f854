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

"""Resource for the ledger of moves."""

from __future__ import annotations

import math
from typing import Any, Mapping

import webob

from tracon_watcher.api import explanations
from tracon_watcher.api import faults
from tracon_watcher.api import parameters
from tracon_watcher.api import policies
from tracon_watcher.api import state as states
from tracon_watcher.engine import ledger

_WEEK = 7 * 86400.0
#: Weeks by default, and at most; records are kept for no longer than a year by default.
_DEFAULT, _MOST = 12, 520
#: Moves that are read at a time.
_PAGE = 1000

Document = dict[str, Any]


def show(request: webob.Request, caller: policies.Caller, known: states.States,
         records: explanations.Records) -> Document:
    """Answer GET /v1/ledger."""
    query = parameters.Query(request.GET, ('weeks', 'moves', 'vm'))
    caller.require(policies.MOVES_LIST, 'the ledger of moves')
    weeks = query.positive('weeks') or _DEFAULT
    if weeks > _MOST:
        raise faults.InvalidParameter('weeks', weeks, f'1 to {_MOST}')
    detailed, victim = query.boolean('moves'), query.text('vm')
    state = known.now()
    made: list[Mapping[str, Any]] = []
    since, marker = state.now - weeks * _WEEK, None
    while True:
        page = records.moves({'audit': None, 'vm': None, 'state': 'succeeded'}, marker, _PAGE)
        made += [one for one in page or () if one['ended_at'] >= since]
        # They are in the order of their decisions, which come before their ends.
        if not page or len(page) < _PAGE or page[-1]['decided_at'] < since - _WEEK:
            break
        marker = page[-1]['id']
    if victim is not None:
        row = state.cluster.resident_index.get(victim)
        host = None if row is None else state.cluster.hosts[state.cluster.host[row]]
        return {'ledger': {'remedies': [_remedy(one, state) for one in ledger.remedies(
            victim, *records.told(victim, host), made) if one['at'] >= since]},
            'state': state.describe()}
    entries = ledger.entries(made, state.view.observed_error, state.now)
    found: Document = {'weeks': [_rounded(one) for one in ledger.weeks(entries)]}
    if detailed:
        found['moves'] = [_described(one, state) for one in entries]
    return {'ledger': found, 'state': state.describe()}


def _rounded(one: Mapping[str, Any]) -> Document:
    return {**one, **{name: {field: states.number(value) for field, value in one[name].items()}
                      for name in ('gain', 'avoided')}}


def _remedy(one: Mapping[str, Any], state: states.State) -> Document:
    found = {**one, 'at': states.iso(one['at']), 'vm': states.reference(state, one['vm']),
             'measured': [states.number(value) for value in one['measured']]}
    if 'episode' in one:
        found['episode'] = {**one['episode'], 'until': states.iso(one['episode']['until'])}
    return found


def _described(one: Mapping[str, Any], state: states.State) -> Document:
    return {
        **_rounded(one), 'vm': states.reference(state, one['vm']),
        'ended_at': states.iso(one['ended_at']),
        'slowdowns': [{**each, 'vm': states.reference(state, each['vm']), 'measured': [
            None if math.isnan(value) else value for value in each['measured']]}
            for each in one['slowdowns']]}
