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

"""VMs: how slow each is now, and who causes it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import webob

from tracon_watcher.api import explanations
from tracon_watcher.api import faults
from tracon_watcher.api import parameters
from tracon_watcher.api import policies
from tracon_watcher.api import state as states
from tracon_watcher.characteristics import IntArray, NAMES
from tracon_watcher.placement import assessment
from tracon_watcher.placement import attribution
from tracon_watcher.placement import current_interference

#: What a tenant learns of VMs that are not its own.
ANOTHER = 'another VM'
OTHERS = 'other VMs'

_PARAMETERS = (*parameters.PARAMETERS, 'project_id', 'name', 'host', 'culprit', 'in_breach',
               'min_slowdown')
#: Of these a tenant could tell which of its VMs share a host, and with whom.
_REVEALING = ('host', 'culprit')
_REVEALING_KEYS = ('host', 'harm_to_others', 'project_id')
_SHOWN = 50
_LARGEST_SLOWDOWN = 1e6

Document = dict[str, Any]


def find(request: webob.Request, caller: policies.Caller, known: states.States,
         records: explanations.Records, largest: int) -> Document:
    """Answer GET /v1/vms."""
    query = parameters.Query(request.GET, _PARAMETERS, parameters.SEVERAL)
    caller.require(policies.VMS_LIST, 'listing VMs', caller.project)
    state = known.now()
    open_to = caller.may(policies.VMS_NEIGHBOURS)
    rows = _chosen(query, caller, state)
    if not open_to:
        _refuse_revealing(query)
    rows = parameters.ordered(query, _keys(state), (('uuid', 'asc'),), state.vm_order('uuid'),
                              rows)
    rows, more = parameters.page(query, rows, state.cluster.resident_index.get, largest)
    listed = _counted(describe(state, rows, open_to, caller.project), records, state)
    return {'vms': listed, 'links': parameters.links(request, more,
                                                     listed[-1]['uuid'] if listed else None),
            'state': state.describe()}


def show(caller: policies.Caller, known: states.States, records: explanations.Records,
         gate: explanations.ConcurrencyLimit, uuid: str) -> Document:
    """Answer GET /v1/vms/{uuid}.

    :param gate: for those that work out who are a VM's culprits and victims, among all on its pool
    """
    caller.require(policies.VMS_SHOW, 'showing VMs', caller.project)
    state = known.now()
    row = state.cluster.resident_index.get(uuid)
    if row is None or not caller.may(policies.VMS_SHOW, state.vm(row).project):
        raise faults.NotFound(f'There is no VM {uuid}.',
                              'It may be stopped, or be none of your project.')
    open_to = caller.may(policies.VMS_NEIGHBOURS)
    (found,) = _counted(describe(state, np.array([row], dtype=np.intp), open_to, caller.project),
                        records, state)
    found['demand'] = {name: states.number(value) for name, value in zip(
        NAMES, state.cluster.profiles[row])}
    found.update(_neighbours(state, gate, row, open_to, caller.project))
    return {'vm': found, 'state': state.describe()}


def describe(state: states.State, rows: IntArray, open_to: bool, project: str | None
             ) -> list[Document]:
    """Return what there is to say of VMs.

    :param open_to: whether the caller may see whose the neighbours are
    :param project: of the caller
    """
    cluster, now, blame = state.cluster, state.present(), state.culprits()
    agreement, slow, harm = state.agreement(), state.slowdown(), state.harm()
    error, statuses = states.number(state.view.observed_error), state.statuses()
    efficiency = current_interference.efficiency(slow)
    held, found = state.held_back(), []
    for row in rows.tolist():
        vm = state.vm(row)
        host = int(cluster.host[row])
        known = bool(now.known[row])
        one: Document = {
            'uuid': vm.uuid, 'name': vm.name, 'project_id': vm.project,
            'status': assessment.Status(int(statuses[host])).name.lower(),
            'updated_at': states.iso(float(cluster.updated_at[host])),
            'slowdown': {
                'now': states.number(slow[row]),
                'observed': states.number(state.view.observed[row]),
                'observed_error': error,
                'predicted': states.number(math.exp(now.log_response[0, row])),
                'lower': states.number(math.exp(now.lower[0, row])),
                'upper': states.number(math.exp(now.upper[0, row]))},
            'efficiency': states.number(efficiency[row]),
            'iops_ratio': {
                'predicted': states.number(math.exp(-now.log_response[1, row])),
                'lower': states.number(math.exp(-now.upper[1, row])),
                'upper': states.number(math.exp(-now.lower[1, row]))},
            'limits': {'max_slowdown': states.number(cluster.max_slowdown[row]),
                       'min_iops_ratio': states.number(cluster.min_iops_ratio[row]) or None},
            'background': bool(cluster.background[row]),
            'in_breach': bool(now.breached[:, row].any()) if known else None,
            'agreement': current_interference.Agreement(int(agreement[row])).name.lower(),
            'own_limits': [
                {'name': limit.name, 'value': None if limit.value is None
                 else states.number(limit.value), 'unit': limit.unit,
                 'reached': None if limit.reached is None else states.number(limit.reached)}
                for limit in state.view.own_limits.get(vm.uuid, ())],
            'culprit': None}
        if known and not held[row] and blame.culprit[row] >= 0:
            one['culprit'] = {**_named(state, int(blame.culprit[row]), open_to, project),
                              'share': states.number(blame.share[row])}
        if open_to:
            one['host'] = cluster.hosts[host]
            one['host_type'] = cluster.host_type[host]
            one['harm_to_others'] = states.number(harm[row])
        found.append(one)
    return found


def _counted(listed: list[Document], records: explanations.Records, state: states.State
             ) -> list[Document]:
    """Add for how long each was in breach in this month."""
    counted = records.breaches([one['uuid'] for one in listed], state.now)
    return [{**one, 'breach_seconds': None if counted is None else counted.get(one['uuid'], 0.0)}
            for one in listed]


def _neighbours(state: states.State, gate: explanations.ConcurrencyLimit, row: int, open_to: bool,
                project: str | None) -> Document:
    """Return all culprits of one VM, and all its victims."""
    blamed, harmed = state.neighbours(row, gate.turn)
    told = bool(state.present().known[row]) and not state.held_back()[row]
    return {'culprits': _culprits(state, row, blamed, open_to, project) if told else [],
            'joint': states.number(blamed.joint) if told else None,
            'victims': _victims(state, harmed, open_to, project)}


def _culprits(state: states.State, row: int, blamed: attribution.Attribution, open_to: bool,
              project: str | None) -> list[Document]:
    found: list[Document] = []
    slowdown_increase = max(float(state.view.observed[row]) - 1, 0.0)
    others = 0.0
    for place, other in enumerate(blamed.influence.rows.tolist()):
        share = float(blamed.share[place])
        if not (open_to or _is_own(state, other, project)):
            others += share
        elif len(found) < _SHOWN:
            found.append({
                **_named(state, other, open_to, project), 'share': states.number(share),
                'harm': states.number(blamed.influence.harm[0, place]),
                'slowdown_without': states.number(
                    math.exp(blamed.influence.without[0, place])),
                'observed_part': states.number(slowdown_increase * share)})
    if others:
        # Neither how many they are nor what each does: only what they do together.
        found.append({'uuid': None, 'name': OTHERS, 'share': states.number(others), 'harm': None,
                      'slowdown_without': None,
                      'observed_part': states.number(slowdown_increase * others)})
    return found


def _victims(state: states.State, found: attribution.Influence, open_to: bool,
             project: str | None) -> list[Document]:
    known = state.present().known
    shown = [place for place, other in enumerate(found.rows.tolist())
             if known[other] and (open_to or _is_own(state, other, project))][:_SHOWN]
    return [{**_named(state, int(found.rows[place]), open_to, project),
             'harm': states.number(found.total[place]),
             'slowdown': states.number(math.exp(found.now[0, place])),
             'slowdown_without': states.number(math.exp(found.without[0, place]))}
            for place in shown]


def _is_own(state: states.State, row: int, project: str | None) -> bool:
    return project is not None and state.vm(row).project == project


def _named(state: states.State, row: int, open_to: bool, project: str | None) -> Document:
    vm = state.vm(row)
    if open_to:
        return {'uuid': vm.uuid, 'name': vm.name, 'project_id': vm.project,
                'host': state.cluster.hosts[state.cluster.host[row]]}
    if _is_own(state, row, project):
        return {'uuid': vm.uuid, 'name': vm.name}
    return {'uuid': None, 'name': ANOTHER}


def _chosen(query: parameters.Query, caller: policies.Caller, state: states.State) -> IntArray:
    """Return the rows that the filters leave."""
    cluster = state.cluster
    keep = np.ones(len(cluster.uuids), dtype=bool)
    project = query.text('project_id')
    if not caller.may(policies.VMS_ALL_PROJECTS):
        if project is not None and project != caller.project:
            raise faults.Forbidden(policies.VMS_ALL_PROJECTS, 'VMs of other projects')
        project = caller.project
        keep &= project is not None
    if project is not None:
        numbers, of_vm = state.projects()
        keep &= of_vm == numbers.get(project, -2)
    name = query.text('name')
    if name is not None:
        keep[[row for row in np.flatnonzero(keep).tolist()
              if name not in state.vm(row).name]] = False
    host = query.text('host')
    if host is not None:
        keep &= cluster.host == cluster.host_index.get(host, -2)
    culprit = query.text('culprit')
    if culprit is not None:
        keep &= state.culprits().culprit == cluster.resident_index.get(culprit, -2)
    in_breach = query.boolean('in_breach')
    if in_breach is not None:
        keep &= state.present().breached.any(axis=0) == in_breach
        keep &= state.present().known
    slowest = query.number('min_slowdown', 1.0, _LARGEST_SLOWDOWN)
    if slowest is not None:
        keep &= np.nan_to_num(state.slowdown(), nan=-1.0) >= slowest
    return np.flatnonzero(keep)


def _keys(state: states.State) -> parameters.Keys:
    return {
        'uuid': lambda: state.vm_order('uuid'), 'name': lambda: state.vm_order('name'),
        'project_id': lambda: state.vm_order('project'), 'host': lambda: state.vm_order('host'),
        'slowdown': state.slowdown, 'observed': lambda: state.view.observed,
        'predicted': lambda: state.present().log_response[0],
        'iops_ratio': lambda: -state.present().log_response[1],
        'share': lambda: state.culprits().share, 'harm_to_others': state.harm}


def _refuse_revealing(query: parameters.Query) -> None:
    for name in _REVEALING:
        if name in query:
            raise faults.Forbidden(policies.VMS_NEIGHBOURS, f'the parameter {name}')
    for key in query.all_of('sort_key'):
        if key in _REVEALING_KEYS:
            raise faults.Forbidden(policies.VMS_NEIGHBOURS, f'sort_key={key}')
