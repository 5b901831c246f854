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

"""What a VM is to do when, as it finds it in its ramdisk."""

from __future__ import annotations

import dataclasses
import gzip
import math
import pathlib
from typing import Sequence

from tracon_watcher.probe import images

#: What the first VM does: find out how fast it is.
CALIBRATE = 'calibrate\n'
_SILENCE = '-'
_MOST_SETTLING = 10.0


@dataclasses.dataclass(frozen=True)
class Timing:
    """How windows lie in time.

    They begin with a polling interval by the wall clock, since samples may be known no better than
    by the interval they are from.

    :param polling: seconds between two samples
    :param polls: polling intervals in a window
    """

    polling: float
    polls: int = 4

    @property
    def length(self) -> float:
        """Seconds of a window."""
        return self.polling * self.polls

    @property
    def settle(self) -> float:
        """Seconds at its beginning that do not count: the programs have just begun."""
        return min(_MOST_SETTLING, self.polling / 3)

    def start(self, earliest: float) -> float:
        """Return when the first window may begin."""
        return math.ceil(earliest / self.polling) * self.polling


def text(start: float, timing: Timing, commands: Sequence[str | None]) -> str:
    """Return the schedule of one VM; None is silence.

    :param start: seconds since the epoch
    :param commands: of a window each, as :meth:`.lab.programs.Unit.command` has them
    """
    return '\n'.join(['schedule %.3f %.3f %.3f' % (start, timing.length, timing.settle),
                      *(command or _SILENCE for command in commands)]) + '\n'


def ramdisk(initramfs: pathlib.Path, content: str) -> bytes:
    """Return a ramdisk with a schedule in it: the kernel unpacks one archive after the other."""
    return initramfs.read_bytes() + gzip.compress(
        images.cpio({'schedule': content.encode('ascii')}, ()), mtime=0)
