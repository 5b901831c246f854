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

"""What the law of queueing says of many hosts, to the last bit, as one JSON document.

:mod:`tests.long.test_cpus` runs it under the kernels of several CPUs.
"""

import dataclasses
import json
import sys

import numpy as np

from tracon_watcher.queueing import capacity
from tracon_watcher.queueing import network


def document():
    """Return slowdowns and stretches of 300 hosts, as text without rounding."""
    rng = np.random.default_rng(1)
    host = np.sort(rng.integers(0, 300, 3000))
    vms = network.VMs(host, rng.choice([1, 2, 4, 8], 3000), rng.random(3000),
                      rng.choice([1.0, 2.0, 16.0], 3000))
    capacities = [capacity.by_depth([1, 2, 4], [100.0, 133.0, 150.0])] * 300
    found = network.effects(
        network.Hosts(rng.choice([2.0, 16.0, 64.0], 300), gain=rng.uniform(0.5, 2.0, 300)), vms,
        network.Usage(np.arange(3000), host, (1.0 - vms.used) * rng.random(3000),
                      capacity.table(capacities)))
    return {name: [value.hex() for value in values.tolist()]
            for name, values in dataclasses.asdict(found).items()}


if __name__ == '__main__':
    json.dump(document(), sys.stdout)
