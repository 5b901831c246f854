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

"""Scoring engines: what a VM suffers beside others on a host, for users who ask Watcher."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from oslo_config import cfg
from watcher.decision_engine.scoring import base

from tracon_watcher import characteristics
from tracon_watcher.conf import decision_engine as options
from tracon_watcher.decision_engine import snapshot_source
from tracon_watcher import document
from tracon_watcher import errors
from tracon_watcher.messaging import protocol
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import current_interference
from tracon_watcher.placement import snapshot_lines

_MEANING = {'slowdown': 'slowdown: time per unit of work, over the same alone',
            'iops_ratio': 'IOPS ratio: I/O operations per second, over the same alone'}
_HOST = ('cores', 'vms', 'host_type')
_VM = ('profile', 'vcpus', 'storage_wait')


class ResponseScorer(base.ScoringEngine):
    """Predicts one response of a VM beside others, by the law of queueing."""

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
            'features': list(_HOST), 'vm': list(_VM),
            'profile': list(characteristics.NAMES), 'units': list(characteristics.UNITS),
            'response': self._response})

    def calculate_score(self, features: str) -> str:
        """Predict.

        :param features: JSON object: ``cores`` of a host; ``vms`` that share them and the host's
            own disk, the one that is scored first, each with its ``profile`` (reads and writes a
            second, guest and host CPU in cores, alone), ``vcpus`` and ``storage_wait``, the part
            of its time alone that a vCPU waits for storage, null where unknown; ``host_type``, of
            which the snapshot says what was learnt, null for none
        :returns: JSON object: ``score``, and ``lower`` and ``upper``, its one-sided 80 % bounds;
            null where the VM does too little I/O to have an IOPS ratio
        :raises tracon_watcher.errors.TraconError: naming the feature that is wrong, or why there
            is no snapshot, or that nothing can be said of hosts of this type
        """
        host = _parse(features)
        options.register_opts(cfg.CONF)
        configured = cfg.CONF[options.GROUP.name]
        content = snapshot_source.read('', configured,
                                       protocol.connector(cfg.CONF, configured.transport_url))
        known = sorted({name for name in content.cluster.host_type if name})
        if host.host_type is not None and host.host_type not in known:
            raise errors.InvalidOption(
                'host_type', host.host_type, f'the snapshot has hosts of {", ".join(known)}; '
                'name one of these, or null' if known else 'no host of the snapshot has a type; '
                'give null')
        judged = assessment.Assessor(cluster.build([host]), content.settings())
        if judged.status[0] == assessment.Status.DRIFTED:
            raise errors.InvalidOption(
                'host_type', host.host_type, 'predictions and observations differ too much on '
                'hosts of this type; wait until they agree again, or name another one')
        now = current_interference.current_interference(judged)
        found = np.array([now.log_response, now.lower, now.upper])[:, :, 0]
        score, lower, upper = (np.exp(found[:, 0]) if self._response == 'slowdown'
                               else np.exp(-found[[0, 2, 1], 1])).tolist()
        return json.dumps({'score': _plain(score), 'lower': _plain(lower), 'upper': _plain(upper)})


class InterferenceScoringContainer(base.ScoringEngineContainer):
    """One scoring engine a response."""

    @classmethod
    def get_scoring_engine_list(cls) -> list[base.ScoringEngine]:
        """Return the scoring engines."""
        return [ResponseScorer(response) for response in _MEANING]


def _parse(features: str) -> cluster.Host:
    given = document.parse(features, 'features')
    given.only(_HOST)
    vms = given.sections('vms')
    if not vms:
        given.refuse('vms', [], 'expected the VM that is scored, and others beside it')
    return cluster.Host(
        'host', tuple(_resident(str(place), one) for place, one in enumerate(vms)),
        given.string('host_type') if given.has('host_type') else None,
        cores=_count(given, 'cores'))


def _resident(name: str, given: document.Fields) -> cluster.Resident:
    given.only(_VM)
    wait = given.number('storage_wait', 0, 1) if given.has('storage_wait') else math.nan
    return cluster.Resident(
        name, given.array('profile', (characteristics.COUNT,), 0), vcpus=_count(given, 'vcpus'),
        storage_wait=wait)


def _count(given: document.Fields, name: str) -> int:
    given.number(name, 1, snapshot_lines.MOST)
    return snapshot_lines.whole(given, name)


def _plain(value: float) -> Any:
    return None if math.isnan(value) else value
