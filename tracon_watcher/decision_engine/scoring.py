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

"""Scoring engines: the two production models, for whoever asks Watcher."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from oslo_config import cfg
from watcher.decision_engine.scoring import base

from tracon_watcher import characteristics
from tracon_watcher.conf import decision_engine as options
from tracon_watcher.decision_engine import source
from tracon_watcher import errors
from tracon_watcher.messaging import protocol

_FEATURES = ('host_type', 'target', 'background')
_MEANING = {'slowdown': 'slowdown: time per unit of work, over the same alone',
            'iops_ratio': 'IOPS ratio: I/O operations per second, over the same alone'}


class ResponseScorer(base.ScoringEngine):
    """Predicts one response of a target VM in a background, by the model of its host's type."""

    def __init__(self, response: str) -> None:
        super().__init__(config=None)
        self._response = response

    def get_name(self) -> str:
        return f'tracon_{self._response}'

    def get_description(self) -> str:
        return f'Predicts a VM\'s {_MEANING[self._response]}'

    def get_metainfo(self) -> str:
        """Return, as JSON, what the features are."""
        return json.dumps({
            'features': list(_FEATURES), 'characteristics': list(characteristics.NAMES),
            'units': list(characteristics.UNITS), 'response': self._response})

    def calculate_score(self, features: str) -> str:
        """Predict.

        :param features: JSON object: ``host_type``, and the four characteristics each of
            ``target`` and ``background``, one neighbour
        :returns: JSON object: ``score``; ``clamped``, whether the features lie outside of what the
            model was trained on; ``trust``, from 0 to 1, how far predictions and observations
            still agree
        :raises tracon_watcher.errors.TraconError: naming the feature that is wrong, or why there
            is no snapshot
        """
        host_type, target, background = _parse(features)
        options.register_opts(cfg.CONF)
        configured = cfg.CONF[options.GROUP.name]
        content = source.read('', configured,
                              protocol.connector(cfg.CONF, configured.transport_url))
        models = content.models
        if host_type not in models:
            raise errors.InvalidOption('host_type', host_type, 'the snapshot has models of '
                                       + (', '.join(sorted(models)) or 'no host type'))
        model = getattr(models[host_type], self._response)
        outside = model.outside(target) | model.beyond(background)
        return json.dumps({'score': float(model.predict(target, background)[0]),
                           'clamped': bool(outside[0]),
                           'trust': content.trust.get(host_type, 1.0)})


class InterferenceScoringContainer(base.ScoringEngineContainer):
    """One scoring engine a response."""

    @classmethod
    def get_scoring_engine_list(cls) -> list[base.ScoringEngine]:
        """Return the scoring engines."""
        return [ResponseScorer(response) for response in _MEANING]


def _parse(features: str) -> tuple[str, Any, Any]:
    try:
        given = json.loads(features)
    except ValueError as error:
        raise errors.InvalidOption('features', features, f'expected JSON: {error}') from None
    if not isinstance(given, dict) or set(given) != set(_FEATURES):
        raise errors.InvalidOption('features', given,
                                   f'expected an object of {", ".join(_FEATURES)}')
    values = []
    for name in _FEATURES[1:]:
        try:
            value = characteristics.as_characteristics(given[name])
        except (TypeError, ValueError) as error:
            raise errors.InvalidOption(name, given[name], str(error)) from None
        if len(value) != 1 or np.isnan(value).any():
            raise errors.InvalidOption(name, given[name], 'expected four numbers')
        values.append(value)
    return str(given['host_type']), values[0], values[1]
