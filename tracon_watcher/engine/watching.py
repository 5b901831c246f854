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

"""One host type's models under watch: alarms, trust, and what there is to learn from.

The Page–Hinkley test (:mod:`tracon_watcher.models.drift`) watches how large the errors of
predictions are, in standard deviations of model and measurement together. What is usual, the
model's own held-out errors tell. At an alarm trust falls, and what was seen from where the rise
began is kept: a new model is learnt from it.
"""

from __future__ import annotations

import collections
import math
from typing import Collection, Container

import numpy as np

from tracon_watcher.characteristics import COUNT
from tracon_watcher.engine import fading
from tracon_watcher.engine import sightings as seen
from tracon_watcher.models import drift
from tracon_watcher.models import labels as labels_module
from tracon_watcher.placement import assessment
from tracon_watcher.prediction import interval as intervals
from tracon_watcher.prediction import pairwise
from tracon_watcher import tie_breaking

#: Errors that must be usual in the mean for a host in trouble to be heard again.
HOST_RECOVERY = 40
#: VMs on which errors must be unusual: some are unlike all that was measured.
LEAST_VMS = 3
#: Hosts, and share of hosts, that are in trouble of their own at most.
LEAST_HOSTS, MOST_TROUBLED = 2, 0.2
#: Sightings of other hosts without which it cannot be told whether they are in trouble as well.
LEAST_OTHERS = 5
#: Sightings that are kept of a host type.
MOST_KEPT = 600
#: Sightings after which a first refit is tried, at least, and how many times as many before the
#: next one. The first waits for a whole round of VMs, or for all that is kept, lest it be learnt
#: from those hosts alone that happened to be heard first.
FIRST_TRY, TRY_AGAIN = 20, 1.5
# Shares of the excess below which a sighting is not learnt from: too much came from elsewhere.
_LEAST_SHARE = 0.5
_PROBABILITIES = np.linspace(0.0125, 0.9875, 40)


