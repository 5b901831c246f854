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

"""What a VM that measures says on its console, see ``lab/guest/schedule.c``."""

from __future__ import annotations

import dataclasses
import re

from tracon_lab.profiling import plan

_LINE = re.compile(r'tracon (ready|calibrated|window|failed|end)((?: [^\s]+)*) ok\s*$')
_NANOSECONDS = 1e-9


@dataclasses.dataclass(frozen=True)
class Report:
    """What a VM did during one window.

    :param begin: of the window, seconds since the epoch
    :param seconds: that count
    :param units: whole ones
    :param service: seconds that they were in service, added up
    :param reads: requests, and ``writes``
    """

    begin: float
    seconds: float
    units: int
    service: float
    reads: int
    writes: int


@dataclasses.dataclass
class Told:
    """All that a VM has said so far.

    :param ready: its clock when it had booted, seconds since the epoch
    :param windows: by number
    :param failed: what it could not do, by the window's number; in its own words
    """

    ready: float | None = None
    speed: plan.Speed | None = None
    windows: dict[int, Report] = dataclasses.field(default_factory=dict)
    failed: dict[int, str] = dataclasses.field(default_factory=dict)

    def add(self, text: str) -> None:
        """Take what is on the console now; lines that are cut say nothing, nor do the kernel's."""
        for line in text.splitlines():
            found = _LINE.search(line)
            if found is not None:
                try:
                    self._take(found[1], found[2].split())
                except (ValueError, IndexError):
                    continue

    def _take(self, kind: str, fields: list[str]) -> None:
        if kind == 'ready':
            self.ready = float(fields[0])
        elif kind == 'calibrated':
            self.speed = plan.Speed(*map(float, fields[:3]))
        elif kind == 'failed':
            self.failed[int(fields[0])] = ' '.join(fields[1:])
        elif kind == 'window':
            begin = float(fields[1])
            length, units, service, reads, writes = map(int, fields[2:])
            self.windows[int(fields[0])] = Report(
                begin, length * _NANOSECONDS, units, service * _NANOSECONDS, reads, writes)
