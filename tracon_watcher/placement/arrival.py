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

"""What a VM would meet and do on every other host, as ``assess`` judges a newcomer."""

from __future__ import annotations

import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import storage


def arrivals(assessor: assessment.Assessor, cluster: cluster_module.ClusterState, row: int,
             now: float) -> FloatArray:
    """Return the harm of a VM arriving, (h,); NaN where it is refused or unknown.

    On a host's own disk it is a newcomer like any other; on a pool its I/O is felt already.

    :param assessor: of the h hosts that it may come to
    :param cluster: which has the VM in ``row``
    """
    verdict = assessor.assess(cluster.resident_profile(row), cluster.resident_limits(row),
                              now, pool=storage.pool_of(cluster, row, assessor.cluster))
    return np.where(verdict.known & ~verdict.refused, verdict.score, np.nan)
