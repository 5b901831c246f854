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

"""Decisions on their way to the engine: kept on the request path, told in the background."""

from __future__ import annotations

import collections
import dataclasses
import functools
import threading
from typing import Callable
import uuid as uuids

from oslo_context import context

from nova_filters import background
from nova_filters import decision
from nova_filters import faults as faults_module
from nova_filters import judgement as judgements
from nova_filters import pending
from nova_filters import snapshot_client
from tracon_watcher.messaging import protocol

#: Judgements that wait to be told at most: each keeps some hundred bytes a host.
_MOST = 64
_MOST_IDS = 5000


class Decisions:
    """What there is to tell the engine.

    :param post: tells it a document by a remote method, and never blocks
    """

    def __init__(self, post: Callable[[str, dict], None],
                 faults: faults_module.FaultLog) -> None:
        self._post = post
        self._faults = faults
        self._captured: collections.deque[decision.Captured] = collections.deque()
        self._settled: collections.deque[tuple[str, tuple[str, ...], float]] = collections.deque(
            maxlen=_MOST_IDS)
        self._ids: collections.OrderedDict[str, str] = collections.OrderedDict()
        self._dropped = 0
        self._lock = threading.Lock()

    def capture(self, judged: judgements.Judgement, spec, outcome: str) -> None:
        """Keep what is needed of a judgement; on the request path."""
        request = context.get_current()
        states = judged.states
        names = {int(position): states[position].host
                 for position in (judged.rows < 0).nonzero()[0]}
        one = decision.Captured(
            str(uuids.uuid4()), getattr(request, 'request_id', None), _operation(judged, spec),
            # HostStates are large, and made again for each request.
            outcome, dataclasses.replace(judged, states=[None] * len(states), _left=None), names)
        with self._lock:
            self._captured.append(one)
            self._ids[judged.uuid] = one.id
            while len(self._ids) > _MOST_IDS:
                self._ids.popitem(last=False)
            while len(self._captured) > _MOST:
                self._captured.popleft()
                self._dropped += 1

    def settled(self, found: list[pending.Placement], failed: list[str], now: float) -> None:
        """Keep which hosts were chosen, and which VMs came to nothing."""
        self._settled.extend((one.uuid, (one.node, one.host), one.at) for one in found)
        self._settled.extend((uuid, (), now) for uuid in failed)

    def tell(self, prepared: snapshot_client.Prepared | None) -> None:
        """Hand over all there is; in the background.

        :param prepared: the snapshot, by whose names hosts are called
        """
        with self._lock:
            captured, self._captured = self._captured, collections.deque()
            dropped, self._dropped = self._dropped, 0
        if dropped:
            self._faults.report('decisions', (
                f'{dropped} decisions are not recorded, since there were more than {_MOST} '
                f'before they could be looked at'), key='dropped')
        # One by one: so many may take a while, and other native work waits.
        for one in captured:
            document = self._faults.guarded(
                functools.partial(background.natively, decision.document, one), None,
                'A decision is not recorded')
            if document is not None:
                self._post(protocol.RECORD_DECISIONS, document)
        known = {} if prepared is None else prepared.cluster.host_index
        while self._settled:
            uuid, names, at = self._settled.popleft()
            chosen = next((name for name in names if name in known), names[-1] if names else None)
            self._post(protocol.SETTLED, decision.settled(uuid, chosen, at, self._ids.get(uuid)))


def _operation(judged: judgements.Judgement, spec) -> str:
    if judged.exempt:
        return 'move'
    several = 'num_instances' in spec and spec.num_instances > 1
    return 'multi-create' if several else 'create'
