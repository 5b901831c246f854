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

"""Documents that wait to be told to the engine; of too many the oldest are dropped."""

from __future__ import annotations

import collections
import json
import threading
from typing import Any, Iterator, Sequence

from tracon_watcher.messaging import protocol

#: Documents in one message: the engine has to be done with them before the answer is due.
_MOST_AT_ONCE = 100


class Outbox:
    """Documents by the remote method that takes them, in the order in which they came.

    Those of different methods may overtake each other, but for what became of decisions
    (:data:`.protocol.SETTLED`), which comes after the decisions.

    :param most: documents that wait at most
    """

    def __init__(self, most: int = 2000) -> None:
        self._waiting: collections.deque[tuple[str, Any, int]] = collections.deque()
        self._most = most
        self._dropped = 0
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, method: str, document: Any) -> None:
        """Have a document told; never blocks."""
        size = len(json.dumps(document))
        with self._lock:
            if size > protocol.LARGEST_PAYLOAD // 2:    # quotes are escaped on the way
                self._dropped += 1
                return
            self._waiting.append((method, document, size))
            while len(self._waiting) > self._most:
                self._waiting.popleft()
                self._dropped += 1

    def dropped(self) -> int:
        """Return how many were dropped since the last call."""
        with self._lock:
            count, self._dropped = self._dropped, 0
            return count

    def batches(self) -> Iterator[tuple[str, list[Any]]]:
        """Yield methods with documents for each, as many as fit into one message.

        They wait on, and are yielded again, until they are discarded.
        """
        while True:
            method, batch = self._batch()
            if not batch:
                return
            yield method, batch

    def discard(self, batch: Sequence[Any]) -> None:
        """Forget a batch."""
        told = {id(document) for document in batch}
        with self._lock:
            self._waiting = collections.deque(
                one for one in self._waiting if id(one[1]) not in told)

    def _batch(self) -> tuple[str, list[Any]]:
        """Return the first documents of one method that fit into one message."""
        with self._lock:
            batch: list[Any] = []
            if not self._waiting:
                return '', batch
            method, room = self._waiting[0][0], protocol.LARGEST_PAYLOAD // 2
            for its_method, document, size in self._waiting:
                if its_method != method:
                    if method == protocol.SETTLED:
                        break
                    continue
                room -= size
                if (batch and room < 0) or len(batch) >= _MOST_AT_ONCE:
                    break
                batch.append(document)
            return method, batch
