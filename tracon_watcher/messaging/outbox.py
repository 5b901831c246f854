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
import dataclasses
import json
import threading
from typing import Any, Iterator
import zlib

from tracon_watcher.messaging import protocol

#: Documents in one message: the engine has to be done with them before the answer is due.
_MOST_AT_ONCE = 100
#: The fastest level: what repeats most, the names of fields, is small with it already.
_LEVEL = 1


@dataclasses.dataclass(frozen=True, eq=False)
class _Waiting:
    """A document as it is kept: compressed, since Python's objects take many times as much.

    :param packed: compressed JSON
    :param size: bytes of the JSON
    """

    method: str
    packed: bytes
    size: int

    def document(self) -> Any:
        return json.loads(zlib.decompress(self.packed))


@dataclasses.dataclass(frozen=True)
class Batch:
    """Documents for one remote method, as many as fit into one message.

    :param kept: what :meth:`Outbox.discard` forgets
    """

    method: str
    documents: list[Any]
    kept: frozenset[_Waiting]


class Outbox:
    """Documents by the remote method that takes them, in the order in which they came.

    Those of different methods may overtake each other, but for what became of decisions
    (:data:`.protocol.SETTLED`), which comes after the decisions.

    :param most: documents that wait at most
    """

    def __init__(self, most: int = 2000) -> None:
        self._waiting: collections.deque[_Waiting] = collections.deque()
        self._most = most
        self._dropped = 0
        self._lock = threading.Lock()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def put(self, method: str, document: Any) -> None:
        """Have a document told; never blocks."""
        text = json.dumps(document).encode()
        if len(text) > protocol.LARGEST_PAYLOAD // 2:    # quotes are escaped on the way
            with self._lock:
                self._dropped += 1
            return
        one = _Waiting(method, zlib.compress(text, _LEVEL), len(text))
        with self._lock:
            self._waiting.append(one)
            while len(self._waiting) > self._most:
                self._waiting.popleft()
                self._dropped += 1

    def dropped(self) -> int:
        """Return how many were dropped since the last call."""
        with self._lock:
            count, self._dropped = self._dropped, 0
            return count

    def batches(self) -> Iterator[Batch]:
        """Yield what there is, a message at a time.

        Documents wait on, and are yielded again, until they are discarded.
        """
        while True:
            chosen = self._chosen()
            if not chosen:
                return
            yield Batch(chosen[0].method, [one.document() for one in chosen], frozenset(chosen))

    def discard(self, batch: Batch) -> None:
        """Forget a batch."""
        with self._lock:
            self._waiting = collections.deque(
                one for one in self._waiting if one not in batch.kept)

    def _chosen(self) -> list[_Waiting]:
        """Return the first documents of one method that fit into one message."""
        with self._lock:
            chosen: list[_Waiting] = []
            if not self._waiting:
                return chosen
            method, room = self._waiting[0].method, protocol.LARGEST_PAYLOAD // 2
            for one in self._waiting:
                if one.method != method:
                    if method == protocol.SETTLED:
                        break
                    continue
                room -= one.size
                if (chosen and room < 0) or len(chosen) >= _MOST_AT_ONCE:
                    break
                chosen.append(one)
            return chosen
