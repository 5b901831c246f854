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

"""Chunked payload: compressed text in pieces that fit into a message."""

from __future__ import annotations

import base64
import binascii
import dataclasses
import hashlib
from typing import Any, Iterable, Iterator
import zlib

from tracon_watcher import document
from tracon_watcher import errors
from tracon_watcher.messaging import protocol

#: Bytes of text that are believed at most, and of the compressed form. A snapshot of 10,000 hosts
#: with 200,000 VMs has 30 million; what states more is not even begun.
LARGEST_TEXT = 1 << 29
LARGEST_PACKED = 1 << 28
_PIECE = protocol.LARGEST_PAYLOAD // 4 * 3
_STEP = 1 << 18
_LABEL = ('size', 'packed', 'chunks', 'sha256')
_REMEDY = 'what was sent is damaged, or not from a tracon-engine of this release'


@dataclasses.dataclass(frozen=True)
class PayloadLabel:
    """What is said of a text before it is sent.

    :param size: bytes of the text
    :param packed: bytes of its compressed form
    :param chunks: pieces of that
    :param sha256: of the compressed form
    """

    size: int
    packed: int
    chunks: int
    sha256: str

    def to_document(self) -> dict[str, Any]:
        """Return a form that JSON can hold."""
        return dataclasses.asdict(self)

    @classmethod
    def from_fields(cls, fields: document.Fields) -> PayloadLabel:
        """Read what :meth:`to_document` gave.

        :raises tracon_watcher.errors.InvalidDocument: when it states more than is believed
        """
        size = int(fields.number('size', 0, LARGEST_TEXT))
        packed = int(fields.number('packed', 1, LARGEST_PACKED))
        chunks = int(fields.number('chunks', 1, LARGEST_PACKED // _PIECE + 1))
        if chunks != _count(packed):
            fields.refuse('chunks', chunks, f'{packed} bytes are {_count(packed)} pieces')
        return cls(size, packed, chunks, fields.string('sha256'))


class ChunkedPayload:
    """A text that is ready to be sent."""

    def __init__(self, lines: Iterable[str]) -> None:
        # More effort gains a twentieth and takes thrice as long.
        deflate = zlib.compressobj(1)
        parts = []
        size = 0
        for line in lines:
            data = line.encode()
            size += len(data)
            parts.append(deflate.compress(data))
        parts.append(deflate.flush())
        self.data = b''.join(parts)
        self.label = PayloadLabel(size, len(self.data), _count(len(self.data)),
                                  hashlib.sha256(self.data).hexdigest())

    def chunk(self, index: int) -> str | None:
        """Return a piece in base64; None when there is none of that number."""
        if not 0 <= index < self.label.chunks:
            return None
        return base64.b64encode(self.data[index * _PIECE:(index + 1) * _PIECE]).decode()


def piece(text: Any, source: str) -> bytes:
    """Return the bytes of a piece.

    :raises tracon_watcher.errors.InvalidDocument: when it is no piece
    """
    if not isinstance(text, str) or len(text) > protocol.LARGEST_PAYLOAD:
        raise errors.InvalidDocument(source, 'a piece', text, f'expected base64 of at most '
                                     f'{protocol.LARGEST_PAYLOAD} characters; {_REMEDY}')
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise errors.InvalidDocument(source, 'a piece', text, f'{error}; {_REMEDY}') from None


def lines(label: PayloadLabel, data: bytes, source: str) -> Iterator[str]:
    """Yield the lines of a text that has come whole; never more bytes than its label states.

    :raises tracon_watcher.errors.InvalidDocument: when it is not what the label says
    """
    if len(data) != label.packed or hashlib.sha256(data).hexdigest() != label.sha256:
        raise errors.InvalidDocument(source, 'the SHA-256 of what has come',
                                     hashlib.sha256(data).hexdigest(),
                                     f'{label.sha256} was stated; {_REMEDY}')
    begun: list[bytes] = []
    for part in _inflated(label, data, source):
        *ended, rest = part.split(b'\n')
        for line in ended:
            begun.append(line)
            yield _text(b''.join(begun), source) + '\n'
            begun = []
        begun.append(rest)
    if any(begun):
        yield _text(b''.join(begun), source)


def _inflated(label: PayloadLabel, data: bytes, source: str) -> Iterator[bytes]:
    inflate = zlib.decompressobj()
    size = 0
    while not inflate.eof:
        try:
            part = inflate.decompress(data, _STEP)
        except zlib.error as error:
            raise errors.InvalidDocument(source, 'the compressed text', str(error),
                                         _REMEDY) from None
        size += len(part)
        if size > label.size or (not part and not inflate.eof and not inflate.unconsumed_tail):
            break
        data = inflate.unconsumed_tail
        yield part
    if size != label.size or not inflate.eof or inflate.unused_data:
        raise errors.InvalidDocument(source, 'the size of the text', size,
                                     f'{label.size} bytes were stated; {_REMEDY}')


def _text(line: bytes, source: str) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise errors.InvalidDocument(source, 'a line', line[:40], f'{error}; {_REMEDY}') from None


def _count(packed: int) -> int:
    return max(-(-packed // _PIECE), 1)
