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

"""A newcomer among the residents of one host type: what it meets, and what meets it."""

from __future__ import annotations

import dataclasses
import functools
from typing import Callable

import numpy as np

from tracon_watcher.characteristics import FloatArray, IntArray, IO
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import elsewhere
from tracon_watcher.placement import newcomer as newcomers
from tracon_watcher.placement import own_wait as own_waits
from tracon_watcher.placement import residents
from tracon_watcher.prediction import pairwise

#: Gives exponents, (m,), for a newcomer's profile, (4,).
Exponents = Callable[[FloatArray], FloatArray]


@dataclasses.dataclass(frozen=True)
class Encounter:
    """One response of a newcomer on every host of a group, and of that group's residents.

    :param pool: the storage backend on which it stays, -1 for none; with ``felt`` see
        :meth:`tracon_watcher.placement.assessment.Assessor.assess`
    :param felt: whether its I/O is felt there already
    :param apart: whether it shares the CPU alone with whom it meets
    :param own_wait: of the newcomer, see :mod:`.own_wait`
    :param more: by how many standard deviations I/O from other hosts is more than expected
    """

    cluster: cluster_module.ClusterState
    group: residents.Group
    response: residents.Response
    pool: int = -1
    felt: bool = True
    apart: bool = False
    own_wait: float = 0.0
    more: float = 0.0

    @property
    def model(self) -> pairwise.PairwiseModel:
        """What all of it is predicted by."""
        return self.response.model

    @functools.cached_property
    def storage(self) -> int | None:
        """The newcomer's storage backend, whichever of these hosts it comes to; -1 for one that
        no VM is known to be on. None: the host's own.
        """
        if self.apart:
            return -1
        if self.pool < 0 or (
                self.cluster.host_io_domain[self.group.hosts] == self.pool).all():
            return None
        return self.pool

    @property
    def io_beyond(self) -> FloatArray:
        """(h, 2): reads and writes per second of VMs on other hosts on the newcomer's storage."""
        return self._from_elsewhere[0]

    @functools.cached_property
    def _from_elsewhere(self) -> tuple[FloatArray, FloatArray]:
        """That, and its standard deviations, (h, 2) each."""
        if self.storage is None:
            return self.cluster.host_io_beyond, self.cluster.host_io_beyond_doubt
        if self.storage < 0:
            # Of a pool that is not known nothing can be said: neutral.
            nothing = np.zeros((len(self.cluster.hosts), 2))
            return nothing, nothing
        return self.cluster.io_beyond_on(self.storage)

    def newcomer(self, profile: FloatArray, places: IntArray | None = None) -> FloatArray:
        """Return the newcomer's exponents, (g,) or (m,).

        :param profile: (4,)
        :param places: (m,) indices into the group's hosts; None for all g
        """
        if places is not None:
            return self.newcomer_on(places)(profile)
        group = self.group
        sensitivity = self.model.sensitivity(profile[None, :])
        sums = np.empty((2, len(group.hosts)))
        for hosts, rows in group.blocks:
            sums[:, hosts] = self._sums(self._products(rows)(sensitivity[0]),
                                        group.place[rows] - hosts.start, hosts.stop - hosts.start)
        return self._met(sums, sensitivity, profile, None)

    def newcomer_on(self, places: IntArray) -> Exponents:
        """Return what gives the newcomer's exponents on some hosts, (m,), for a profile.

        What it needs of these hosts is picked once, however many profiles there are.

        :param places: (m,) indices into the group's hosts
        """
        place, rows = _residents_of(self.group.first, places)
        products = self._products(rows)

        def exponents(profile: FloatArray) -> FloatArray:
            sensitivity = self.model.sensitivity(profile[None, :])
            return self._met(self._sums(products(sensitivity[0]), place, len(places)),
                             sensitivity, profile, places)
        return exponents

    def _products(self, rows: IntArray | slice) -> Exponents:
        """Return what gives the exponents that residents each give the newcomer, (m,), for its
        sensitivity, (14,).
        """
        if self.storage is None:
            arrival = self.response.arrival[rows]
            return lambda sensitivity: arrival @ sensitivity
        pressure = self.response.behaviour.pressure[rows]
        # Without the features that have I/O in them a pressure is that of the CPU alone.
        if self.storage < 0:
            return lambda sensitivity: pressure @ (sensitivity * pairwise.CPU_ALONE)
        same = self.response.behaviour.domain[rows] == self.storage
        return lambda sensitivity: np.where(same, pressure @ sensitivity,
                                            pressure @ (sensitivity * pairwise.CPU_ALONE))

    def _sums(self, products: FloatArray, place: IntArray, count: int) -> FloatArray:
        """Return the sums of the parts that residents have in the newcomer's exponents, (2, m)."""
        each = self.model.parts(self.model.excess(products))
        return np.stack([np.bincount(place, one, minlength=count) for one in each])

    def _met(self, sums: FloatArray, sensitivity: FloatArray, profile: FloatArray,
             places: IntArray | None) -> FloatArray:
        """Return the newcomer's exponents beside residents and I/O from elsewhere."""
        beyond = self.model.parts(self._beyond(sensitivity, profile, places))
        return own_waits.felt(self.model.total(sums[0] + beyond[0], sums[1] + beyond[1]),
                              self.own_wait or None)

    def doubt(self, profile: FloatArray, exponent: FloatArray,
              places: IntArray | None = None) -> FloatArray | float:
        """Return the standard deviations, (g,) or (m,), that unknown I/O of other hosts gives the
        newcomer's exponents; 0 where there is none.

        :param exponent: the newcomer's
        """
        hosts = self.group.hosts if places is None else self.group.hosts[places]
        if not self._from_elsewhere[1][hosts].any():
            return 0.0
        return np.nan_to_num(np.abs(dataclasses.replace(self, more=1.0).newcomer(
            profile, places) - exponent))

    def harm(self, profile: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return by how much residents' exponents rise: their sum on each host, and of each limit.

        :param profile: (4,) of the newcomer
        :returns: (g,), and (l,) in the order of the response's ``limited``
        """
        group, response = self.group, self.response
        pressures = self._pressures(profile)
        harm, rises = np.empty(len(group.hosts)), np.empty(len(response.limited))
        for hosts, rows in group.blocks:
            rise = self._after(profile, pressures, response.behaviour.sensitivity[rows],
                               rows) - response.exponent[rows]
            harm[hosts] = np.bincount(
                group.place[rows] - hosts.start, np.where(response.counted[rows], rise, 0.0),
                minlength=hosts.stop - hosts.start)
            limited = slice(*np.searchsorted(response.limited, (rows.start, rows.stop)))
            rises[limited] = rise[response.limited[limited] - rows.start]
        return harm, rises

    def residents(self, profile: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """Return the exponents of residents of the host that the newcomer comes to, (n,) or (m,).

        :param profile: (4,) of the newcomer
        :param rows: (m,) indices into the group's residents; None for all n
        """
        if rows is not None:
            return self.residents_of(rows)(profile)
        return self._after(profile, self._pressures(profile), self.response.behaviour.sensitivity,
                           slice(0, len(self.group.residents)))

    def residents_of(self, rows: IntArray) -> Exponents:
        """Return what gives the exponents of some residents, (m,), beside a profile.

        What it needs of these residents is picked once, however many profiles there are.

        :param rows: (m,) indices into the group's residents
        """
        sensitivity = self.response.behaviour.sensitivity[rows]
        return lambda profile: self._after(profile, self._pressures(profile), sensitivity, rows)

    def _pressures(self, profile: FloatArray) -> FloatArray:
        """Return what the newcomer presses with: on its own storage, and on another, (2, 14)."""
        return self.model.pressure(
            np.stack([profile, residents.cpu_only(profile[None, :])[0]]))

    def _after(self, profile: FloatArray, pressures: FloatArray, sensitivity: FloatArray,
               rows: IntArray | slice) -> FloatArray:
        """Return the exponents of residents beside the newcomer, (m,).

        :param sensitivity: (m, 14) of these residents
        """
        group, response = self.group, self.response
        # On other storage than the newcomer one shares only the CPU with it.
        if self.storage is None:
            product = sensitivity @ pressures[0]
            if group.has_apart:
                product = np.where(group.apart[rows], sensitivity @ pressures[1], product)
        elif self.storage < 0:
            product = sensitivity @ pressures[1]
        else:
            product = np.where(response.behaviour.domain[rows] == self.storage,
                               sensitivity @ pressures[0], sensitivity @ pressures[1])
        added = self.model.excess(product)
        after = response.beside(rows, added)
        if self.pool < 0 or not self.felt:
            return after
        # It was among the I/O from elsewhere until it came.
        felt = np.flatnonzero((group.table[rows] >= 0)
                              & (response.behaviour.domain[rows] == self.pool))
        own = felt + rows.start if isinstance(rows, slice) else rows[felt]
        after[felt] = response.beside(own, added[felt], self._excess_of(own, -profile[IO]))
        return after

    def elsewhere(self, profile: FloatArray, rows: IntArray) -> FloatArray:
        """Return the exponents of residents on a pool when the newcomer comes to another host.

        :param profile: (4,) of the newcomer
        :param rows: (m,) indices into the group's residents, all of them among ``pooled``
        """
        return self.response.beside(rows, beyond=self._excess_of(rows, profile[IO]))

    def _excess_of(self, rows: IntArray, more: FloatArray) -> FloatArray:
        """Return the excess of residents on a pool with so much more I/O from elsewhere, (m,)."""
        tables = self.group.table[rows]
        return elsewhere.excess(self.model, self.response.tables, tables,
                                np.maximum(self.group.io + more, 0.0), self.group.which[tables])

    def _beyond(self, sensitivity: FloatArray, profile: FloatArray,
                places: IntArray | None) -> FloatArray:
        """Return what I/O from other hosts does to the newcomer, (g,) or (m,)."""
        hosts = self.group.hosts if places is None else self.group.hosts[places]
        io = self.io_beyond[hosts]
        if self.more:
            io = io + self.more * self._from_elsewhere[1][hosts]
        found = np.zeros(len(hosts))
        felt = np.flatnonzero(~(io == 0).all(axis=1))
        if not len(felt):
            return found
        io = io[felt]
        if self.pool >= 0 and self.felt:
            io = np.maximum(io - profile[IO], 0.0)
        found[felt] = elsewhere.excess(self.model, elsewhere.tabulate(self.model, sensitivity),
                                       np.zeros(len(felt), dtype=np.intp), io)
        return found


def spread(exponents: Exponents, newcomer: newcomers.Profile,
           expected: FloatArray) -> FloatArray | float:
    """Return the standard deviations, (m,), that an uncertain profile gives exponents.

    Each characteristic is put one standard deviation higher and lower, apart from the others,
    and what changes more counts: at the edge of the hull only one of the two changes anything.

    :param exponents: of a (4,) profile, (m,)
    :param expected: (m,) those of the newcomer's mean
    """
    square = np.zeros(len(expected))
    for column in np.flatnonzero(newcomer.deviation):
        change = np.zeros(len(expected))
        for step in (newcomer.deviation[column], -newcomer.deviation[column]):
            profile = newcomer.mean.copy()
            profile[column] = max(profile[column] + step, 0.0)
            change = np.maximum(change, np.abs(exponents(profile) - expected))
        square += change ** 2
    return np.sqrt(square) if square.any() else 0.0


def _residents_of(first: IntArray, places: IntArray) -> tuple[IntArray, IntArray]:
    """Return, for each resident of some hosts, its place among these and its row."""
    counts = first[places + 1] - first[places]
    place = np.repeat(np.arange(len(places)), counts)
    offset = np.arange(len(place)) - np.repeat(np.cumsum(counts) - counts, counts)
    return place, np.repeat(first[places], counts) + offset
