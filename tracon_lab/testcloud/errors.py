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

"""Errors of the test cloud."""

from __future__ import annotations

import pathlib

from tracon_watcher import errors

#: Lines at the end of a log that an error quotes.
QUOTED = 15


class CloudError(errors.TraconError):
    """The test cloud cannot be started or used; the text says why and what would help."""


class NoCloud(CloudError):
    """There is no cloud in a directory."""

    def __init__(self, directory: pathlib.Path) -> None:
        super().__init__(f'there is no cloud in {directory}: "tracon cloud start" makes one, and '
                         f'--directory names another one')


class ServiceFailed(CloudError):
    """A service did not start, or has ended.

    :param name: of the service
    :param reason: what was seen
    :param log: where it writes to; its end is quoted
    """

    def __init__(self, name: str, reason: str, log: pathlib.Path) -> None:
        super().__init__(f'{name} {reason}; the end of {log}:\n{tail(log)}')
        self.name = name
        self.reason = reason


def tail(log: pathlib.Path, lines: int = QUOTED) -> str:
    """Return the last lines of a log, indented."""
    try:
        with log.open('rb') as stream:
            stream.seek(0, 2)
            stream.seek(max(0, stream.tell() - 400 * lines))
            found = stream.read().decode(errors='replace').splitlines()[-lines:]
    except OSError:
        found = ['(there is no log)']
    return '\n'.join('    ' + line[:300] for line in found or ['(the log is empty)'])
