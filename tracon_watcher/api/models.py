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

"""Models: of which host type and response, how good, and what is in them."""

from __future__ import annotations

from typing import Any, Iterator, Mapping

import numpy as np
import webob

from tracon_watcher.api import authority
from tracon_watcher.api import faults
from tracon_watcher.api import pages
from tracon_watcher.api import parameters
from tracon_watcher.api import policies
from tracon_watcher.api import state as states
from tracon_watcher.prediction import pairwise

_PARAMETERS = (*pages.PARAMETERS, 'host_type', 'response')

Document = dict[str, Any]


def find(request: webob.Request, caller: authority.Caller, known: states.States,
         largest: int) -> Document:
    """Answer GET /v1/models."""
    query = parameters.Query(request.GET, _PARAMETERS, pages.SEVERAL)
    caller.require(policies.MODELS_LIST, 'listing models')
    state = known.now()
    models = [(name, model) for name, model in _models(state)
              if query.text('host_type') in (None, model.host_type)
              and query.text('response') in (None, model.response)]
    names = np.array([name for name, _model in models], dtype=str)
    listed = [_describe(state, name, model) for name, model in models]

    def texts(key: str) -> np.ndarray:
        return states.rank(np.array([one[key] for one in listed], dtype=str))

    keys: pages.Keys = {
        'id': lambda: texts('id'), 'host_type': lambda: texts('host_type'),
        'response': lambda: texts('response'),
        'hosts': lambda: np.array([one['hosts'] for one in listed]),
        'vms': lambda: np.array([one['vms'] for one in listed])}
    rows = pages.ordered(query, keys, (('id', 'asc'),), states.rank(names),
                         np.arange(len(listed)))
    places = {str(name): place for place, name in enumerate(names)}
    rows, more = pages.page(query, rows, places.get, largest)
    shown = [listed[row] for row in rows.tolist()]
    return {'models': shown, 'links': pages.links(request, more,
                                                  shown[-1]['id'] if shown else None),
            'state': state.describe()}


def show(caller: authority.Caller, known: states.States, name: str) -> Document:
    """Answer GET /v1/models/{id}."""
    caller.require(policies.MODELS_SHOW, 'showing models')
    state = known.now()
    for found, model in _models(state):
        if found == name:
            return {'model': {**_describe(state, name, model),
                              'document': model.to_document()}, 'state': state.describe()}
    raise faults.NotFound(f'There is no model {name}.',
                          'GET /v1/models lists them; the id is host type, "-", response.')


def _models(state: states.State) -> Iterator[tuple[str, pairwise.PairwiseModel]]:
    for host_type in sorted(state.assessor.models):
        for model in state.assessor.models[host_type]:
            yield f'{host_type}-{model.response}', model


def _describe(state: states.State, name: str, model: pairwise.PairwiseModel) -> Document:
    cluster = state.cluster
    of_type = np.array([one == model.host_type for one in cluster.host_type], dtype=bool)
    return {'id': name, 'host_type': model.host_type, 'response': model.response,
            'hosts': int(of_type.sum()),
            'vms': int(of_type[cluster.host].sum()) if len(cluster.host) else 0,
            'errors': dict(model.errors), 'training': dict(model.training),
            'source': _source(model), 'trust': state.view.trust.get(model.host_type, 1.0),
            'drift_alarms': state.view.alarms.get(model.host_type, 0)}


def _source(model: pairwise.PairwiseModel) -> Document:
    """Return where a model comes from: a file, or slowdowns that were observed."""
    refit = model.training.get('refit')
    if not isinstance(refit, Mapping):
        return {'kind': 'file', 'how': None, 'at': None}
    return {'kind': 'refit', 'how': refit.get('how'), 'at': states.iso(refit.get('at'))}
