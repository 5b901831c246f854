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

"""Snapshots that tracon-engine publishes, and decisions that it is told of."""

from __future__ import annotations

from nova_filters import background
from nova_filters import faults as faults_module
from nova_filters import snapshot_client
from tracon_watcher.messaging import protocol
from tracon_watcher.messaging import subscriber
from tracon_watcher.placement import snapshot


class EngineSource:
    """Listens to the engine, in a thread of its own that starts with the first :meth:`refresh`.

    :param connect: see :func:`tracon_watcher.messaging.protocol.connector`
    :param listener: the same for all workers on this host, and no other
    :param period: seconds without news after which the engine is asked
    :param client: takes what comes
    :param faults: told of what does not keep snapshots from coming
    """

    name = 'tracon-engine'

    def __init__(self, connect: protocol.Connect, listener: str, period: float,
                 client: snapshot_client.SnapshotClient, faults: faults_module.FaultLog) -> None:
        self._client = client
        self._epoch: int | None = None
        self._subscriber = subscriber.Subscriber(
            connect, listener, self._take, self._report, client.mended, background.natively,
            period, lambda text: faults.report('engine', text))

    def refresh(self) -> None:
        """Begin to listen; called in the background, and more than once."""
        self._subscriber.start()

    def post(self, method: str, document: dict) -> None:
        """Have a document told to the engine; never blocks."""
        self._subscriber.post(method, document)

    def close(self) -> None:
        """End the thread."""
        self._subscriber.stop()

    def _take(self, content: snapshot.Snapshot) -> None:
        self._client.take(content, self.name, content.epoch == self._epoch)
        self._epoch = content.epoch

    def _report(self, text: str) -> None:
        self._client.tried()
        self._client.fault(text)
