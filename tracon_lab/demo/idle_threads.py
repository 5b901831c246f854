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

"""Idle threads of a cloud in one process, which Nova's tests keep from sleeping.

So that a test ends at once, Nova's tests have every idle thread of every pool look for work a
hundred times a second (``nova.test.TestCase.setUp``). A cloud with a few compute hosts has a
hundred of them: they keep most of a core busy, and those with work wait for Python's lock.
"""

from __future__ import annotations

import contextlib
from typing import Iterator


@contextlib.contextmanager
def asleep() -> Iterator[None]:
    """Around Nova's ``setUp``: let idle threads sleep as long as they do in production."""
    # Imported before Nova, it would bring eventlet along.
    from futurist import _thread
    usual = _thread.ThreadWorker.MAX_IDLE_FOR
    try:
        yield
    finally:
        _thread.ThreadWorker.MAX_IDLE_FOR = usual
