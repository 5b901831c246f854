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

"""Reads text files, and writes files whole: every fault names file, reason and remedy."""

from __future__ import annotations

import contextlib
import gzip
import os
import pathlib
from typing import Iterator, NoReturn, TextIO
import zlib

from tracon_watcher import errors

_FAULTS = (OSError, EOFError, zlib.error, UnicodeDecodeError)


def text(path: str | os.PathLike[str], remedy: str) -> str:
    """Return the text of a file in UTF-8, decompressed where its name ends in ``.gz``.

    It comes without the byte order mark that spreadsheets write.

    :param remedy: what to do where it cannot be read
    :raises tracon_watcher.errors.InvalidDocument: naming the file and the reason
    """
    with readable(path, remedy):
        found = pathlib.Path(path).read_bytes()
        return (gzip.decompress(found) if os.fspath(path).endswith('.gz') else found
                ).decode('utf-8-sig')


@contextlib.contextmanager
def readable(path: str | os.PathLike[str], remedy: str) -> Iterator[None]:
    """Name the file and the reason where it cannot be read, as :func:`text` does."""
    try:
        yield
    except _FAULTS as error:
        if isinstance(error, UnicodeDecodeError):
            remedy = 'save it in UTF-8'
        _refuse(path, error, f'cannot be read; {remedy}')


@contextlib.contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[TextIO]:
    """Open a file that takes the place of ``path`` at the end: a reader sees the old or the new.

    Whatever goes wrong, what was there stays, and nothing else is left behind.

    :raises tracon_watcher.errors.InvalidDocument: where it cannot be written
    """
    target = pathlib.Path(path)
    scratch = target.parent / f'.{target.name}.{os.getpid()}'
    try:
        with scratch.open('w', encoding='utf-8', newline='') as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        scratch.replace(target)
    except OSError as error:
        _refuse(path, error, 'cannot be written; name a file in a folder that can be written to')
    finally:
        with contextlib.suppress(OSError):
            scratch.unlink()


def _refuse(path: str | os.PathLike[str], error: Exception, remedy: str) -> NoReturn:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    raise errors.InvalidDocument(os.fspath(path), 'the file', reason, remedy) from None
