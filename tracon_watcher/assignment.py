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

"""Several VMs and as many hosts: who goes where, all considered at once."""

from __future__ import annotations

import numpy as np
import scipy.optimize

from tracon_watcher.characteristics import FloatArray, IntArray
from tracon_watcher import tie_breaking


def least_cost(cost: FloatArray) -> IntArray | None:
    """Give each row a column of its own, so that the sum is the least there is.

    :param cost: (k, m), infinite where it must not be; m is not less than k
    :returns: (k,) columns, None where there is no way
    """
    try:
        rows, columns = scipy.optimize.linear_sum_assignment(tie_breaking.rounded(cost))
    except ValueError:
        return None
    if len(rows) < len(cost):
        return None
    return np.asarray(columns, dtype=np.intp)
