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

"""Snapshots that somebody writes into a file."""

from __future__ import annotations

import os

from nova_filters import background
from nova_filters import snapshot_client
from tracon_watcher import errors
from tracon_watcher.placement import snapshot


class FileSource:
    """Reads the file whenever it has changed.

    :param path: the snapshot file
    :param client: takes what is read
    """

    def __init__(self, path: str, client: snapshot_client.SnapshotClient) -> None:
        self.name = path
        self._client = client
        self._seen: tuple[int, ...] | None = None

    def refresh(self) -> None:
        """Look at the file; called in the background."""
        try:
            self._refresh()
        finally:
            self._client.tried()

    def post(self, method: str, document: dict) -> None:
        """Do nothing: there is no engine to tell."""

    def close(self) -> None:
        """Do nothing: there is nothing to end."""

    def _refresh(self) -> None:
        try:
            found = background.natively(os.stat, self.name)
        except OSError as error:
            self._seen = None
            self._client.fault(f'{self.name}: the file is {error.strerror!r}: cannot be read; '
                               f'write it or set [tracon] snapshot_file')
            return
        # The last for who may read it.
        seen = (found.st_mtime_ns, found.st_size, found.st_ino, found.st_ctime_ns)
        if seen == self._seen:
            return
        self._seen = seen       # whatever is wrong, it will be no better until it changes
        try:
            content = background.natively(snapshot.read, self.name)
        except errors.TraconError as error:
            self._client.fault(str(error))
            return
        self._client.take(content, self.name)
        self._client.mended()
