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

"""Watcher's action plans of the strategy, beside what the engine knows of their moves."""

from __future__ import annotations

from typing import Any, Iterator, Sequence

from tracon_dashboard import api

STRATEGY = 'tracon_interference'
RECOMMENDED = 'RECOMMENDED'

Document = dict[str, Any]


def moves_of(plan: Document, moves: Sequence[Document]) -> list[Document]:
    """Return the moves of a plan among those that its audit recommended.

    An audit that runs again and again has several plans. A plan's moves were all decided on at
    one moment, the latest one before the plan was made.
    """
    # Both are times of the decision engine's host, in UTC, to the second.
    made = str(plan['created_at'])[:19]
    found = [one for one in moves
             if one['audit'] == plan['audit_uuid'] and one['decided_at'][:19] <= made]
    latest = max((one['decided_at'] for one in found), default=None)
    if not efficacy(plan).get('live_migrations_count'):
        return []
    return [one for one in found if one['decided_at'] == latest]


def efficacy(plan: Document) -> dict[str, float]:
    """Return what a plan is expected to bring, by name of the indicator."""
    return {one['name']: one['value'] for one in plan['efficacy_indicators'] or ()}


def migrations(request: Any, plan: Document) -> Iterator[Document]:
    """Yield each migration of a plan, with ``move``, what the engine knows of it (or None)."""
    moves = {(one['vm']['uuid'], one['destination']): one for one in moves_of(plan, api.get(
        request, 'moves', audit=plan['audit_uuid'])['moves'])}
    for action in api.get(request, 'actions', 'detail', service=api.WATCHER,
                          action_plan_uuid=plan['uuid'])['actions']:
        given = action['input_parameters'] or {}
        if action['action_type'] != 'migrate':
            continue
        vm, destination = given.get('resource_id'), given.get('destination_node')
        move = moves.get((vm, destination))
        yield {'vm': move['vm'] if move else {'uuid': vm, 'name': given.get('resource_name')},
               'source': given.get('source_node'), 'destination': destination,
               'state': action['state'], 'told': action.get('status_message'),
               'move': move and {**move, 'changes': list(_changes(move))}}


def _changes(move: Document) -> Iterator[Document]:
    """Yield what a move does to each VM, with what was measured of it afterwards."""
    for change in sorted(move['changes'], key=lambda one: (
            one['vm'] != move['vm'], not one['relieved'],
            one['after']['predicted'] / one['before']['predicted'])):
        yield {**change, 'moves': change['vm'] == move['vm'], 'measured': [
            next((one['observed'] for one in outcome['slowdowns']
                  if one['vm']['uuid'] == change['vm']['uuid']), None)
            for outcome in move['outcomes']]}
