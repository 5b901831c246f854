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
"""Answers questions about host types: what was learnt of each, and how far it is trusted."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import webob

from tracon_watcher.api import authority
from tracon_watcher.api import pages
from tracon_watcher.api import parameters
from tracon_watcher.api import policies
from tracon_watcher.api import state as states
from tracon_watcher.placement import assessment
from tracon_watcher.placement import queues

Document = dict[str, Any]


def find(request: webob.Request, caller: authority.Caller, known: states.States,
         largest: int) -> Document:
    """Answer GET /v1/host_types."""
    query = parameters.Query(request.GET, pages.PARAMETERS, pages.SEVERAL)
    caller.require(policies.HOST_TYPES_LIST, 'listing host types')
    state = known.now()
    listed = _describe(state)
    names = [one['host_type'] for one in listed]

    def column(key: str) -> np.ndarray:
        return np.array([math.nan if one[key] is None else one[key] for one in listed])

    keys: pages.Keys = {
        'host_type': lambda: states.rank(np.array(names, dtype=str)),
        **{key: (lambda key=key: column(key)) for key in (
            'hosts', 'vms', 'vm_hours', 'error', 'trust')}}
    rows = pages.ordered(query, keys, (('host_type', 'asc'),),
                         states.rank(np.array(names, dtype=str)), np.arange(len(listed)))
    places = {name: place for place, name in enumerate(names)}
    rows, more = pages.page(query, rows, places.get, largest)
    shown = [listed[row] for row in rows.tolist()]
    return {'host_types': shown, 'links': pages.links(
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
