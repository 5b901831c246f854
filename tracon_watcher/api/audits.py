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

"""Resources for results of audits and for recommended moves."""

from __future__ import annotations

import functools
import re
from typing import Any, Mapping

import webob

from tracon_watcher.api import explanations
from tracon_watcher.api import faults
from tracon_watcher.api import parameters
from tracon_watcher.api import policies
from tracon_watcher.api import state as states
from tracon_watcher.engine import view as views

#: Stands for the audit that told last.
LATEST = 'latest'
_UUID = re.compile('[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')

Document = dict[str, Any]


def show(caller: policies.Caller, known: states.States, records: explanations.Records,
         name: str) -> Document:
    """Return what an audit told last.

    :param name: Watcher's uuid, or :data:`LATEST`
    """
    caller.require(policies.AUDITS_SHOW, 'audits')
    found = records.audit(None if name == LATEST else name)
    if found is None:
        raise faults.NotFound(
            'No audit has told of anything.' if name == LATEST else f'Audit {name} has told of '
            'nothing.', 'Audits of the strategy tracon_interference tell when they have run; '
            'what they tell is kept for a time.')
    state = known.present()
    names = {} if state is None else state.view.vms
    call = functools.partial(states.reference, state)
    return {'audit': {
        **found, 'at': states.iso(found['at']),
        'moves': [{**one, 'vm': call(one['vm'])} for one in found['moves']],
        # What audits of earlier releases told is in the database without them.
        **{name: [{**one, 'vm': call(one['vm']), 'ends': list(map(call, one['ends'])),
                   'effects': [{**each, 'vm': call(each['vm'])}
                               for each in one.get('effects', ())]}
                  for one in found.get(name, ())] for name in ('removals', 'past')},
        'hosts': [{
            **host, 'breaches': [{**one, 'vm': call(one['vm'])} for one in host['breaches']],
            'options': [{**one, 'vm': call(one['vm']), 'ends': list(map(call, one['ends'])),
                         'why': named(one['why'], names)}
                        for one in host['options']]} for host in found['hosts']]}}


def named(why: str, names: Mapping[str, views.VM]) -> str:
    """Return a reason with the names of VMs in place of uuids, as far as they are known."""
    return _UUID.sub(lambda found: names[found[0]].name if found[0] in names else found[0], why)


_FILTERS = ('audit', 'state', 'vm')
#: In a page: each tells of all VMs on two hosts.
_MOST = 100
_STATES = ('recommended', 'started', 'succeeded', 'failed')


def find(request: webob.Request, caller: policies.Caller, known: states.States,
         records: explanations.Records, largest: int) -> Document:
    """Answer GET /v1/moves, the latest first."""
    query = parameters.Query(request.GET, ('limit', 'marker', *_FILTERS))
    caller.require(policies.MOVES_LIST, 'listing moves')
    query.choice('state', _STATES)
    limit = min(query.positive('limit') or _MOST, _MOST, largest)
    found = records.moves({name: query.text(name) for name in _FILTERS}, query.text('marker'),
                          limit + 1)
    if found is None:
        raise faults.InvalidParameter('marker', query.text('marker'), 'the id of the last move of '
                                      'the page before; it is kept no more, begin again without')
    shown = list(found[:limit])
    state = known.present()
    return {'moves': [_described(one, state) for one in shown],
            'links': parameters.links(request, len(found) > limit,
                                      shown[-1]['id'] if shown else None),
            'state': None if state is None else state.describe()}


def _described(move: Mapping[str, Any], state: states.State | None) -> Document:
    call = functools.partial(states.reference, state)
    return {
        **move, 'vm': call(move['vm']),
        **{name: states.iso(move[name]) for name in ('decided_at', 'started_at', 'ended_at')},
        'changes': [{**one, 'vm': call(one['vm'])} for one in move['changes']],
        'outcomes': [{
            **one, 'measured_at': states.iso(one['measured_at']), 'due_at': states.iso(
                one['due_at']),
            'slowdowns': [{'vm': call(vm), 'observed': states.number(value)}
                          for vm, value in one['slowdowns'].items()]}
            for one in move['outcomes']]}
