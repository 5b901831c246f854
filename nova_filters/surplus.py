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

"""The surplus of instances that compute hosts count over those that Nova lists on them.

Nova changes the two at different times. A host counts an instance when it claims resources for it
and lists it when it runs; when it deletes one (``_complete_deletion`` of Nova's compute manager),
it first counts one less, then gives back the allocation in Placement, and tells the scheduler's
list last. So a surplus is a VM that is being built, and a deficit is one that is being deleted,
of which nothing follows. What lasts longer than a VM is built is neither, unless the host lists
more meanwhile: then it builds one VM after the other.
"""

from __future__ import annotations

import numpy as np

from tracon_watcher.characteristics import BoolArray
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.characteristics import IntArray

# No host has so large a deficit.
_UNSEEN = np.iinfo(np.intp).min


class Surplus:
    """The surplus of each of h hosts beyond its usual one.

    The usual surplus is what a host had when it was first seen, or less since; never below 0: a
    host that counted two less than it listed has no surplus of two when it lists those no more.

    :param patience: seconds after which a surplus that lasts is usual, too
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._usual: IntArray = np.empty(0, dtype=np.intp)
        #: Since when a host has been above its usual surplus, or below; NaN: it is not.
        self._since: FloatArray = np.empty(0)
        self._above: BoolArray = np.empty(0, dtype=bool)
        self._all_usual = True

    def rebase(self, places: IntArray) -> None:
        """Carry over to other hosts.

        :param places: (h,) where each of the new hosts was among the old ones, -1 for nowhere
        """
        usual, since, above = self._usual, self._since, self._above
        kept = places >= 0
        self._usual = np.full(len(places), _UNSEEN, dtype=np.intp)
        self._since = np.full(len(places), np.nan)
        self._above = np.zeros(len(places), dtype=bool)
        for new, old in ((self._usual, usual), (self._since, since), (self._above, above)):
            new[kept] = old[places[kept]]

    def unsettled(self, rows: IntArray, now: float) -> BoolArray:
        """Say for which hosts Nova's list should change soon, (n,).

        :param rows: (n,) indices of hosts
        :param now: seconds since the epoch
        """
        if self._all_usual:
            return np.zeros(len(rows), dtype=bool)
        # The clock may have been set back.
        return np.asarray(np.abs(now - self._since[rows]) <= self._patience)

    def grew(self, row: int, now: float) -> None:
        """Begin again to wait for a host with a surplus that has come to list more."""
        if self._above[row]:
            self._since[row] = now

    def update(self, rows: IntArray, surplus: IntArray, now: float) -> IntArray:
        """Note what was found, and return how much of it is VMs that are being built, (n,).

        :param rows: (n,) indices of hosts
        :param surplus: (n,) instances that each counts, less those that it lists
        :param now: seconds since the epoch
        """
        before = self._usual[rows]
        # So it is on nearly every request, which should cost next to nothing.
        if self._all_usual and (surplus == before).all():
            return np.zeros(len(rows), dtype=np.intp)
        excess = np.maximum(surplus, 0)
        usual = np.where(before == _UNSEEN, excess, np.minimum(before, excess))
        above = surplus > usual
        # The earlier of the two, should the clock be set back; fmin passes over NaN.
        since = np.where(above == self._above[rows], np.fmin(self._since[rows], now), now)
        since[surplus == usual] = np.nan
        lasting = above & (now - since > self._patience)
        if lasting.any():
            usual[lasting], since[lasting], above[lasting] = excess[lasting], np.nan, False
        self._usual[rows], self._since[rows], self._above[rows] = usual, since, above
        self._all_usual = bool(np.isnan(self._since).all())
        return np.asarray(excess - usual)
