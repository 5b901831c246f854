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

"""Large hosts with many VMs: who is slowed down beyond a limit, and who of them is found.

The truth is by events (:mod:`.loops`); what judges, sees what each VM would do alone. Slowdowns
are those of the time in which a VM is on the CPU: what it does not do does not stretch.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import IntArray

#: Virtual CPUs of VMs, and how many have so many.
SIZES = {1: 0.4, 2: 0.3, 4: 0.2, 8: 0.08, 16: 0.02}
#: The load of a host, of its cores: most are in use and not full, some are overcommitted.
LOADS = (0.4, 1.6)


@dataclasses.dataclass(frozen=True)
class Crowds:
    """Hosts and what their VMs would do alone.

    :ivar cores: (hosts,)
    :ivar vcpus: (hosts, VMs), 0 where a host has fewer
    :ivar used: (hosts, VMs), part of its time alone in which each vCPU is on the CPU
    """

    cores: FloatArray
    vcpus: IntArray
    used: FloatArray

    @property
    def there(self) -> np.ndarray:
        """(hosts, VMs), whether there is one."""
        return np.asarray(self.vcpus > 0)

    def of_work(self, whole: FloatArray) -> FloatArray:
        """Return slowdowns, (hosts, VMs).

        :param whole: (hosts, VMs), by how much all of the time stretches
        """
        with np.errstate(invalid='ignore', divide='ignore'):
            return np.asarray(1.0 + (whole - 1.0) / self.used)


@dataclasses.dataclass(frozen=True)
class Score:
    """How well a judge did.

    :ivar vms: that there were
    :ivar unknown: share of them of which nothing is predicted
    :ivar above: how many were slowed down beyond the limit
    :ivar found: share of those above that the judge found
    :ivar false: share of the judge's alarms that were none
    :ivar error: mean of |predicted / true − 1|, where something is predicted
    :ivar bias: mean of predicted / true − 1, likewise
    """

    vms: int
    unknown: float
    above: int
    found: float
    false: float
    error: float
    bias: float


def draw(hosts: int, cores: int, least: int, most: int, seed: int) -> Crowds:
    """Draw hosts with ``least`` to ``most`` VMs each, and a load of :data:`LOADS`.

    VMs are alike in nothing: by far not all are busy at a time.
    """
    rng = np.random.default_rng(seed)
    count = rng.integers(least, most + 1, hosts)
    sizes = rng.choice(list(SIZES), (hosts, most), p=list(SIZES.values()))
    vcpus = np.where(np.arange(most) < count[:, np.newaxis], np.minimum(sizes, cores), 0)
    used = rng.beta(0.6, 1.8, (hosts, most))
    load = rng.uniform(*LOADS, hosts) * cores
    for _again in range(20):
        # What is cut off at the top is spread over the others.
        used = np.clip(used * (load / (vcpus * used).sum(axis=1))[:, np.newaxis], 0.002, 0.98)
    return Crowds(np.full(hosts, float(cores)), vcpus, used)


def score(predicted: FloatArray, true: FloatArray, limit: float) -> Score:
    """Compare slowdowns, (n,) each.

    :param predicted: NaN where unknown
    """
    above, alarm = true > limit, predicted > limit
    ratio = (predicted / true - 1.0)[~np.isnan(predicted)]
    return Score(len(true), _mean(np.isnan(predicted)), int(above.sum()), _mean(alarm[above]),
                 _mean(~above[alarm]), _mean(np.abs(ratio)), _mean(ratio))


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float('nan')
