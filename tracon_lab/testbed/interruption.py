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

"""A measurement that is stopped takes down what it set up, whenever the signal comes."""

import collections.abc
import contextlib
import signal
import types


class Interruption:
    """SIGINT and SIGTERM raise KeyboardInterrupt, but not while something is acquired or undone.

    An exception between the start of a process and the note of whom to stop
    leaves that process behind; an exception raised in a callback from C is lost.
    """

    def __init__(self) -> None:
        self._held = 0
        self.requested = False

    def install(self) -> None:
        """From here on; to be called in the main thread."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._handle)

    def _handle(self, number: int, frame: types.FrameType | None) -> None:
        self.requested = True
        self.check()

    def check(self) -> None:
        """:raises KeyboardInterrupt: when a signal has come, unless it is held back"""
        if self.requested and not self._held:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def held(self) -> collections.abc.Iterator[None]:
        """No signal raises within; one that came raises afterwards, unless an error does."""
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
        self.check()


signals = Interruption()
