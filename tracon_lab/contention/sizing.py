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

"""Which resource limits a VM, and what that says of its size.

A second of a virtual CPU is spent running, ready but waiting for a core, waiting for requests to
storage, or idle. The largest part but idling names the limit. What more of a resource would do
follows Lim et al.: more virtual CPUs hardly help a VM that waits for memory or storage, while the
size of its data over its memory decides how often it has to go there.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from tracon_lab.contention import calibration
from tracon_watcher.characteristics import FloatArray

CPU, CORE, STORAGE, NOTHING = 'virtual CPU', 'core', 'storage', 'nothing'
#: Share of the time, running or waiting for anything, from which on a VM is limited at all.
LIMITING = 0.5
ADVICE = {
    CPU: 'runs nearly all the time: more virtual CPUs help if its program has threads for them, '
         'a faster core in any case',
    CORE: 'is ready but waits for a core: not its size is the trouble but its neighbours; '
          'move one of them, not more virtual CPUs',
    STORAGE: 'waits for requests to storage: more virtual CPUs do not help; more memory does if '
             'it reads the same data again and again, faster storage in any case',
    NOTHING: 'is idle more than it waits for anything: it could be smaller',
}


@dataclasses.dataclass(frozen=True)
class Time:
    """How n VMs spend the time of their virtual CPUs, shares that add up to 1.

    :param running: (n,)
    :param delayed: (n,) ready, waiting for a core
    :param storage: (n,) waiting for requests while not running
    :param idle: (n,)
    """

    running: FloatArray
    delayed: FloatArray
    storage: FloatArray
    idle: FloatArray


def spent(seen: calibration.Counters, vcpus: FloatArray | float = 1.0) -> Time:
    """Return how the time is spent; NaN where running or delay is not known."""
    running = np.clip(seen.running / vcpus, 0.0, 1.0)
    delayed = np.clip(seen.delay / vcpus, 0.0, 1.0 - running)
    left = 1.0 - running - delayed
    # Requests overlap with each other and with running; at most the time that is left is theirs.
    storage = np.minimum(seen.waiting() / vcpus, left)
    return Time(running, delayed, storage, left - storage)


def limits(time: Time) -> list[str | None]:
    """Return for each VM what limits it; None where that is not known."""
    shares = np.column_stack([time.running, time.delayed, time.storage])
    found: list[str | None] = []
    for row in shares:
        if not np.isfinite(row).all():
            found.append(None)
            continue
        largest = int(np.argmax(row))
        busy = row.sum()
        found.append(NOTHING if busy < LIMITING else (CPU, CORE, STORAGE)[largest])
    return found
