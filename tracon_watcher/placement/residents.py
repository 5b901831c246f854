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

"""The residents of one host type, prepared for whatever newcomer a request brings."""

from __future__ import annotations

import dataclasses
import math
from typing import Any
from typing import Iterator
from typing import Sequence

import numpy as np

from tracon_watcher import characteristics
from tracon_watcher.characteristics import BoolArray, CPU, FloatArray, IntArray
from tracon_watcher.placement import bounds
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import elsewhere
from tracon_watcher.placement import neighbours
from tracon_watcher.placement import own_wait
from tracon_watcher.prediction import pairwise
from tracon_watcher import tie_breaking

# Residents of a block.
_AT_ONCE = 1 << 14


@dataclasses.dataclass(frozen=True)
class Response:
    """One response of all residents of one host type, ready for one more neighbour.

    :param behaviour: of the residents as targets and neighbours
    :param arrival: (n, 14) what each presses a newcomer of its host with
    :param single: (n,) with ``cross`` the sums of the parts of those beside each now, see
        :mod:`tracon_watcher.prediction.pairwise`
    :param beyond: the parts, (n,) each, that I/O from other hosts on the same storage has in
        these sums
    :param tables: of the residents on storage that other hosts share, see :mod:`.elsewhere`
    :param own_wait: (n,) see :mod:`.own_wait`; None where all are 0
    :param exponent: (n,) what each suffers now
    :param doubt: (n,) standard deviations of that due to unknown I/O from elsewhere
    :param counted: (n,) residents that have this response at all, and are known
    :param limited: rows with a limit on it
    :param limit: their limits, as exponents
    :param breached: those among them in breach already
    :param allowance: by how much their exponents may rise without a breach
    :param flagged: hosts with a resident outside the hull
    :param far: hosts with a resident so far outside that it is unknown
    """

    model: pairwise.PairwiseModel
    behaviour: neighbours.Behaviour
    arrival: FloatArray
    single: FloatArray
    cross: FloatArray
    beyond: tuple[FloatArray, FloatArray]
    tables: elsewhere.Tables
    own_wait: FloatArray | None
    exponent: FloatArray
    doubt: FloatArray
    counted: BoolArray
    limited: IntArray
    limit: FloatArray
    breached: BoolArray
    allowance: FloatArray
    flagged: IntArray
    far: IntArray

    def beside(self, rows: Any, added: FloatArray | None = None,
               beyond: FloatArray | None = None) -> FloatArray:
        """Return the exponents of residents, (m,), beside one more neighbour or other I/O.

        :param rows: which residents
        :param added: (m,) excess that a neighbour adds
        :param beyond: (m,) excess that takes the place of ``self.beyond``
        """
        sums = self.single[rows], self.cross[rows]
        if added is not None:
            sums = _added(sums, self.model.parts(added))
        if beyond is not None:
            new = self.model.parts(beyond)
            # What is taken away was added before; rounding may leave less than nothing.
            sums = _added(sums, (new[0] - self.beyond[0][rows], new[1] - self.beyond[1][rows]))
            sums = np.maximum(sums[0], 0.0), np.maximum(sums[1], 0.0)
        return self.total(*sums, rows)

    def total(self, single: FloatArray, cross: FloatArray, rows: Any,
              axes: tuple[int, ...] = ()) -> FloatArray:
        """Return what residents suffer whose parts have these sums.

        :param single: (m,), and ``cross``; or with further axes
        :param rows: which residents
        :param axes: the further axes
        """
        waits = None if self.own_wait is None else np.expand_dims(self.own_wait[rows], axes)
        return own_wait.felt(self.model.total(single, cross), waits)


def _added(one: tuple[FloatArray, FloatArray],
           other: tuple[FloatArray, FloatArray]) -> tuple[FloatArray, FloatArray]:
    return one[0] + other[0], one[1] + other[1]


@dataclasses.dataclass(frozen=True)
class Group:
    """The hosts and residents of one host type; rows of ``residents`` stand in host order.

    :param place: of each resident, index into ``hosts``
    :param first: (g + 1,) the residents of host i are first[i] to first[i + 1] − 1
    :param blocks: (hosts, rows of their residents), some thousand rows each, in order: what takes
        several passes over all residents takes them block by block, each of which fits into the
        processor's cache, and not into fresh memory for each intermediate result
    :param apart: (n,) whether they are on other storage than their host's newcomers
    :param has_apart: whether any is
    :param at_pool: (n,) whether they are on that storage, and other hosts share it
    :param pooled: rows of residents on storage that other hosts share, whichever it is
    :param io: (k, 2) I/O from other hosts on the storage of these; those of one host share it
    :param which: of each of ``pooled`` its row of ``io``
    :param table: (n,) of each resident its place in ``pooled``; -1 for none
    """

    hosts: IntArray
    residents: IntArray
    place: IntArray
    responses: tuple[Response, Response]
    first: IntArray
    blocks: tuple[tuple[slice, slice], ...]
    apart: BoolArray
    has_apart: bool
    at_pool: BoolArray
    pooled: IntArray
    io: FloatArray
    which: IntArray
    table: IntArray


