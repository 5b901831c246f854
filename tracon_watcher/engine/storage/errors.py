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

"""What can go wrong with the database, in an operator's words."""

from __future__ import annotations

from tracon_watcher import errors


class StorageFailed(errors.TraconError):
    """The database did not do what was asked.

    :param where: its address, without the password
    :param why: what it, or its driver, says
    :param remedy: what to do
    """

    def __init__(self, where: str, why: str, remedy: str) -> None:
        super().__init__(f'database {where}: {why}: {remedy}')
        self.where = where
        self.why = why
        self.remedy = remedy


class StorageUnavailable(StorageFailed):
    """The database cannot be reached, or is too busy; the same may succeed later."""


class SchemaOutOfDate(StorageFailed):
    """The tables are not those of this release.

    :param found: revision of the database, None for an empty one
    :param expected: revision of this release
    """

    def __init__(self, where: str, found: str | None, expected: str, remedy: str) -> None:
        super().__init__(where, f'its schema is {found or "missing"}, this release needs '
                                f'{expected}', remedy)
        self.found = found
        self.expected = expected


class NoLongerLeader(errors.TraconError):
    """Another engine leads, or may do so by now; nothing was written.

    :param epoch: in which the writer was leader, 0 if it never was
    """

    def __init__(self, epoch: int) -> None:
        super().__init__(f'epoch {epoch} is over: this engine does not lead any more; it goes on '
                         'as a candidate, and nothing has to be done')
        self.epoch = epoch
