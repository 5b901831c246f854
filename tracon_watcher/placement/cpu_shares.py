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

"""How a VM shares its host's cores with others, by the extra specs of its flavor.

Hypervisors share cores between VMs, not between virtual CPUs: each VM is a control group with a
weight, whatever its size, unless ``quota:cpu_shares`` says otherwise. A VM whose virtual CPUs are
pinned has cores of its own, which Nova does not count among those that are shared.
"""

from __future__ import annotations

import math
from typing import Mapping

SHARES = 'quota:cpu_shares'
#: Shares of a VM for which none are stated: of control groups of version 2.
DEFAULT = 100.0
#: Of control groups, likewise.
_MOST = 10000.0


def weight(extra_specs: Mapping[str, str]) -> float:
    """Return the weight of VMs of a flavor, 1 for one that states none, 0 for cores of its own.

    A VM with both, ``hw:cpu_policy=mixed``, counts as one that shares all of them. What is no
    number counts as not stated: Nova refuses it, too.
    """
    if extra_specs.get('hw:cpu_policy') == 'dedicated' or 'resources:PCPU' in extra_specs:
        return 0.0
    try:
        shares = float(extra_specs.get(SHARES, DEFAULT))
    except (TypeError, ValueError):
        return 1.0
    return min(shares, _MOST) / DEFAULT if math.isfinite(shares) and shares >= 1.0 else 1.0