def group(cluster: cluster_module.ClusterState, host_type: str,
          models: Sequence[pairwise.PairwiseModel], shared: BoolArray, confidence: float,
          margin: float) -> Group:
    """Prepare the residents of the hosts of one type.

    :param models: of the slowdown and of the IOPS ratio
    :param shared: as :func:`shared_domains` gives
    :param confidence: of the bound that must cross a limit
    :param margin: by how much worse, as a share, a VM in breach already must get
    """
    hosts = np.flatnonzero(np.array([name == host_type for name in cluster.host_type]))
    place = np.full(len(cluster.hosts), -1, dtype=np.intp)
    place[hosts] = np.arange(len(hosts))
    residents = np.flatnonzero(place[cluster.host] >= 0)
    domain = cluster.io_domain[residents]
    # Alone on the storage that is looked at, a host may still share it with others that are not.
    pooled = np.asarray((domain >= 0) & shared[domain]) | (
        cluster.io_beyond[residents] > 0).any(axis=1)
    here = _Whereabouts(
        cluster, hosts, residents, place[cluster.host[residents]],
        domain != cluster.host_io_domain[cluster.host[residents]], np.flatnonzero(pooled))
    profiles = cluster.profiles[residents]
    known = (characteristics.is_known(profiles)
             & ~np.isnan(cluster.io_beyond[residents]).any(axis=1))
    busy = characteristics.request_rate(profiles) >= characteristics.MINIMUM_IOPS
    with np.errstate(divide='ignore'):
        limits = (np.log(cluster.max_slowdown[residents]),
                  -np.log(cluster.min_iops_ratio[residents]))
    slowdown, iops_ratio = (
        _response(model, here, counted, limit, confidence, margin)
        for model, counted, limit in zip(models, (known, known & busy), limits))
    table = np.full(len(residents), -1, dtype=np.intp)
    table[here.pooled] = np.arange(len(here.pooled))
    first = np.searchsorted(here.place, np.arange(len(hosts) + 1)).astype(np.intp)
    return Group(hosts, residents, here.place, (slowdown, iops_ratio), first,
                 tuple(_blocks(first)), here.apart, bool(here.apart.any()), pooled & ~here.apart,
                 here.pooled, *_distinct_io(cluster, residents[here.pooled]), table)


def _blocks(first: IntArray) -> Iterator[tuple[slice, slice]]:
    """Yield hosts, and the rows of their residents, so many that they fit into the cache.

    :param first: (g + 1,) the first row of each host
    """
    start = 0
    while start < len(first) - 1:
        full = int(np.searchsorted(first, first[start] + _AT_ONCE, side='right')) - 1
        stop = max(full, start + 1)
        yield slice(start, stop), slice(int(first[start]), int(first[stop]))
        start = stop


def _distinct_io(cluster: cluster_module.ClusterState,
                 rows: IntArray) -> tuple[FloatArray, IntArray]:
    """Return the I/O that residents of each host and storage meet, (k, 2), and which is whose."""
    if not len(rows):
        return np.empty((0, 2)), np.empty(0, dtype=np.intp)
    key = cluster.host[rows] * (len(cluster.io_domains) + 1) + cluster.io_domain[rows]
    _keys, first, which = np.unique(key, return_index=True, return_inverse=True)
    return cluster.io_beyond[rows[first]], which.astype(np.intp)


@dataclasses.dataclass(frozen=True)
class _Whereabouts:
    """Where a group's n residents are, and its g hosts."""

    cluster: cluster_module.ClusterState
    hosts: IntArray
    residents: IntArray
    place: IntArray            # (n,) in ``hosts``
    apart: BoolArray           # (n,) on other storage than their host's newcomers
    pooled: IntArray           # rows on storage that other hosts share


