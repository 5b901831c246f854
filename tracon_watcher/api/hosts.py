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

"""Resources for hosts and host types, and the summary of the cloud."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import webob

from tracon_watcher.api import faults
from tracon_watcher.api import parameters
from tracon_watcher.api import policies
from tracon_watcher.api import state as states
from tracon_watcher.api import vms
from tracon_watcher.characteristics import FloatArray, IntArray
from tracon_watcher.engine import probes
from tracon_watcher.placement import assessment
from tracon_watcher.placement import current_interference
from tracon_watcher.placement import queues

_PARAMETERS = (*parameters.PARAMETERS, 'name', 'type', 'status', 'in_breach', 'min_slowdown')
_STATUSES = tuple(status.name.lower() for status in assessment.Status)

Document = dict[str, Any]


def find(request: webob.Request, caller: policies.Caller, known: states.States,
         largest: int) -> Document:
    """Answer GET /v1/hosts."""
    query = parameters.Query(request.GET, _PARAMETERS, parameters.SEVERAL)
    caller.require(policies.HOSTS_LIST, 'listing hosts')
    state = known.now()
    summary = _Summary(state)
    rows = parameters.ordered(query, summary.keys(), (('name', 'asc'),), state.host_order(),
                              _chosen(query, state, summary))
    rows, more = parameters.page(query, rows, state.cluster.host_index.get, largest)
    listed = [summary.describe(row) for row in rows.tolist()]
    return {'hosts': listed, 'links': parameters.links(request, more,
                                                       listed[-1]['name'] if listed else None),
            'state': state.describe()}


def show(caller: policies.Caller, known: states.States, name: str) -> Document:
    """Answer GET /v1/hosts/{name}."""
    caller.require(policies.HOSTS_SHOW, 'showing hosts')
    state = known.now()
    row = state.cluster.host_index.get(name)
    if row is None:
        raise faults.NotFound(f'There is no host {name}.',
                              'The name is that of its compute service.')
    found = _Summary(state).describe(row)
    first = state.cluster.first
    own = np.arange(first[row], first[row + 1])
    # Who harms most comes first.
    order = np.lexsort((own, -np.nan_to_num(state.harm()[own], nan=-1.0)))
    found['contention'] = _contention(state, name)
    found['residents'] = vms.describe(state, own[order], True, caller.project)
    return {'host': found, 'state': state.describe()}


def _contention(state: states.State, name: str) -> Document:
    """Return what the sensor of a host feels; what is too old by now is unknown."""
    oldest = state.now - state.assessor.settings.maximum_age
    felt = {phase: one if one.at is not None and one.at >= oldest else probes.SILENT[phase]
            for phase, one in state.view.felt.get(name, probes.SILENT).items()}
    found = {one.state for one in felt.values()}
    beyond = float(state.cluster.felt[state.cluster.host_index[name], 0])
    return {
        # A phase that is unknown may hide contention.
        'state': next(one for one in (probes.CONTENDED, probes.UNKNOWN, probes.QUIET)
                      if one in found),
        'slowdown': math.exp(beyond),
        'phases': {phase: {
            'state': one.state, 'ratio': one.ratio, 'low': one.low,
            'updated_at': states.iso(one.at)}
            for phase, one in felt.items()}}


class _Summary:
    """What the VMs of each of h hosts suffer together."""

    def __init__(self, state: states.State) -> None:
        self._state = state
        cluster, now = state.cluster, state.present()
        self._count = count = len(cluster.hosts)
        self.vms: IntArray = np.bincount(cluster.host, minlength=count).astype(np.intp)
        self.in_breach: IntArray = np.bincount(
            cluster.host, now.breached.any(axis=0), minlength=count).astype(np.intp)
        # What background work suffers counts nothing.
        self.harm = self._sums(np.where(cluster.background, 0.0,
                                        np.nansum(now.log_response, axis=0)), now.known)
        self.slow = state.slowdown()
        self.statuses = state.statuses()
        self.worst = self._most(self.slow)
        self.efficiency = current_interference.efficiency(self.worst)
        self.predicted = self._most(np.exp(now.log_response[0]))
        self.observed = self._most(state.view.observed)

    def _sums(self, values: FloatArray, known: np.ndarray) -> FloatArray:
        sums: FloatArray = np.bincount(self._state.cluster.host[known], values[known],
                                       minlength=self._count)
        return np.where(self._state.seen(), sums, np.nan)

    def _most(self, values: FloatArray) -> FloatArray:
        most = np.full(self._count, np.nan)
        np.fmax.at(most, self._state.cluster.host, values)
        return most

    def keys(self) -> parameters.Keys:
        state = self._state
        return {'name': state.host_order,
                'type': lambda: states.rank(np.array([one or '' for one in
                                                      state.cluster.host_type], dtype=str)),
                'status': state.statuses,
                'updated_at': lambda: state.cluster.updated_at,
                'vms': lambda: self.vms, 'in_breach': lambda: self.in_breach,
                'slowdown': lambda: self.worst, 'harm': lambda: self.harm}

    def describe(self, row: int) -> Document:
        state, cluster = self._state, self._state.cluster
        own = slice(int(cluster.first[row]), int(cluster.first[row + 1]))
        worst = None
        slow = self.slow[own]
        if not np.isnan(slow).all():
            worst = int(cluster.first[row]) + int(np.nanargmax(slow))
        domain = int(cluster.host_io_domain[row])
        return {
            'name': cluster.hosts[row], 'type': cluster.host_type[row],
            'storage': cluster.io_domains[domain].partition(':')[0] if domain >= 0 else None,
            'status': assessment.Status(int(self.statuses[row])).name.lower(),
            'updated_at': states.iso(float(cluster.updated_at[row])), 'vms': int(self.vms[row]),
            'in_breach': int(self.in_breach[row]),
            'slowdown': {'now': states.number(self.worst[row]),
                         'observed': states.number(self.observed[row]),
                         'predicted': states.number(self.predicted[row])},
            'efficiency': states.number(self.efficiency[row]),
            'harm': states.number(self.harm[row]),
            'worst': None if worst is None else {
                'uuid': cluster.uuids[worst], 'name': state.vm(worst).name}}


def _chosen(query: parameters.Query, state: states.State, summary: _Summary) -> IntArray:
    cluster = state.cluster
    keep = np.ones(len(cluster.hosts), dtype=bool)
    name = query.text('name')
    if name is not None:
        keep &= np.array([name in one for one in cluster.hosts], dtype=bool)
    kind = query.text('type')
    if kind is not None:
        keep &= np.array([kind == one for one in cluster.host_type], dtype=bool)
    status = query.choice('status', _STATUSES)
    if status is not None:
        keep &= summary.statuses == _STATUSES.index(status)
    in_breach = query.boolean('in_breach')
    if in_breach is not None:
        keep &= (summary.in_breach > 0) == in_breach
    slowest = query.number('min_slowdown', 1.0, 1e6)
    if slowest is not None:
        keep &= np.nan_to_num(summary.worst, nan=-1.0) >= slowest
    return np.flatnonzero(keep)


def find_types(request: webob.Request, caller: policies.Caller, known: states.States,
               largest: int) -> Document:
    """Answer GET /v1/host_types."""
    query = parameters.Query(request.GET, parameters.PARAMETERS, parameters.SEVERAL)
    caller.require(policies.HOST_TYPES_LIST, 'listing host types')
    state = known.now()
    listed = _describe(state)
    names = [one['host_type'] for one in listed]

    def column(key: str) -> np.ndarray:
        return np.array([math.nan if one[key] is None else one[key] for one in listed])

    keys: parameters.Keys = {
        'host_type': lambda: states.rank(np.array(names, dtype=str)),
        **{key: (lambda key=key: column(key)) for key in (
            'hosts', 'vms', 'vm_hours', 'error', 'trust')}}
    rows = parameters.ordered(query, keys, (('host_type', 'asc'),),
                              states.rank(np.array(names, dtype=str)), np.arange(len(listed)))
    places = {name: place for place, name in enumerate(names)}
    rows, more = parameters.page(query, rows, places.get, largest)
    shown = [listed[row] for row in rows.tolist()]
    return {'host_types': shown, 'links': parameters.links(
        request, more, shown[-1]['host_type'] if shown else None), 'state': state.describe()}


def _describe(state: states.State) -> list[Document]:
    """Return all host types, by name; that of hosts that have none is called ''."""
    cluster = state.cluster
    kinds = np.array([name or '' for name in cluster.host_type], dtype=str)
    found = []
    for name in sorted(set(kinds.tolist())):
        of_type = kinds == name
        cores = np.unique(cluster.cores[of_type & ~np.isnan(cluster.cores)])
        learnt = state.assessor.settings.learnt.get(name, queues.UNCHECKED)
        status = (assessment.Status.UNKNOWN_CORES if not len(cores) else
                  assessment.Status.DRIFTED if learnt.drifted else assessment.Status.KNOWN)
        found.append({
            'host_type': name, 'hosts': int(of_type.sum()),
            'vms': int(of_type[cluster.host].sum()) if len(cluster.host) else 0,
            'cores': [int(one) for one in cores],
            'status': status.name.lower(), 'checked': learnt.vm_hours >= queues.ENOUGH,
            'trust': learnt.trust,
            **{field: value if math.isfinite(value) else None
               for field, value in dataclasses.asdict(learnt).items()}})
    return found


#: Slowdowns between which VMs are counted.
BOUNDS = (1.0, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0)


def show_summary(caller: policies.Caller, known: states.States) -> Document:
    """Answer GET /v1/summary."""
    caller.require(policies.SUMMARY_SHOW, 'the summary')
    state = known.now()
    now, slow = state.present(), state.slowdown()
    of_hosts = np.bincount(state.statuses(), minlength=len(assessment.Status))
    told = slow[~np.isnan(slow)]
    efficiency = current_interference.efficiency(told)
    # What is below 1 is the noise of counters.
    counts = np.bincount(np.clip(np.searchsorted(BOUNDS, told, 'right') - 1, 0, None),
                         minlength=len(BOUNDS))
    return {
        'summary': {
            'vms': len(slow), 'in_breach': int(now.breached.any(axis=0).sum()),
            'unknown': len(slow) - len(told), 'hosts': len(state.cluster.hosts),
            'hosts_by_status': {status.name.lower(): int(of_hosts[status])
                                for status in assessment.Status},
            'efficiency': {'mean': states.number(efficiency.mean()) if len(told) else None},
            'slowdown': {
                'mean': states.number(told.mean()) if len(told) else None,
                'worst': states.number(told.max()) if len(told) else None,
                'distribution': [
                    {'from': low, 'to': high, 'vms': int(count)}
                    for low, high, count in zip(BOUNDS, (*BOUNDS[1:], None), counts)]}},
        'state': state.describe()}
