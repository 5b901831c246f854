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

"""The cloud in numbers: how many VMs suffer how much, and what that rests on."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracon_watcher.api import authority
from tracon_watcher.api import policies
from tracon_watcher.api import state as states
from tracon_watcher.placement import assessment

#: Slowdowns between which VMs are counted.
BOUNDS = (1.0, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0)

Document = dict[str, Any]


def show(caller: authority.Caller, known: states.States) -> Document:
    """Answer GET /v1/summary."""
    caller.require(policies.SUMMARY_SHOW, 'the summary')
    state = known.now()
    now, slow = state.present(), state.slowdown()
    of_hosts = np.bincount(state.statuses(), minlength=len(assessment.Status))
    told = slow[~np.isnan(slow)]
    # What is below 1 is the noise of counters.
    counts = np.bincount(np.clip(np.searchsorted(BOUNDS, told, 'right') - 1, 0, None),
                         minlength=len(BOUNDS))
    return {
        'summary': {
            'vms': len(slow), 'in_breach': int(now.breached.any(axis=0).sum()),
            'unknown': len(slow) - len(told), 'hosts': len(state.cluster.hosts),
            'hosts_by_status': {status.name.lower(): int(of_hosts[status])
                                for status in assessment.Status},
            'slowdown': {
                'mean': states.number(told.mean()) if len(told) else None,
                'worst': states.number(told.max()) if len(told) else None,
                'distribution': [
                    {'from': low, 'to': high, 'vms': int(count)}
                    for low, high, count in zip(BOUNDS, (*BOUNDS[1:], None), counts)]}},
        'state': state.describe()}
