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

"""Signals of a slowdown that are counted outside a VM: ratios of now and alone.

They need numpy alone; what turns them into slowdowns is a calibration.
"""

from __future__ import annotations

import dataclasses
from typing import Callable
from typing import Mapping

import numpy as np

from tracon_watcher.characteristics import FloatArray

# A running share below this says nothing of how CPU time stretches.
_LEAST_SHARE = 0.01


@dataclasses.dataclass(frozen=True)
class Counters:
    """What is counted of n VMs over a window each, per second; NaN where it is not.

    :param running: (n,) seconds that virtual CPUs ran
    :param delay: (n,) seconds that they were ready and waited for a core
    :param reads: (n,) requests, and ``writes``
    :param read_latency: (n,) seconds a request, and ``write_latency``; NaN without requests
    :param instructions: (n,) and ``cycles``, where the host counts them
    :param switches: (n,) context switches
    """

    running: FloatArray
    delay: FloatArray
    reads: FloatArray
    writes: FloatArray
    read_latency: FloatArray
    write_latency: FloatArray
    instructions: FloatArray
    cycles: FloatArray
    switches: FloatArray

    def waiting(self) -> FloatArray:
        """Return the seconds in a second that requests were under way, one after the other, (n,).

        NaN where a rate is unknown, or the latency of requests that there were.
        """
        total: FloatArray = (
            np.where(self.reads == 0, 0.0, self.reads * self.read_latency)
            + np.where(self.writes == 0, 0.0, self.writes * self.write_latency))
        return total


def cpu_stretch(now: Counters, alone: Counters) -> FloatArray:
    """Return by how much CPU time stretches: (running + waiting) / running, against alone."""
    return _stretch(now) / _stretch(alone)


def _stretch(seen: Counters) -> FloatArray:
    running = np.where(seen.running >= _LEAST_SHARE, seen.running, np.nan)
    stretch: FloatArray = (running + seen.delay) / running
    return stretch


def io_stretch(now: Counters, alone: Counters) -> FloatArray:
    """Return by how much requests take longer; reads and writes weigh as the VM alone has them.

    A VM without requests, now or alone, has none to stretch: NaN.
    """
    parts, weights = [], []
    for rate, was, latency, before in (
            (now.reads, alone.reads, now.read_latency, alone.read_latency),
            (now.writes, alone.writes, now.write_latency, alone.write_latency)):
        weight = np.nan_to_num(was * before) * (rate > 0)
        parts.append(np.where(weight > 0, weight * latency / before, 0.0))
        weights.append(weight)
    total = sum(weights)
    with np.errstate(invalid='ignore', divide='ignore'):
        stretch: FloatArray = np.where(total > 0, sum(parts) / total, np.nan)
    return stretch


def time_stretch(now: Counters, alone: Counters) -> FloatArray:
    """Return how the time of a unit of work stretches, of which CPU and requests each have a part.

    The parts are those the VM has alone, requests as far as they do not overlap with running.
    """
    cpu = alone.running + alone.delay
    requests = np.minimum(alone.waiting(), np.maximum(1 - cpu, 0))
    io = np.where(np.isfinite(io_stretch(now, alone)), io_stretch(now, alone), 1.0)
    stretched: FloatArray = (cpu * cpu_stretch(now, alone) + requests * io) / (cpu + requests)
    return stretched


def instruction_stretch(now: Counters, alone: Counters) -> FloatArray:
    """Return cycles per instruction against alone; NaN where the host does not count them."""
    stretch: FloatArray = (now.cycles / now.instructions) / (alone.cycles / alone.instructions)
    return stretch


def switch_ratio(now: Counters, alone: Counters) -> FloatArray:
    """Return context switches per second of running against alone."""
    ratio: FloatArray = (now.switches / now.running) / (alone.switches / alone.running)
    return ratio


#: Signals by name.
SIGNALS: Mapping[str, Callable[[Counters, Counters], FloatArray]] = {
    'vCPU delay': cpu_stretch, 'block latency': io_stretch, 'both': time_stretch,
    'cycles per instruction': instruction_stretch, 'context switches': switch_ratio}
