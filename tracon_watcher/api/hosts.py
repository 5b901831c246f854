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

"""Compute hosts: what the VMs on each suffer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import webob

from tracon_watcher.api import authority
from tracon_watcher.api import faults
from tracon_watcher.api import pages
from tracon_watcher.api import parameters
from tracon_watcher.api import policies
from tracon_watcher.api import state as states
from tracon_watcher.api import vms
from tracon_watcher.characteristics import FloatArray, IntArray
from tracon_watcher.engine import probes
from tracon_watcher.placement import assessment

_PARAMETERS = (*pages.PARAMETERS, 'name', 'type', 'status', 'in_breach', 'min_slowdown')
_STATUSES = tuple(status.name.lower() for status in assessment.Status)

Document = dict[str, Any]


def find(request: webob.Request, caller: authority.Caller, known: states.States,
         largest: int) -> Document:
    """Answer GET /v1/hosts."""
    query = parameters.Query(request.GET, _PARAMETERS, pages.SEVERAL)
    caller.require(policies.HOSTS_LIST, 'listing hosts')
    state = known.now()
    summary = _Summary(state)
    rows = pages.ordered(query, summary.keys(), (('name', 'asc'),), state.host_order(),
                         _chosen(query, state, summary))
    rows, more = pages.page(query, rows, state.cluster.host_index.get, largest)
    listed = [summary.describe(row) for row in rows.tolist()]
    return {'hosts': listed, 'links': pages.links(request, more,
                                                  listed[-1]['name'] if listed else None),
            'state': state.describe()}


def show(caller: authority.Caller, known: states.States, name: str) -> Document:
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
        self.harm = self._sums(np.nansum(now.exponent, axis=0), now.known)
        self.slow = state.slowdown()
        self.statuses = state.statuses()
        self.worst = self._most(self.slow)
        self.predicted = self._most(np.exp(now.exponent[0]))
        self.observed = self._most(state.view.observed)

    def _sums(self, values: FloatArray, known: np.ndarray) -> FloatArray:
        sums: FloatArray = np.bincount(self._state.cluster.host[known], values[known],
                                       minlength=self._count)
        return np.where(self._state.seen(), sums, np.nan)

    def _most(self, values: FloatArray) -> FloatArray:
        most = np.full(self._count, np.nan)
        np.fmax.at(most, self._state.cluster.host, values)
        return most

    def keys(self) -> pages.Keys:
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
