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
"""The rule by which ProxLB 1.1 balances CPU use, from its documentation; ProxLB needs Proxmox."""

from __future__ import annotations

from typing import Sequence

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import IntArray

#: Points of CPU use, in per cent.
BALANCINESS = 10.0


def audit(names: Sequence[str], cores: int, capacity: float, host: IntArray, numbers: IntArray,
          vcpus: IntArray, used: FloatArray, _seed: int) -> list[tuple[int, int]]:
    """Return migrations: numbers of VMs, and hosts.

    VMs are tried once each, the smallest first, while the most and the least used host are further
    apart than :data:`BALANCINESS`. A VM of the most used host goes to the least used one, if that
    has room.

    :param cores: of each host
    :param capacity: vCPUs that a host takes
    :param host: (m,) of each VM
    :param numbers: (m,) of the VMs
    :param vcpus: (m,); memory, by which ProxLB sorts, is in proportion
    :param used: (m,) share of its vCPUs' time that each used
    """
    load = 100.0 * np.bincount(host, vcpus * used, len(names)) / cores
    room = capacity - np.bincount(host, vcpus, len(names))
    moves = []
    for row in np.argsort(vcpus, kind='stable').tolist():
        most, least = int(load.argmax()), int(load.argmin())
        if load[most] - load[least] <= BALANCINESS:
            break
        if host[row] == most and room[least] >= vcpus[row]:
            part = 100.0 * vcpus[row] * used[row] / cores
            load[most], load[least] = load[most] - part, load[least] + part
            room[most], room[least] = room[most] + vcpus[row], room[least] - vcpus[row]
            moves.append((int(numbers[row]), least))
    return moves
