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

"""An engine that does not lead listens to the one that does.

When it takes the lead, it begins from what the other one has told last: who listens needs a delta
instead of a whole snapshot, and demands that have not changed are not told again.
"""

from __future__ import annotations

import logging
import threading

from tracon_watcher.messaging import protocol
from tracon_watcher.messaging import subscriber
from tracon_watcher.placement import snapshot

LOG = logging.getLogger(__name__)


class Standby:
    """Keeps the latest snapshot of another engine.

    :param connect: see :func:`tracon_watcher.messaging.protocol.connector`
    :param host: of this engine; each engine listens for itself
    """

    def __init__(self, connect: protocol.Connect, host: str) -> None:
        # Without a leader there is nothing to hear, which is for the lease to tell.
        self._subscriber = subscriber.Subscriber(
            connect, f'tracon-engine-{host}', lambda _content: None,
            lambda text: LOG.debug('While waiting to lead: %s', text))

    def start(self) -> None:
        """Begin to listen; never blocks."""
        self._subscriber.start()

    def stop(self) -> snapshot.Snapshot | None:
        """End, and return what was heard last; None when there was nothing."""
        # It may wait for the answer of an engine that is no more; who leads now does not.
        threading.Thread(target=self._subscriber.stop, name='tracon-standby-end',
                         daemon=True).start()
        return self._subscriber.current
