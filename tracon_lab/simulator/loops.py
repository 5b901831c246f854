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

"""VMs as closed loops on shared cores, by events: what the law of queueing is held against.

It knows nothing of :mod:`tracon_watcher.queueing`. All hosts are simulated side by side, an event
of each at a time.
"""

from __future__ import annotations

from typing import Callable

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import IntArray


def slowdowns(cores: FloatArray, vcpus: IntArray, used: FloatArray, weight: FloatArray,
              events: int, seed: int,
              report: Callable[[float], None] | None = None) -> FloatArray:
    """Return how much VMs of hosts slow each other down.

    Each vCPU works and thinks in turn, for times that are exponential. Cores are shared between
    VMs by weight, as control groups share them, and evenly between the ready vCPUs of a VM.

    :param cores: (hosts,)
    :param vcpus: (hosts, VMs), 0 where a host has fewer VMs
    :param used: (hosts, VMs), part of its time alone in which each vCPU is on the CPU, more than 0
        and less than 1
    :param weight: (hosts, VMs)
    :param events: of each host, of which the first fifth is left out
    :param report: called with the share that is done, now and then
    :returns: (hosts, VMs), time for a unit of work over that of a vCPU that never waits; NaN where
        there is no VM
    """
    rng = np.random.default_rng(seed)
    ready = rng.binomial(vcpus, used)
    time, work = np.zeros((2, *vcpus.shape))
    rows = np.arange(len(cores))
    for event in range(events):
        if report is not None and event % 100 == 0:
            report(event / events)
        served = shares(cores, ready, weight)
        rates = np.concatenate([served / used, (vcpus - ready) / (1.0 - used)], axis=1)
        sums = np.cumsum(rates, axis=1)
        if event >= events // 5:
            # The mean time until the next event spreads less than that time.
            step = 1.0 / sums[:, -1:]
            time += ready * step
            work += served * step
        chosen = (sums < (rng.random(len(cores)) * sums[:, -1])[:, np.newaxis]).sum(axis=1)
        count = vcpus.shape[1]
        ready[rows, chosen % count] += np.where(chosen < count, -1, 1)
    # Of a unit, the thinking takes as long as ever; only the work is stretched.
    stretch = np.divide(time, work, out=np.full(vcpus.shape, np.nan), where=work > 0.0)
    found: FloatArray = 1.0 + used * (stretch - 1.0)
    return found


def shares(cores: FloatArray, ready: IntArray, weight: FloatArray) -> FloatArray:
    """Return how many cores each VM is served: min(R, w t), where the level t fills the cores.

    :param cores: (hosts,)
    :param ready: (hosts, VMs), vCPUs R that are ready
    :param weight: (hosts, VMs)
    """
    short = np.flatnonzero(ready.sum(axis=1) > cores)
    found: FloatArray = ready.astype(float)
    if len(short):
        found[short] = _filled(cores[short], ready[short], weight[short])
    return found


def _filled(cores: FloatArray, ready: IntArray, weight: FloatArray) -> FloatArray:
    """Return what VMs are served that have more vCPUs ready than there are cores."""
    whole = ready / weight
    order = np.argsort(whole, axis=1)
    sorted_ready = np.take_along_axis(ready, order, axis=1)
    sorted_weight = np.where(sorted_ready > 0, np.take_along_axis(weight, order, axis=1), 0.0)
    left = cores[:, np.newaxis] - np.cumsum(sorted_ready, axis=1) + sorted_ready
    heavier = np.cumsum(sorted_weight[:, ::-1], axis=1)[:, ::-1]
    # The first VM that is not served whole, and all after it, share what is left.
    short = np.take_along_axis(whole, order, axis=1) * heavier > left
    first = np.argmax(short, axis=1)[:, np.newaxis]
    level = np.take_along_axis(left, first, axis=1) / np.maximum(
        np.take_along_axis(heavier, first, axis=1), 1e-12)
    found: FloatArray = np.minimum(ready, weight * level)
    return found
