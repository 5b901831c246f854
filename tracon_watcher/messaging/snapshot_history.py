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

"""History of published snapshots, from which subscribers are served."""

from __future__ import annotations

import collections
import threading

from tracon_watcher.messaging import chunked_payload
from tracon_watcher.messaging import engine_client
from tracon_watcher.placement import delta
from tracon_watcher.placement import snapshot

#: Deltas that are kept for those who have missed some announcements, and whole snapshots that are
#: kept so that who fetches one can finish.
_DELTAS, _BODIES = 6, 2

#: Deltas one after the other, each with what it starts from.
Steps = list[tuple[engine_client.Identity, chunked_payload.ChunkedPayload]]


class SnapshotHistory:
    """The snapshot that is published, and what is needed to get there.

    A whole snapshot is compressed when somebody asks for it: as a rule all have the one before.
    """

    def __init__(self) -> None:
        self.current: snapshot.Snapshot | None = None
        self._deltas: collections.OrderedDict[
            engine_client.Identity, tuple[
                engine_client.Identity,
                chunked_payload.ChunkedPayload]] = collections.OrderedDict()
        self._bodies: collections.OrderedDict[engine_client.Identity,
                                              chunked_payload.ChunkedPayload] = (
            collections.OrderedDict())
        self._lock = threading.Lock()
        self._packing = threading.Lock()

    def put(self, content: snapshot.Snapshot) -> chunked_payload.ChunkedPayload | None:
        """Replace the snapshot by a newer one; return the delta that leads there, if any."""
        old = self.current
        made = None if old is None else chunked_payload.ChunkedPayload(delta.encode(old, content))
        with self._lock:
            self.current = content
            if old is not None and made is not None:
                self._deltas[old.identity] = content.identity, made
            while len(self._deltas) > _DELTAS:
                self._deltas.popitem(last=False)
        return made

    def way(self, known: engine_client.Identity) -> tuple[engine_client.Identity, Steps | None]:
        """Return which snapshot is here, and the deltas, with their bases, that lead to it.

        :param known: epoch and version to start from
        :returns: None in place of the deltas when one of them is not here
        """
        with self._lock:
            assert self.current is not None
            here = self.current.identity
            steps: Steps = []
            while known != here:
                if known not in self._deltas:
                    return here, None
                after, found = self._deltas[known]
                steps.append((known, found))
                known = after
            return here, steps

    def delta(self, base: engine_client.Identity) -> chunked_payload.ChunkedPayload | None:
        """Return the delta from a snapshot to the next; None when it is not here."""
        with self._lock:
            return self._deltas[base][1] if base in self._deltas else None

    def body(self) -> tuple[engine_client.Identity, chunked_payload.ChunkedPayload]:
        """Return the whole snapshot."""
        with self._packing:
            content = self.current
            assert content is not None
            found = self.kept(content.identity)
            if found is None:
                found = chunked_payload.ChunkedPayload(snapshot.lines(content))
                with self._lock:
                    self._bodies[content.identity] = found
                    while len(self._bodies) > _BODIES:
                        self._bodies.popitem(last=False)
            return content.identity, found

    def kept(self, which: engine_client.Identity) -> chunked_payload.ChunkedPayload | None:
        """Return a whole snapshot that was asked for before; None when it is not here."""
        with self._lock:
            return self._bodies.get(which)
