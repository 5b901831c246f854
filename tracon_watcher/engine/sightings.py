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

"""Which VMs tell something of a model in a cycle: measured slowdowns beside what was predicted.

A VM that goes on as before says the same again and again, so it is heard once in a while, and
anew when its neighbours have changed. It must have had the same neighbours throughout the interval
that its slowdown was measured in, and neighbours that do something; where anything about its host
is unknown, it is not asked, nor while a limit of its own may hold it back. One outside of what the
model was trained on says nothing of whether the model still holds, but a new model learns from it.

Those of a cycle are told in a random order. Told host by host, a few hosts with many VMs would
stand for all for as long as they have the word.
"""

from __future__ import annotations

import dataclasses
from typing import Mapping

import numpy as np

from tracon_watcher.characteristics import BoolArray, CPU, FloatArray, IntArray
from tracon_watcher.contention import demands
from tracon_watcher.engine import view as views
from tracon_watcher.placement import assessment
from tracon_watcher.placement import residents
from tracon_watcher import tie_breaking

#: By host, its VMs and since when it has these, in seconds since the epoch.
Companies = dict[str, tuple[tuple[str, ...], float]]
#: Seconds from one sighting of a VM beside the same neighbours to the next.
SPACING = 300.0
#: Most sightings of a host type in one cycle; those whose turn was longest ago come first.
MOST_AT_ONCE = 200
#: Most neighbours that a sighting lists, those that are predicted to do most.
MOST_NEIGHBOURS = 16
#: Share of the host type's capacity that neighbours must demand of something.
_LEAST_DEMAND = 0.05
# Excess below which there is nothing to be shared.
_NOTHING = 1e-6
_LONG_AGO = float('-inf')


@dataclasses.dataclass(frozen=True)
class Sighting:
    """One VM, as it was measured and predicted.

    :param target: (4,) what it demands
    :param neighbours: (k, 4) what those beside it demand, of which it feels anything
    :param share: of the predicted excess, what these account for; the rest comes from elsewhere
    :param exponent: measured log slowdown
    :param deviation: its standard error
    :param predicted: exponent; NaN where somebody is outside of what the model was trained on
    """

    vm: str
    host: str
    target: FloatArray
    neighbours: FloatArray
    share: float
    exponent: float
    deviation: float
    predicted: float


class Sightings:
    """Remembers whom it has seen with whom.

    :param interval: seconds between two samples of a VM, at least
    :param rng: the order in which VMs are asked; by default the same one in each process
    """

    def __init__(self, interval: float, spacing: float = SPACING,
                 rng: np.random.Generator | None = None) -> None:
        self._interval = interval
        self._spacing = spacing
        self._rng = np.random.default_rng(0) if rng is None else rng
        self._companies: Companies = {}
        #: By VM, when it was seen last and with whom.
        self._seen: dict[str, tuple[float, tuple[str, ...]]] = {}

    def take(self, view: views.View,
             profiles: demands.Profiles) -> Mapping[str, list[Sighting]]:
        """Return the sightings of a cycle, by host type.

        :param profiles: that the view was made of
        """
        cluster = view.moment.cluster
        self._companies = companies(view, self._companies)
        for uuid in self._seen.keys() - cluster.resident_index.keys():
            del self._seen[uuid]
        place = {vm: row for row, vm in enumerate(profiles.vms)}
        rows = np.array([place.get(uuid, -1) for uuid in cluster.uuids], dtype=np.intp)
        ended = np.where(rows >= 0, np.append(profiles.at, np.nan)[rows], np.nan)
        # Where polls were lost, an interval is longer than the time between two.
        began = ended - np.maximum(np.append(profiles.seconds, np.nan)[rows], self._interval)
        slowdown, deviation = (np.append(values, np.nan)[rows] for values in (
            profiles.slowdown, profiles.slowdown_deviation))
        known = np.isfinite(slowdown) & (slowdown > 0) & np.isfinite(deviation)
        known &= ~np.append(profiles.limited, False)[rows]
        # Of one that waits for its own limits at times, less is predicted than its model says.
        known &= cluster.own_wait == 0
        fit, inside = _hosts(view)
        known &= fit[cluster.host]
        predicted = np.where(inside[cluster.host], view.moment.exponents()[0], np.nan)
        found = {}
        for group in view.moment.groups:
            own = group.residents[known[group.residents]]
            due = self._due(view, own, began, ended)
            if len(due):
                model = group.responses[0].model
                found[model.host_type] = [
                    one for one in (
                        _sighting(view.moment, group, int(row), float(np.log(slowdown[row])),
                                  float(deviation[row]), float(predicted[row])) for row in due)
                    if one is not None]
        return found

    @staticmethod
    def crowded(view: views.View) -> Mapping[str, set[str]]:
        """Return the hosts, by host type, on which VMs have neighbours or share storage.

        Of other hosts nothing can be heard.
        """
        cluster, found = view.moment.cluster, {}
        beside = np.diff(cluster.first)[cluster.host] > 1
        beside |= (cluster.io_beyond > 0).any(axis=1)
        for group in view.moment.groups:
            rows = group.residents[beside[group.residents]]
            found[group.responses[0].model.host_type] = {
                cluster.hosts[host] for host in np.unique(cluster.host[rows])}
        return found

    def _due(self, view: views.View, rows: IntArray, began: FloatArray,
             ended: FloatArray) -> list[int]:
        cluster, waiting = view.moment.cluster, []
        for row in rows.tolist():
            company, since = self._companies[cluster.hosts[cluster.host[row]]]
            # As long as it is not sure that all of the interval was spent together.
            if not began[row] >= since:
                continue
            at, beside = self._seen.get(cluster.uuids[row], (_LONG_AGO, ()))
            if beside != company or ended[row] >= at + self._spacing:
                waiting.append((at if beside == company else _LONG_AGO, row))
        # Among equals chance decides who is asked, and among all, who first.
        self._rng.shuffle(waiting)
        waiting.sort(key=lambda one: one[0])
        chosen = [row for _at, row in waiting[:MOST_AT_ONCE]]
        self._rng.shuffle(chosen)
        for row in chosen:
            self._seen[cluster.uuids[row]] = (
                float(ended[row]), self._companies[cluster.hosts[cluster.host[row]]][0])
        return chosen


