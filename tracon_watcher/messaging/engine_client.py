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

"""Client of the engine over RPC, with translated errors."""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import oslo_messaging

from tracon_watcher import document
from tracon_watcher import errors
from tracon_watcher.messaging import chunked_payload
from tracon_watcher.messaging import protocol
from tracon_watcher.placement import snapshot_lines

#: What the engine answers when it may succeed later: its database does not answer, another engine
#: takes the lead, or it has no view yet. Names, since errors come as such over the wire.
_LATER = frozenset(('StorageUnavailable', 'NoLongerLeader', 'NoView'))
#: Once more, and then it is said that nothing was sent; the caller knows when to try again.
_RETRIES = 1

Identity = tuple[int, int]


class EngineUnavailable(errors.TraconError):
    """The engine does not answer, or the message broker cannot be reached."""


class EngineBusy(EngineUnavailable):
    """The engine has answered that it cannot do now what was asked; it may succeed later."""


class EngineRefused(errors.TraconError):
    """The engine has answered that it cannot do what was asked."""


@dataclasses.dataclass(frozen=True)
class Delta:
    """A delta that the engine has.

    :param base: epoch and version that it starts from
    :param label: of its text
    :param data: its compressed text, None unless that has come along
    """

    base: Identity
    label: chunked_payload.PayloadLabel
    data: bytes | None = None


@dataclasses.dataclass(frozen=True)
class SnapshotHead:
    """What the engine has to offer.

    :param identity: epoch and version of its snapshot
    :param server: the engine's name
    :param deltas: that lead there one after the other; None when there are not all of them
    :param body: the whole snapshot; None when that is not offered, for there are deltas
    """

    identity: Identity
    server: str
    deltas: tuple[Delta, ...] | None
    body: chunked_payload.PayloadLabel | None = None


def identity(fields: document.Fields) -> Identity:
    """Read an epoch and a version.

    :raises tracon_watcher.errors.InvalidDocument: when they are none
    """
    return snapshot_lines.whole(fields, 'epoch'), snapshot_lines.whole(fields, 'version')


def announcement(content: Any, source: str) -> SnapshotHead:
    """Read what the engine announces, or answers when it is asked what it has.

    :raises tracon_watcher.errors.InvalidDocument: naming the field
    """
    fields = document.Fields(source, content)
    deltas = None
    if fields.has('deltas'):
        deltas = tuple(_delta(one) for one in fields.sections('deltas'))
    body = chunked_payload.PayloadLabel.from_fields(
        fields.section('body')) if fields.has('body') else None
    return SnapshotHead(identity(fields), fields.string('server'), deltas, body)


def _moments(fields: document.Fields, name: str) -> dict[str, float]:
    section = fields.section(name)
    return {str(key): section.number(key, 0) for key in fields.raw(name)}


def _delta(fields: document.Fields) -> Delta:
    base = fields.section('base')
    data = None
    if fields.has('data'):
        data = chunked_payload.piece(fields.raw('data'), fields.source)
    return Delta(identity(base), chunked_payload.PayloadLabel.from_fields(fields.section('label')),
                 data)


class EngineClient:
    """Calls the engine.

    :param transport: as ``oslo_messaging.get_rpc_transport`` gives
    :param timeout: seconds to wait for an answer; what is not taken by then, the broker drops
    """

    def __init__(self, transport: Any, timeout: float = 15.0) -> None:
        self._client = oslo_messaging.get_rpc_client(transport, protocol.engine())
        self._timeout = timeout

    def hello(self, name: str) -> None:
        """Tell all engines who listens, which also shows whether the broker can be reached.

        It must come first: whatever waits for messages or answers would wait for a broker, too.

        :raises EngineUnavailable: when not
        """
        self._send(self._client.prepare(fanout=True, retry=_RETRIES).cast, 'hello', name=name)

    def head(self, name: str, known: Identity | None,
             server: str | None = None) -> SnapshotHead | None:
        """Ask what the engine has; None when it has no snapshot yet.

        :param name: of who asks
        :param known: epoch and version that deltas should start from
        :param server: the engine that is asked; None for whichever leads
        :raises EngineUnavailable: and :class:`EngineRefused`
        :raises tracon_watcher.errors.InvalidDocument: when it cannot be understood
        """
        epoch, version = known if known is not None else (None, None)
        found = self._call(server, 'head', epoch=epoch, version=version, name=name)
        return None if found is None else announcement(found, 'the answer of the engine')

    def body(self, head: SnapshotHead) -> bytes | None:
        """Fetch the whole snapshot, compressed; None when the engine has it no longer."""
        assert head.body is not None
        return self._fetch(head.server, 'chunk', head.identity, head.body)

    def delta(self, server: str, delta: Delta) -> bytes | None:
        """Fetch a delta, compressed; None when the engine has it no longer."""
        if delta.data is not None:
            return delta.data
        return self._fetch(server, 'delta', delta.base, delta.label)

    def tell(self, method: str, documents: Sequence[Any]) -> None:
        """Hand documents to the engine, and wait until it has them.

        :raises EngineUnavailable: when it has not, :class:`EngineBusy` when it says so
        :raises EngineRefused: when it cannot use them
        """
        self._call(None, method, documents=list(documents))

    def standing(self) -> dict[str, Any]:
        """Ask what the engine has learnt of moves.

        :returns: ``suspended``, by kind of moves, and ``cooldowns``, by uuid of a VM, until when,
            in seconds since the epoch
        :raises EngineUnavailable: and :class:`EngineRefused`
        :raises tracon_watcher.errors.InvalidDocument: when it cannot be understood
        """
        fields = document.Fields('the answer of the engine', self._call(None, 'standing'))
        return {name: _moments(fields, name) for name in ('suspended', 'cooldowns')}

    def _fetch(self, server: str, method: str, which: Identity,
               label: chunked_payload.PayloadLabel) -> bytes | None:
        pieces = []
        for index in range(label.chunks):
            found = self._call(server, method, epoch=which[0], version=which[1], index=index)
            if found is None:
                return None
            pieces.append(chunked_payload.piece(found, f'piece {index} of {method} '
                                                f'{which[0]}.{which[1]}'))
        return b''.join(pieces)

    def _call(self, server: str | None, method: str, **arguments: Any) -> Any:
        prepared = self._client.prepare(server=server, timeout=self._timeout, retry=_RETRIES)
        return self._send(prepared.call, method, **arguments)

    def _send(self, send: Any, method: str, **arguments: Any) -> Any:
        try:
            return send({}, method, **arguments)
        except oslo_messaging.MessagingTimeout:
            raise EngineUnavailable(
                f'no tracon-engine has answered within {self._timeout:g} s: see that one '
                f'runs and uses the same message broker') from None
        except oslo_messaging.RemoteError as error:
            raise _kind(error.exc_type)(
                f'tracon-engine has answered {method} with {error.exc_type}: {error.value}; see '
                f'its log') from None
        except errors.TraconError as error:
            # Drivers that stay within a process hand it over as it was.
            name = type(error).__name__
            raise _kind(name)(
                f'tracon-engine has answered {method} with {name}: {error}') from error
        except Exception as error:
            # Each driver lets errors of its own library through. None is told from the others.
            raise EngineUnavailable(f'the message broker cannot be reached '
                                    f'({type(error).__name__}: {error})') from error


def _kind(name: str | None) -> type[EngineBusy] | type[EngineRefused]:
    """Return which error one of the engine's is here."""
    return EngineBusy if name in _LATER else EngineRefused
