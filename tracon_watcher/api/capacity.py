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

"""Resource for the idle capacity of hosts, and the part of it that background work may have."""

from __future__ import annotations

from typing import Any

import numpy as np
import webob

from tracon_watcher.api import parameters
from tracon_watcher.api import policies
from tracon_watcher.api import state as states
from tracon_watcher.characteristics import FloatArray, IntArray
from tracon_watcher.engine import idle_shares
from tracon_watcher.placement import assessment
from tracon_watcher.placement import background_capacity

PERCENTILES = (5, 25, 50, 75, 95)
HOST, HOUR, CLOUD = GROUPS = ('host', 'hour', 'cloud')
_DAY = 24
_NUMBERS = ('cores', 'idle_cores', 'background_cores')

Document = dict[str, Any]


def find(request: webob.Request, caller: policies.Caller, known: states.States,
         largest: int) -> Document:
    """Answer GET /v1/capacity."""
    query = parameters.Query(request.GET, (*parameters.PARAMETERS, 'by'), parameters.SEVERAL)
    caller.require(policies.CAPACITY_LIST, 'listing idle capacity')
    state = known.now()
    table = _Table(state, query.choice('by', GROUPS) or HOST)
    rows = parameters.ordered(query, table.keys(), (('name', 'asc'),), table.order,
                              np.arange(len(table.names)))
    rows, more = parameters.page(
        query, rows, {name: row for row, name in enumerate(table.names)}.get, largest)
    listed = [table.describe(row) for row in rows.tolist()]
    hours = state.view.idle.hours
    return {'capacity': listed,
            'hours': {'count': len(hours),
                      'from': states.iso(hours[0] * idle_shares.HOUR) if hours else None,
                      'to': states.iso((hours[-1] + 1) * idle_shares.HOUR) if hours else None},
            'links': parameters.links(request, more, listed[-1]['name'] if listed else None),
            'state': state.describe()}


class _Table:
    """Rows of hosts, of hours of the day (UTC), or one row of the cloud."""

    def __init__(self, state: states.State, by: str) -> None:
        self._state, self._by = state, by
        cluster, shares = state.cluster, state.view.idle
        place = {name: index for index, name in enumerate(shares.hosts)}
        # A host without counters has an unknown idle share in each hour.
        column = np.array([place.get(name, -1) for name in cluster.hosts], dtype=np.intp)
        padded = np.append(shares.values,
                           np.full((len(shares.hours), 1, len(idle_shares.RESOURCES)), np.nan), 1)
        #: (t, h, 3)
        self._values = padded[:, column]
        self._hours: IntArray = np.array(shares.hours, dtype=np.intp) % _DAY
        self.names: tuple[str, ...] = (
            cluster.hosts if by == HOST else
            tuple(f'{hour:02}' for hour in range(_DAY)) if by == HOUR else ('all',))
        self.order = states.rank(np.array(self.names, dtype=str))

    def keys(self) -> parameters.Keys:
        found: dict[str, Any] = {'name': lambda: self.order}
        for index, name in enumerate(idle_shares.RESOURCES):
            found[name] = lambda index=index: np.array([
                _mean(self._of(row)[:, index]) for row in range(len(self.names))])
        if self._by == HOST:
            found.update({name: lambda name=name: self._now()[name] for name in _NUMBERS})
        return found

    def describe(self, row: int) -> Document:
        values = self._of(row)
        found: Document = {'name': self.names[row], 'idle': {
            name: _distribution(values[:, index])
            for index, name in enumerate(idle_shares.RESOURCES)}}
        if self._by == HOUR:
            return found
        state, now = self._state, self._now()
        chosen = np.arange(len(state.cluster.hosts)) if self._by == CLOUD else np.array([row])
        known = chosen[~np.isnan(now['background_cores'][chosen])]
        limited = now['limited']
        return {**found, 'hosts': len(chosen), 'unknown_hosts': len(chosen) - len(known),
                # Of those whose VMs are known; the others are counted, and not zero.
                **{name: states.number(now[name][known].sum()) if len(known) else None
                   for name in _NUMBERS},
                'vms': int(now['vms'][chosen].sum()), 'limited_vms': int(limited[chosen].sum())}

    def _of(self, row: int) -> FloatArray:
        """Return the idle shares that a row is about, (m, 3)."""
        if self._by == HOST:
            return np.asarray(self._values[:, row])
        some = self._values[self._hours == row] if self._by == HOUR else self._values
        return some.reshape(-1, len(idle_shares.RESOURCES))

    def _now(self) -> dict[str, FloatArray]:
        """Return numbers of the present by name, (h,) each; NaN where unknown."""
        state, cluster = self._state, self._state.cluster
        count = len(cluster.hosts)
        stale = state.statuses() == assessment.Status.STALE

        def work() -> dict[str, FloatArray]:
            limited = np.isfinite(cluster.max_slowdown) | (cluster.min_iops_ratio > 0)
            return {
                'cores': cluster.cores,
                'idle_cores': background_capacity.idle_cores(state.assessor, state.now),
                'background_cores': background_capacity.background_cores(
                    state.assessor, state.now),
                'vms': np.bincount(cluster.host, minlength=count).astype(float),
                'limited': np.bincount(cluster.host, limited, count).astype(float)}

        # What has become stale since is unknown.
        return {name: values if name in ('cores', 'vms', 'limited') else
                np.where(stale, np.nan, values)
                for name, values in state.slowly_once('capacity', work).items()}


def _mean(values: FloatArray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float('nan')


def _distribution(values: FloatArray) -> Document:
    """Return mean and percentiles of what is known of (m,) idle shares, and how many are not."""
    known = values[~np.isnan(values)]
    return {
        'mean': states.number(_mean(values)),
        'percentiles': {str(percent): states.number(value) for percent, value in zip(
            PERCENTILES, np.percentile(known, PERCENTILES))} if len(known) else None,
        'known': len(known), 'unknown': len(values) - len(known)}