def companies(view: views.View, before: Companies) -> Companies:
    """Return who is on each host, and since when; a host that has the same VMs keeps its time.

    :param before: what was returned of the cycle before
    """
    cluster, found = view.moment.cluster, {}
    for index, host in enumerate(cluster.hosts):
        company = cluster.uuids[cluster.first[index]:cluster.first[index + 1]]
        old = before.get(host)
        found[host] = old if old is not None and old[0] == company else (
            company, view.updated_at)
    return found


def _hosts(view: views.View) -> tuple[BoolArray, BoolArray]:
    """Return the hosts of which all is known, (h,), and those inside the hull, (h,)."""
    judged = view.moment
    stale = view.updated_at - judged.cluster.updated_at > judged.settings.maximum_age
    inside = judged.status == assessment.Status.KNOWN
    for group in judged.groups:
        inside[group.responses[0].flagged] = False
    fit = np.isin(judged.status, (assessment.Status.KNOWN, assessment.Status.OUTSIDE_HULL))
    return np.asarray(fit & ~stale), np.asarray(inside)


def _sighting(assessor: assessment.Assessor, group: residents.Group, row: int, exponent: float,
              deviation: float, predicted: float) -> Sighting | None:
    """Return what is to be remembered of a resident; None where nobody does anything to it."""
    cluster, model = assessor.cluster, group.responses[0].model
    host = int(cluster.host[row])
    others = np.array([other for other in range(cluster.first[host], cluster.first[host + 1])
                       if other != row], dtype=np.intp)
    beside = cluster.profiles[others].copy()
    apart = cluster.io_domain[others] != cluster.io_domain[row]
    beside[apart] = residents.cpu_only(beside[apart])
    elsewhere = cluster.io_beyond[row]
    demanded = beside.sum(axis=0)
    demanded[:CPU.start] += elsewhere
    if (demanded < _LEAST_DEMAND * model.capacity).all():
        return None
    target = cluster.profiles[row]
    each = model.excess((model.sensitivity(target[None]) * model.pressure(beside)).sum(axis=1))
    strongest = np.sort(tie_breaking.argsort(-each)[:MOST_NEIGHBOURS])
    listed, whole = (float(np.expm1(model.total(*(
        part.sum() for part in model.parts(excess))))) for excess in (each[strongest], each))
    if elsewhere.any():
        # How much comes from there, only the whole prediction tells.
        whole = float(np.expm1(predicted))
    share = min(listed / whole, 1.0) if whole > _NOTHING else float(not elsewhere.any())
    return Sighting(cluster.uuids[row], cluster.hosts[host], target.copy(), beside[strongest],
                    share, exponent, deviation, predicted)


def standardised(sighting: Sighting, spread: float) -> float:
    """Return by how many standard deviations a measurement exceeds what was predicted.

    :param spread: standard deviation of the model's own error there, in exponents
    """
    return (sighting.exponent - sighting.predicted) / float(
        np.hypot(spread, sighting.deviation))