class Watching:
    """One host type's models, and what was seen since they began to be wrong.

    :param models: in use
    """

    def __init__(self, models: assessment.Models) -> None:
        self.models = models
        self._fading = fading.Trust()
        #: Sightings since the drift began.
        self.count = 0
        self._kept: collections.deque[seen.Sighting] = collections.deque(maxlen=MOST_KEPT)
        self._learning = False
        self._adopted: assessment.Models | None = None
        self._next_try = FIRST_TRY
        self._present: Collection[str] = ()
        self._hosts: set[str] = set()
        self._vms: set[str] = set()
        self._watch_anew()

    @property
    def trust(self) -> float:
        """How far the models are trusted, 0 to 1."""
        return self._fading.value

    def with_models(self, models: assessment.Models) -> Watching:
        """Return what watches these models from now on.

        If they are not ours, all that was seen is of another age.
        """
        if models is self.models:
            return self
        if models is not self._adopted:
            return Watching(models)
        self.models, self._adopted = models, None
        self._fading.restore()
        self._watch_anew()
        return self

    def attend(self, hosts: Collection[str], vms: Container[str]) -> None:
        """Take note of who is there in a cycle, and forget the trouble of hosts that are not.

        :param hosts: of this type, on which VMs can be heard
        :param vms: of the cluster
        """
        self._present = hosts
        self._vms = {vm for vm in self._vms if vm in vms}
        self._hosts.intersection_update(hosts)
        self._troubled = {host: one for host, one in self._troubled.items() if host in hosts}

    def take(self, one: seen.Sighting) -> bool:
        """Learn of one sighting; say whether it was one too many."""
        error = seen.standardised(one, _spread(self.models.slowdown, one.predicted))
        unusual = (abs(error) - self._watch.mean) / self._watch.deviation
        if one.host in self._troubled:
            self._listen(one.host, unusual)
            return False
        self._kept.append(one)
        self.count += 1
        if math.isnan(error):
            return False
        self._hosts.add(one.host)
        self._vms.add(one.vm)
        alarm = self._watch.update(error)
        if self._detector.lasted <= 1:
            self._rise.clear()
            self._unusual = {}
        if self._detector.lasted:
            self._rise.append(one)
            total, count = self._unusual.get((one.host, one.vm), (0.0, 0))
            self._unusual[one.host, one.vm] = (
                total + min(unusual, self._detector.most), count + 1)
        if alarm:
            return self._judge()
        if self._fading.hear(min(unusual, self._detector.most), len(self._vms),
                             self._detector.tolerance):
            self._learning = False
        return False

    def concerned(self) -> list[str]:
        """Return the hosts on which errors were unusual at the last alarm, a few of them."""
        hosts = sorted({host for host, _vm in self._blamed})
        return hosts[:5] + (['…'] if len(hosts) > 5 else [])

    @property
    def due(self) -> bool:
        """Whether enough was seen since the drift began, or since the last try."""
        wanted = max(self._next_try, min(len(self._vms), MOST_KEPT))
        return self._learning and self._adopted is None and self.count >= wanted

    def announce(self, models: assessment.Models | None) -> None:
        """Take note that these models of ours may come; None: they do not."""
        self._adopted = models

    def tried(self, count: int, adopted: assessment.Models | None) -> None:
        """Take note of a try."""
        self._adopted = None if adopted is self.models else adopted
        self._next_try = math.ceil(TRY_AGAIN * count)

    def labels(self) -> labels_module.Labels | None:
        """Return what was seen since the drift began; None where it is too little."""
        kept = [one for one in self._kept if one.share >= _LEAST_SHARE]
        vms = {vm: number for number, vm in enumerate(sorted({one.vm for one in kept}))}
        if len(kept) < FIRST_TRY or len(vms) < LEAST_VMS:
            return None
        return labels_module.Labels(
            np.array([vms[one.vm] for one in kept], dtype=np.intp),
            np.stack([one.target for one in kept]),
            np.concatenate([one.neighbours for one in kept]).reshape(-1, COUNT),
            np.repeat(np.arange(len(kept)), [len(one.neighbours) for one in kept]),
            np.array([one.share for one in kept]), np.array([one.exponent for one in kept]),
            np.array([one.deviation for one in kept]))

    def _judge(self) -> bool:
        """Say whether an alarm is news of the host type, and not of one VM or one host.

        A host without which there would be no alarm is in trouble of its own, and not heard until
        that is over; when too many hosts are, it is the type.
        """
        found, self._unusual = self._unusual, {}
        tolerance = self._detector.tolerance
        blamed = {key for key, (total, count) in found.items() if total > count * tolerance}
        by_host: dict[str, float] = {}
        for (host, _vm), (total, _count) in found.items():
            by_host[host] = by_host.get(host, 0.0) + total
        names = sorted(by_host)
        worst = names[tie_breaking.argmax([by_host[name] for name in names])]
        rest = [one for (host, _vm), one in found.items() if host != worst]
        heard = sum(count for _total, count in rest)
        everywhere = (heard >= LEAST_OTHERS
                      and sum(total for total, _count in rest) > tolerance * heard)
        if everywhere or len(self._present) == 1:
            return len(blamed) >= LEAST_VMS and self._alarm(blamed)
        self._troubled[worst] = 0.0, 0
        if len(self._troubled) < max(LEAST_HOSTS, MOST_TROUBLED * len(self._hosts)):
            return False
        blamed |= {(host, '') for host in self._troubled}
        self._troubled = {}
        return self._alarm(blamed)

    def _listen(self, host: str, unusual: float) -> None:
        """Take note of a host in trouble, and hear it again when that is over."""
        if math.isnan(unusual):
            return
        total, count = self._troubled[host]
        total, count = total + min(unusual, self._detector.most), count + 1
        self._troubled[host] = total, count
        if count >= HOST_RECOVERY:
            self._troubled[host] = 0.0, 0
            if total <= count * self._detector.tolerance:
                del self._troubled[host]

    def _alarm(self, blamed: set[tuple[str, str]]) -> bool:
        """Trust less; say whether that is news."""
        news = self._fading.fade()
        if news:
            # What came before the errors rose is of the old world.
            self._kept = collections.deque(self._rise, maxlen=MOST_KEPT)
            self.count, self._next_try = len(self._kept), FIRST_TRY
            self._blamed, self._learning = blamed, True
        return news

    def _watch_anew(self) -> None:
        self._watch = _usual(self.models.slowdown.interval)
        detector = self._watch.detector
        assert isinstance(detector, drift.PageHinkley)
        self._detector = detector
        self._rise: collections.deque[seen.Sighting] = collections.deque(maxlen=MOST_KEPT)
        #: By host and VM since errors began to rise: by how much they were larger than is usual,
        #: added up, and how many they were. By host in trouble the same.
        self._unusual: dict[tuple[str, str], tuple[float, int]] = {}
        self._troubled: dict[str, tuple[float, int]] = {}
        self._blamed: set[tuple[str, str]] = set()


def _normal(width: intervals.Interval) -> tuple[np.ndarray, float]:
    quantiles = np.interp(_PROBABILITIES, width.levels, width.quantiles)
    return quantiles, max(float(quantiles.std()), 1e-6)


def _usual(width: intervals.Interval) -> drift.Watch:
    """Return the watch of errors in standard deviations."""
    quantiles, deviation = _normal(width)
    return drift.ours(quantiles / deviation)


def _spread(model: pairwise.PairwiseModel, exponent: float) -> float:
    """Return the standard deviation of a model's own error, in exponents."""
    width = model.interval
    return _normal(width)[1] * (width.offset + width.slope * exponent)
