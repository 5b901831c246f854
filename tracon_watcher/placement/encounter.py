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
from typing import Callable

import numpy as np

from tracon_watcher.characteristics import FloatArray, IntArray, IO
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import elsewhere
from tracon_watcher.placement import newcomer as newcomers
from tracon_watcher.placement import residents
from tracon_watcher.prediction import pairwise


@dataclasses.dataclass(frozen=True)
class Encounter:
    """One response of a newcomer on every host of a group, and of that group's residents.

    :param pool: the storage backend on which its I/O is felt already, -1 for none; see
        :meth:`tracon_watcher.placement.assessment.Assessor.assess`
    """

    cluster: cluster_module.ClusterState
    group: residents.Group
    response: residents.Response
    pool: int = -1

    @property
    def model(self) -> pairwise.PairwiseModel:
        """What all of it is predicted by."""
        return self.response.model

    def newcomer(self, profile: FloatArray, places: IntArray | None = None) -> FloatArray:
        """Return the newcomer's exponents, (g,) or (m,).

        :param profile: (4,)
        :param places: (m,) indices into the group's hosts; None for all g
        """
        group, response = self.group, self.response
        if places is None:
            place, arrival, count = group.place, response.arrival, len(group.hosts)
        else:
            place, rows = _residents_of(group.first, places)
            arrival, count = response.arrival[rows], len(places)
        sensitivity = self.model.sensitivity(profile[None, :])
        each = self.model.parts(self.model.excess(arrival @ sensitivity[0]))
        beyond = self.model.parts(self._beyond(sensitivity, profile, places))
        return self.model.total(*(np.bincount(place, one, minlength=count) + other
                                  for one, other in zip(each, beyond)))

    def residents(self, profile: FloatArray, rows: IntArray | None = None) -> FloatArray:
        """Return the exponents of residents of the host that the newcomer comes to, (n,) or (m,).

        :param profile: (4,) of the newcomer
        :param rows: (m,) indices into the group's residents; None for all n
        """
        group, behaviour = self.group, self.response.behaviour
        pressure, cpu_pressure = self.model.pressure(
            np.stack([profile, residents.cpu_only(profile[None, :])[0]]))
        chosen = slice(None) if rows is None else rows
        product = behaviour.sensitivity[chosen] @ pressure
        if group.has_apart:
            # On other storage than its host's newcomers one shares only the CPU with them.
            product = np.where(group.apart[chosen],
                               behaviour.sensitivity[chosen] @ cpu_pressure, product)
        added = self.model.excess(product)
        if self.pool < 0:
            return self.response.beside(chosen, added)
        # It was among the I/O from elsewhere until it came.
        felt = np.flatnonzero(group.at_pool[chosen] & (behaviour.domain[chosen] == self.pool))
        own = felt if rows is None else rows[felt]
        after = self.response.beside(chosen, added)
        after[felt] = self.response.beside(own, added[felt], self._excess_of(own, -profile[IO]))
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
        io = self.cluster.host_io_beyond[hosts]
        found = np.zeros(len(hosts))
        felt = np.flatnonzero(~(io == 0).all(axis=1))
        if not len(felt):
            return found
        own = self.cluster.host_io_domain[hosts[felt]] == self.pool
        io = np.maximum(io[felt] - np.where(own[:, None], profile[IO], 0.0), 0.0)
        found[felt] = elsewhere.excess(self.model, elsewhere.tabulate(self.model, sensitivity),
                                       np.zeros(len(felt), dtype=np.intp), io)
        return found


def spread(exponents: Callable[[FloatArray], FloatArray], newcomer: newcomers.Profile,
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
