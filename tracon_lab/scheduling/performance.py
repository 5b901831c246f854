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

"""How fast each task runs in each configuration: as predicted, or as it really is.

Schedulers are given what is predicted. What a simulation lets happen has the same form.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from tracon_lab.scheduling import configurations as configuration
from tracon_watcher.characteristics import FloatArray
from tracon_watcher import tie_breaking

#: Significant digits of a performance: far more than are measured, far fewer than rounding needs.
DIGITS = 7


@dataclasses.dataclass(frozen=True)
class Performance:
    """Responses of c task classes in n configurations.

    :param solo_seconds: (t, c) runtime alone on each of t host types
    :param solo_iops: (t, c) I/O requests per second alone
    :param slowdown: (n, c) NaN where a class is not among the residents
    :param iops_ratio: (n, c) NaN there too, and where a class does too little I/O to have one
    """

    configurations: configuration.Configurations
    solo_seconds: FloatArray
    solo_iops: FloatArray
    slowdown: FloatArray
    iops_ratio: FloatArray

    def rounded(self, digits: int = DIGITS) -> Performance:
        """Return the same with so many significant digits.

        The last bits of what models predict, and of means and logarithms, differ between CPUs.
        Whatever is chosen by performance starts from here, so that it is the same on all of them.
        """
        solo_seconds, solo_iops, slowdown, iops_ratio = (
            tie_breaking.rounded(one, digits)
            for one in (self.solo_seconds, self.solo_iops, self.slowdown, self.iops_ratio))
        return dataclasses.replace(self, solo_seconds=solo_seconds, solo_iops=solo_iops,
                                   slowdown=slowdown, iops_ratio=iops_ratio)

    @functools.cached_property
    def speed(self) -> FloatArray:
        """(n, c) progress of one task of a class: 1 alone, 0 where there is none."""
        return np.nan_to_num(1 / self.slowdown)

    @functools.cached_property
    def runtime(self) -> FloatArray:
        """(n, c) seconds that a task takes in a configuration; NaN where there is none."""
        runtime: FloatArray = self.slowdown * self.solo_seconds[self.configurations.host_type]
        return runtime

    @functools.cached_property
    def iops(self) -> FloatArray:
        """(n, c) I/O requests per second of one task; 0 where there is none or they are few."""
        iops: FloatArray = np.nan_to_num(
            self.iops_ratio) * self.solo_iops[self.configurations.host_type]
        return iops

    @functools.cached_property
    def completions(self) -> FloatArray:
        """(n, c) tasks of each class that a host in a configuration completes a second."""
        rate: FloatArray = (self.configurations.residents * self.speed
                            / self.solo_seconds[self.configurations.host_type])
        return rate
