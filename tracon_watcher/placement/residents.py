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
from typing import Sequence

import numpy as np

from tracon_watcher import characteristics
from tracon_watcher.characteristics import BoolArray, FloatArray, IntArray
from tracon_watcher.placement import bounds
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.prediction import anchored
from tracon_watcher.prediction import totals


@dataclasses.dataclass(frozen=True)
class Response:
    """One response of all residents of one host type, ready for added background."""

    model: anchored.AnchoredModel
    prepared: anchored.Prepared
    counted: BoolArray         # residents that have this response at all
    limited: IntArray          # rows with a limit on it
    at_limit: anchored.Prepared     # the same rows
    limit: FloatArray          # their limits, as exponents
    breached: BoolArray        # those among them in breach already
    allowance: FloatArray      # by how much their exponents may rise without a breach
    apart: IntArray            # entries of ``limited`` on other storage than newcomers of the host
    pooled: IntArray           # entries of ``limited`` on storage shared with other hosts
    # Rises summed by host: of rows on the storage of their host's newcomers, on another one; of
    # rows on a pool that their host's newcomers use; and, by storage, of other rows on a pool.
    at_home: totals.Totals
    elsewhere: totals.Totals
    pooled_at_home: totals.Totals
    pooled_elsewhere: totals.Totals
    arrival: anchored.Backgrounds   # what a newcomer meets on each host of the group
    flagged: IntArray          # hosts with a resident outside the hull
    far: IntArray              # hosts with a resident so far outside that it is unknown


@dataclasses.dataclass(frozen=True)
class Group:
    """The hosts and residents of one host type; rows of ``residents`` stand in host order."""

    hosts: IntArray
    residents: IntArray
    place: IntArray            # of each resident, index into ``hosts``
    responses: tuple[Response, Response]
    has_elsewhere: bool        # whether any resident is on other storage than its host's newcomers
    pools: IntArray            # of each host its storage; -1 where no other host shares that
    pooled: BoolArray          # residents whose storage is shared with other hosts


def group(cluster: cluster_module.ClusterState, host_type: str,
          models: Sequence[anchored.AnchoredModel], shared: BoolArray, confidence: float,
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
    profiles, background = cluster.profiles[residents], cluster.background[residents]
    known = ~np.isnan(background).any(axis=1) & characteristics.is_known(profiles)
    busy = characteristics.request_rate(profiles) >= characteristics.MINIMUM_IOPS
    with np.errstate(divide='ignore'):
        limits = (np.log(cluster.max_slowdown[residents]),
                  -np.log(cluster.min_iops_ratio[residents]))
    domain = cluster.io_domain[residents]
    here = _Whereabouts(
        cluster, cluster.host[residents], place[cluster.host[residents]], len(hosts), domain,
        domain == cluster.host_io_domain[cluster.host[residents]],
        np.asarray((domain >= 0) & shared[domain]))
    responses = []
    for model, counted, limit in zip(models, (known, known & busy), limits):
        prepared = model.prepare(profiles, background)
        limited = np.flatnonzero(counted & np.isfinite(limit))
        exponent = prepared.exponent[limited]
        breached = bounds.lower(model, exponent, 0.0, confidence) > limit[limited]
        allowance = np.where(breached, math.log1p(margin), bounds.exponent_at(
            model, limit[limited], confidence) - exponent)
        responses.append(_response(model, prepared, counted, limited, limit[limited], breached,
                                   allowance, here, model.backgrounds(cluster.load[hosts])))
    backend = cluster.host_io_domain[hosts]
    return Group(hosts, residents, here.place, (responses[0], responses[1]),
                 bool((~here.at_home).any()), np.where(shared[backend], backend, -1), here.pooled)


@dataclasses.dataclass(frozen=True)
class _Whereabouts:
    """Where a group's residents are, (n,) each."""

    cluster: cluster_module.ClusterState
    host: IntArray             # in the cluster
    place: IntArray            # in the group
    hosts: int                 # of the group
    domain: IntArray           # storage
    at_home: BoolArray         # whether that is their host's newcomers' too
    pooled: BoolArray          # whether other hosts share it


def _response(model: anchored.AnchoredModel, prepared: anchored.Prepared, counted: BoolArray,
              limited: IntArray, limit: FloatArray, breached: BoolArray, allowance: FloatArray,
              here: _Whereabouts, arrival: anchored.Backgrounds) -> Response:

    def summed(chosen: BoolArray, by: IntArray, count: int) -> totals.Totals:
        rows = np.flatnonzero(counted & chosen)
        return totals.Totals(model, prepared, rows, by[rows], count)

    return Response(
        model, prepared, counted, limited, prepared.take(limited), limit, breached, allowance,
        np.flatnonzero(~here.at_home[limited]), np.flatnonzero(here.pooled[limited]),
        summed(here.at_home, here.place, here.hosts),
        summed(~here.at_home, here.place, here.hosts),
        summed(here.pooled & here.at_home, here.place, here.hosts),
        summed(here.pooled & ~here.at_home, here.domain, len(here.cluster.io_domains)),
        arrival, np.unique(here.host[prepared.outside & counted]),
        np.unique(here.host[prepared.far & counted]))


def shared_domains(cluster: cluster_module.ClusterState) -> BoolArray:
    """Return which storage backends serve VMs or newcomers of more than one host, (d + 1,)."""
    shared = np.zeros(len(cluster.io_domains) + 1, dtype=bool)
    pairs = np.concatenate([
        np.stack([cluster.host_io_domain, np.arange(len(cluster.hosts))], axis=1),
        np.stack([cluster.io_domain, cluster.host], axis=1)])
    pairs = np.unique(pairs[pairs[:, 0] >= 0], axis=0)
    shared[:-1] = np.bincount(pairs[:, 0], minlength=len(cluster.io_domains))[
        :len(cluster.io_domains)] > 1
    return shared