def _response(model: pairwise.PairwiseModel, here: _Whereabouts, counted: BoolArray,
              limit: FloatArray, confidence: float, margin: float) -> Response:
    cluster = here.cluster
    profiles = cluster.profiles[here.residents]
    behaviour, arrival = _behaviour(model, here, profiles)
    sums = neighbours.sums(behaviour, here.place, len(here.hosts))
    tables = elsewhere.tabulate(model, behaviour.sensitivity[here.pooled])
    beyond = np.zeros(len(profiles))
    beyond[here.pooled] = elsewhere.excess(
        model, tables, np.arange(len(here.pooled)),
        cluster.io_beyond[here.residents[here.pooled]])
    felt = model.parts(beyond)
    single, cross = _added(sums, felt)
    waits = cluster.own_wait[here.residents] if cluster.own_wait.any() else None
    exponent = own_wait.felt(model.total(single, cross), waits)
    far = model.far(profiles)
    # An unknown neighbour makes a VM unknown.
    counted = counted & ~far & ~np.isnan(exponent)
    limited = np.flatnonzero(counted & np.isfinite(limit))
    doubt = _doubt(model, here, tables, (single - felt[0], cross - felt[1]), exponent, waits)
    spread = doubt[limited]
    breached = bounds.lower(model, exponent[limited], spread, confidence) > limit[limited]
    # Where bounds are widened, the exponent that is allowed is an estimate, and may be below the
    # present one of a VM that is in no breach.
    allowance = np.where(breached, least_rise(margin), np.maximum(bounds.exponent_at(
        model, limit[limited], confidence, spread) - exponent[limited], 0.0))
    hosts = here.hosts[here.place]
    return Response(
        model, behaviour, arrival, single, cross, felt, tables, waits, exponent, doubt, counted,
        limited, limit[limited], breached, allowance,
        np.unique(hosts[counted & model.outside(profiles)]), np.unique(hosts[far]))


def _doubt(model: pairwise.PairwiseModel, here: _Whereabouts, tables: elsewhere.Tables,
           sums: tuple[FloatArray, FloatArray], exponent: FloatArray,
           waits: FloatArray | None) -> FloatArray:
    """Return the standard deviations, (n,), that unknown I/O from elsewhere gives exponents.

    :param sums: of what neighbours on the same host do alone
    """
    found = np.zeros(len(exponent))
    rows = here.residents[here.pooled]
    doubt = here.cluster.io_beyond_doubt[rows]
    some = np.flatnonzero(doubt.any(axis=1))
    if len(some):
        more = model.parts(elsewhere.excess(
            model, tables, some, here.cluster.io_beyond[rows[some]] + doubt[some]))
        at = here.pooled[some]
        worse = own_wait.felt(model.total(sums[0][at] + more[0], sums[1][at] + more[1]),
                              None if waits is None else waits[at])
        found[at] = np.nan_to_num(np.abs(worse - exponent[at]))
    return found


def least_rise(margin: float) -> float:
    """Return by how much an exponent in breach must rise to be worse; not by rounding alone."""
    return max(math.log1p(margin), tie_breaking.TOLERANCE)


def _behaviour(model: pairwise.PairwiseModel, here: _Whereabouts,
               profiles: FloatArray) -> tuple[neighbours.Behaviour, FloatArray]:
    """Return the residents' behaviour, and what they press newcomers of their hosts with."""
    pressure = model.pressure(profiles)
    domain = here.cluster.io_domain[here.residents]
    if not here.apart.any():
        # Not computed and not copied where nobody needs it: these arrays are the largest.
        return neighbours.Behaviour(model, model.sensitivity(profiles), pressure, pressure,
                                    domain), pressure
    cpu_pressure = model.pressure(cpu_only(profiles))
    return (neighbours.Behaviour(model, model.sensitivity(profiles), pressure, cpu_pressure,
                                 domain),
            np.where(here.apart[:, None], cpu_pressure, pressure))


def cpu_only(profiles: FloatArray) -> FloatArray:
    """Return (m, 4) profiles without their I/O."""
    without = np.zeros_like(profiles)
    without[:, CPU] = profiles[:, CPU]
    return without


def shared_domains(cluster: cluster_module.ClusterState) -> BoolArray:
    """Return which storage backends serve VMs or newcomers of more than one host, (d + 1,)."""
    shared = np.zeros(len(cluster.io_domains) + 1, dtype=bool)
    domain = np.concatenate([cluster.host_io_domain, cluster.io_domain])
    host = np.concatenate([np.arange(len(cluster.hosts)), cluster.host])
    inside = domain >= 0
    count = max(len(cluster.hosts), 1)
    pairs = np.unique(domain[inside] * count + host[inside])
    shared[:-1] = np.bincount(pairs // count, minlength=len(cluster.io_domains)) > 1
    return shared
