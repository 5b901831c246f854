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

"""Feedback between audits and the engine: recommended moves, and outcomes of earlier ones."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Iterator, Mapping
import uuid

from oslo_log import log

from tracon_watcher.messaging import engine_client
from tracon_watcher.messaging import protocol
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import placement_constraints
from tracon_watcher.placement import plan as audits
from tracon_watcher.placement import plan

LOG = log.getLogger(__name__)
SCHEMA = 'tracon-move/1'
# An audit is not held up for long by an engine that does not answer.
_PATIENCE = 5.0


@dataclasses.dataclass(frozen=True)
class Feedback:
    """What the engine has learnt of moves; seconds since the epoch.

    :param suspended: until when, by kind
    :param cooldowns: until when, by uuid of a VM
    """

    suspended: Mapping[str, float] = dataclasses.field(default_factory=dict)
    cooldowns: Mapping[str, float] = dataclasses.field(default_factory=dict)


def feedback(connect: protocol.Connect) -> Feedback:
    """Ask the engine; an engine that does not answer has learnt nothing."""
    transport = connect()
    try:
        return Feedback(**engine_client.EngineClient(transport, _PATIENCE).standing())
    except (engine_client.EngineUnavailable, engine_client.EngineRefused) as error:
        LOG.warning('What came of earlier moves is not known for this audit: %s', error)
        return Feedback()
    finally:
        transport.cleanup()


def kind(state: cluster_module.ClusterState, host: str) -> str:
    """Return the kind of moves off a host: what is suspended when such moves do not help."""
    index = state.host_index.get(host)
    host_type = None if index is None else state.host_type[index]
    return f'live migration off {host_type or "an unknown type of host"}'


def heeded(found: placement_constraints.Constraints, learnt: Feedback,
           state: cluster_module.ClusterState, now: float) -> placement_constraints.Constraints:
    """Return the constraints with what was learnt.

    :param now: seconds since the epoch
    """
    immovable = dict(found.immovable)
    suspended = {name for name, until in learnt.suspended.items() if until > now}
    if suspended:
        for row, name in enumerate(state.uuids):
            its_kind = kind(state, state.hosts[state.host[row]])
            if its_kind in suspended:
                immovable.setdefault(name, f'moves of the kind "{its_kind}" are suspended: too '
                                           'few of them helped')
    cooldowns = dict(found.cooldown_until)
    for name, until in learnt.cooldowns.items():
        cooldowns[name] = max(until, cooldowns.get(name, until))
    return dataclasses.replace(found, immovable=immovable, cooldown_until=cooldowns)


def documents(made: plan.Plan, state: cluster_module.ClusterState, audit: str | None,
              now: float) -> Iterator[dict[str, Any]]:
    """Yield what the engine is told of each move, and of what is left.

    :param audit: Watcher's uuid
    """
    if audit:
        yield audits.audit_document(made, audit, now)
    for move in made.moves:
        changes = {one.uuid: one for one in move.changes
                   if math.isfinite(one.slowdown_before + one.slowdown_after)}
        if move.uuid not in changes:
            continue
        yield {'schema': SCHEMA, 'id': str(uuid.uuid4()), 'kind': kind(state, move.source),
               'own': _effect(changes[move.uuid]),
               'relieved': [_effect(changes[name]) for name in move.relieves
                            if name in changes and name != move.uuid],
               'changes': [_change(one) for one in changes.values()],
               'source': move.source, 'destination': move.destination,
               'reason': f'gain {move.gain:.3f} for a cost of {move.cost:.3f}, ends {move.ended} '
                         'breaches',
               'decided_at': now, **({'audit': audit} if audit else {})}


def _change(change: plan.PredictedEffect) -> dict[str, Any]:
    return {'vm': change.uuid,
            **{name: {'predicted': value, **{bound: number for bound, number in zip(
                ('lower', 'upper'), bounds) if math.isfinite(number)}, 'in_breach': breached}
               for name, value, bounds, breached in (
                   ('before', change.slowdown_before, change.bounds_before, change.breach_before),
                   ('after', change.slowdown_after, change.bounds_after, change.breach_after))}}


def _effect(change: plan.PredictedEffect) -> dict[str, Any]:
    return {'vm': change.uuid, 'before': change.slowdown_before, 'after': change.slowdown_after}
