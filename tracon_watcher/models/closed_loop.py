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

"""Which programs begin their next unit at once: then one response tells the other.

Closed-loop work does its requests as fast as its units go, so its IOPS ratio is one over its
slowdown. Open-loop work, with arrivals of its own, keeps its IOPS while each unit takes longer.
Models of the two responses are fitted apart; of a closed loop they are two estimates of one thing.
"""

from __future__ import annotations

import numpy as np

from tracon_watcher.models import points as measured

#: Share of its interference by which a closed loop may miss IOPS ratio = 1 / slowdown.
_MISSED = 0.25


def is_closed(points: measured.Points, name: str) -> bool:
    """Say whether a program is a closed loop, from the points that models learn from.

    Without I/O, or hardly disturbed, it does not count as one.
    """
    own = points.defined('iops_ratio', ('background',))
    own = own.take((own.target == name) & np.isfinite(own.slowdown))
    if not len(own):
        return False
    slowdown = np.log(own.slowdown)
    missed = float(np.median(np.abs(np.log(own.iops_ratio) + slowdown)))
    return missed < _MISSED * float(np.median(np.abs(slowdown)))
