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

"""Resource for what-if analyses: a host that is down, a new VM, a live migration."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Iterable

import webob

from tracon_watcher.api import audits
from tracon_watcher.api import explanations
from tracon_watcher.api import faults
from tracon_watcher.api import parameters
from tracon_watcher.api import policies
from tracon_watcher.api import state as states
from tracon_watcher.placement import explanation
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import plan
from tracon_watcher.placement import storage_backends
from tracon_watcher.placement import what_if

#: Each question with its parameters.
_QUESTIONS = (('host_down',), ('flavor', 'image', 'project_id'), ('vm', 'host'))
#: Names that are suggested.
_SUGGESTED = 10

Document = dict[str, Any]


def show(request: webob.Request, caller: policies.Caller, known: states.States,
         gate: explanations.ConcurrencyLimit) -> Document:
    """Answer GET /v1/what_if.

    :param gate: for these questions, which assess many hosts
    """
    names = [name for question in _QUESTIONS for name in question]
    query = parameters.Query(request.GET, names)
    caller.require(policies.WHAT_IF_SHOW, 'what-if analyses')
    given = tuple(name for name in names if name in query)
    if given not in _QUESTIONS:
        raise faults.InvalidParameter('parameters', ', '.join(given), ', or '.join(
            ' and '.join(question) for question in _QUESTIONS))
    state = known.now()
    values = [query.text(name) or '' for name in given]
    answer = dict(zip(_QUESTIONS, (_host_down, _boot, _migrate)))[given]
    with gate.turn():
        return {'what_if': answer(state, *values), 'state': state.describe()}


def _host_down(state: states.State, name: str) -> Document:
    host = _host(state, name)
    found = what_if.evacuate(state.assessor, host, state.now)
    return {
        'host': name, 'assessed': found.assessed, 'hosts': len(state.cluster.hosts) - 1,
        'moves': [{'vm': _vm(state, uuid), 'destination': destination,
                   'refused': uuid in found.refused}
                  for uuid, destination in found.destinations.items()],
        **_changes(state, found.effects, found.destinations)}


def _migrate(state: states.State, vm: str, name: str) -> Document:
    row = state.cluster.resident_index.get(vm)
    if row is None:
        raise faults.NotFound(f'There is no VM {vm}.', 'It may be stopped; give the uuid of a VM '
                              'that runs.')
    host, source = _host(state, name), int(state.cluster.host[row])
    if host == source:
        raise faults.InvalidParameter('host', name, 'another host than that of the VM')
    obstacle, effects = what_if.migrate(state.assessor, vm, host, state.now)
    return {
        'vm': _vm(state, vm), 'source': state.cluster.hosts[source], 'destination': name,
        'against': None if obstacle is None else obstacle.against.value,
        'why': None if obstacle is None else audits.named(obstacle.why, state.view.vms),
        **_changes(state, effects, {vm: name})}


def _boot(state: states.State, flavor: str, image: str, project: str) -> Document:
    """Explain the placement of a VM that does not exist.

    Virtual CPUs, weight and limits are those of a VM of the flavor.
    """
    kinds = {name: {getattr(one, name) for one in state.view.vms.values()}
             for name in ('flavor', 'image', 'project')}
    for name, value, remedy in (
            ('flavor', flavor, 'Give the name of a flavor that VMs have'),
            ('image', image, 'Give the id of an image that VMs have, or none for a VM that boots '
             'from a volume'),
            ('project', project, 'Give the id of a project that has VMs, or none for any')):
        if value not in kinds[name] and (value or name == 'flavor'):
            some = sorted(kinds[name] - {''})
            raise faults.NotFound(
                f'No VM that runs is of the {name} {value!r}, so nothing is known of its VMs.',
                f'{remedy}: ' + ', '.join(some[:_SUGGESTED])
                + (', …' if len(some) > _SUGGESTED else '') + '.')
    cluster = state.cluster
    row = cluster.resident_index[min(uuid for uuid, one in state.view.vms.items()
                                     if one.flavor == flavor)]
    profile = storage_backends.felt(cluster, dataclasses.replace(
        newcomer_profiles.expected(cluster.history, project, flavor, image),
        vcpus=int(cluster.vcpus[row]), cpu_weight=float(cluster.cpu_weight[row])),
        newcomer_profiles.on_volume(image))
    decision, judged = explanation.of_newcomer(
        state.assessor, profile, cluster.resident_limits(row), state.now)
    return explanations.explained(decision, state, judged)


def _host(state: states.State, name: str) -> int:
    host = state.cluster.host_index.get(name)
    if host is None:
        raise faults.NotFound(f'There is no host {name}.',
                              'The name is that of its compute service.')
    return host


def _changes(state: states.State, effects: Iterable[plan.PredictedEffect],
             destinations: Any) -> Document:
    """Describe the effects on the VMs that are affected."""
    effects = list(effects)
    changes = what_if.affected(effects, destinations)
    return {
        'unaffected': len(effects) - len(changes),
        'changes': [{
            'vm': _vm(state, one.uuid), 'host': _host_of(state, one.uuid),
            'destination': destinations.get(one.uuid),
            'moves': one.uuid in destinations,
            'limit': states.number(state.cluster.max_slowdown[
                state.cluster.resident_index[one.uuid]]),
            'before': _prediction(one.slowdown_before, one.bounds_before, one.breach_before),
            'after': _prediction(one.slowdown_after, one.bounds_after, one.breach_after)}
            for one in changes]}


def _prediction(slowdown: float, bounds: tuple[float, float], breach: bool) -> Document:
    return {'predicted': states.number(slowdown), 'lower': states.number(bounds[0]),
            'upper': states.number(bounds[1]),
            'in_breach': None if math.isnan(slowdown) else breach}


def _vm(state: states.State, uuid: str) -> Document:
    return {'uuid': uuid, 'name': state.vm(state.cluster.resident_index[uuid]).name or None}


def _host_of(state: states.State, uuid: str) -> str:
    return state.cluster.hosts[state.cluster.host[state.cluster.resident_index[uuid]]]
