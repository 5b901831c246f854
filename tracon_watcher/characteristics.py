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

"""The four characteristics of a virtual machine, and how co-residents' add up.

Everything that is predicted here rests on four numbers a VM, all read outside the guest
(Chiang & Huang, TRACON, SC'11, Table 2). An array of them is float64 of shape (n, 4) with the
column order of :data:`NAMES`; NaN means *unknown*, never zero.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

NAMES = ('read_requests_per_second', 'write_requests_per_second', 'guest_cpu', 'host_cpu')
UNITS = ('1/s', '1/s', 'cores', 'cores')
COUNT = len(NAMES)
#: More than any VM does, and little enough for sums and squares to be finite.
LARGEST = 1e15

#: Columns whose contention domain is the storage backend.
IO = slice(0, 2)
#: Columns whose contention domain is the host (or socket).
CPU = slice(2, 4)

#: What interference does to a VM, as models predict it: time per unit of work over that alone, and
#: I/O operations per second over those alone.
RESPONSES = ('slowdown', 'iops_ratio')

#: Below this many requests a second alone, an IOPS ratio says nothing and is left undefined.
MINIMUM_IOPS = 5.0


def as_characteristics(values: npt.ArrayLike) -> FloatArray:
    """Return ``values`` as a float64 array of shape (n, 4).

    :param values: one VM's four characteristics, or an (n, 4) array of them
    :raises ValueError: when the last axis has not four entries, or one is negative or infinite
    """
    array = np.atleast_2d(np.asarray(values, dtype=np.float64))
    if array.ndim != 2 or array.shape[1] != COUNT:
        raise ValueError(f'characteristics have {COUNT} columns ({", ".join(NAMES)}), '
                         f'not shape {array.shape}')
    if np.isinf(array).any() or (array < 0).any():
        row, column = np.argwhere(np.isinf(array) | (array < 0))[0]
        raise ValueError(f'{NAMES[column]} of row {row} is {array[row, column]}: '
                         f'a rate or a share of cores is finite and not negative')
    return array


def is_known(profiles: FloatArray) -> BoolArray:
    """Say for each of the (n, 4) profiles whether all its characteristics are known: (n,)."""
    return np.asarray(~np.isnan(profiles).any(axis=1))


def request_rate(profiles: FloatArray) -> FloatArray:
    """Reads and writes together, requests per second, shape (n,), of (n, 4) profiles."""
    rate: FloatArray = profiles[:, IO].sum(axis=1)
    return rate


def cpu_share(profiles: FloatArray, vcpus: IntArray) -> FloatArray:
    """Return which part of its time alone each vCPU is on the CPU, (n,).

    :param profiles: (n, 4)
    :param vcpus: (n,)
    """
    share: FloatArray = np.clip(profiles[:, CPU].sum(axis=1) / vcpus, 0.0, 1.0)
    return share


def domain_totals(values: FloatArray, domain: IntArray, count: int) -> FloatArray:
    """Sum the rows of ``values`` (n, k) by domain index (n,), giving (count, k).

    Rows whose domain is -1 count nowhere.
    """
    inside = domain >= 0
    totals = np.zeros((count, values.shape[1]))
    for column in range(values.shape[1]):
        totals[:, column] = np.bincount(domain[inside], weights=values[inside, column],
                                        minlength=count)[:count]
    return totals
