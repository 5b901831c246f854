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

"""The log record that says why hosts were refused, or would have been."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from nova_filters import judgement as judgements
from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray
from tracon_watcher.placement import assessment
from tracon_watcher import tie_breaking

WORST = 10


def content(judged: judgements.Judgement, hosts: BoolArray, outcome: str) -> dict[str, Any]:
    """Return what there is to say of the hosts of a judgement on which a limit is breached.

    :param hosts: (n,) which of the request's hosts it is about
    :param outcome: what came of it
    """
    found = judged.assessment
    assert found is not None
    positions = np.flatnonzero(hosts)
    rows = judged.rows[positions]
    worst = []
    for place in _largest(found.excess[rows]):
        breach = found.breach(int(rows[place]))
        worst.append({'host': judged.states[positions[place]].host, 'vm': breach.vm,
                      'response': breach.response, 'predicted_bound': round(breach.bound, 4),
                      'limit': round(breach.limit, 4)})
    known = judged.rows >= 0
    status = np.full(len(judged.rows), int(assessment.Status.UNKNOWN_HOST))
    status[known] = found.status[judged.rows[known]]
    unknown = {assessment.Status(value).name.lower(): int(count) for value, count in zip(
        *np.unique(status[status != assessment.Status.KNOWN], return_counts=True))}
    return {'instance': judged.uuid, 'outcome': outcome, 'hosts': len(judged.states),
            'breached': len(positions), 'reasons': found.reasons(rows), 'unknown': unknown,
            'expected_from': found.newcomer.source, 'snapshot': found.cluster.version,
            'worst': worst}


def _largest(values: FloatArray) -> IntArray:
    """Return where the largest :data:`WORST` of some values are, of equals the first."""
    places = np.arange(len(values))
    if len(values) > WORST:
        least = np.partition(values, -WORST)[-WORST]
        places = np.flatnonzero(~tie_breaking.less(values, least))
    return places[tie_breaking.argsort(-values[places])[:WORST]]


def text(said: dict[str, Any]) -> str:
    """Return the record: a sentence, then the same as JSON."""
    first = said['worst'][0]
    reasons = ', '.join(f'{reason}: {count}' for reason, count in said['reasons'].items())
    return (f'Interference of instance {said["instance"]}: {said["outcome"]}, '
            f'{said["breached"]} of {said["hosts"]} hosts ({reasons}); worst on {first["host"]}, '
            f'{first["vm"]}: {first["response"]} {first["predicted_bound"]:g} beyond its limit '
            f'{first["limit"]:g} {json.dumps(said, sort_keys=True)}')
