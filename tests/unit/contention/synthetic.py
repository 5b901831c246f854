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

"""SYNTHETIC VMs whose uncontended demand is known, since they are computed here.

A unit of work takes `cpu` seconds of running and `requests` reads of `latency` seconds each.
Beside others it waits `wait` seconds for a core for each of running, and each read takes `slower`
times as long. Nothing of it is a measurement.
"""

import dataclasses

import numpy as np

from tracon_watcher.contention import calibration as documents
from tracon_watcher.contention import calibration
from tracon_watcher.contention import demand_estimator

#: A world in which waiting is all there is, so that stretch and slowdown are one.
PLAIN = documents.Calibrated(
    calibration.Calibration(np.geomspace(1, 100, 30), np.geomspace(1, 100, 30), 0.05),
    np.array([0.05, 0.05]), np.array([[0.02] * 4, [0.3] * 4]), 0.15, np.zeros(2), 0.0,
    {'points': 0, 'files': []}, {})


@dataclasses.dataclass(frozen=True)
class Work:
    """A unit of work, and when the next one begins.

    :param period: seconds between arrivals of an open loop; 0 for a closed one
    :param think: seconds that a closed loop thinks between its units
    """

    cpu: float = 0.01
    requests: float = 0.0
    latency: float = 0.005
    period: float = 0.0
    think: float = 0.0

    def takes(self, wait=0.0, slower=1.0):
        """Seconds of a unit in service."""
        return self.cpu * (1 + wait) + self.requests * self.latency * slower

    def rate(self, wait=0.0, slower=1.0):
        """Units a second."""
        closed = 1 / (self.takes(wait, slower) + self.think)
        return min(1 / self.period, closed) if self.period else closed

    def usage(self, wait=0.0, slower=1.0, rate=None):
        """What is counted of it, of one VM."""
        rate = self.rate(wait, slower) if rate is None else rate
        reads = rate * self.requests
        values = (rate * self.cpu, rate * self.cpu * wait, 1e-4 * reads, reads, 0.0,
                  reads * self.latency * slower, 0.0, 0.0, 0.0)
        return demand_estimator.Usage(*(np.array([value]) for value in values))

    @property
    def demand(self):
        """(4,) what it does alone."""
        return self.usage().characteristics[0]

    def baseline(self):
        """What it waits for alone."""
        return known(self.latency)


def known(latency, count=1):
    """A baseline without doubt."""
    full = np.full(count, float(latency))
    return demand_estimator.Baseline(full, full, np.ones(count), *np.zeros((2, count)))


def queue(work, rng, wait=0.0, slower=1.0, seconds=300.0):
    """Usage of a VM whose service times, and arrivals of an open loop, are exponential."""
    clock = busy = 0.0
    running = delayed = requests = took = 0.0
    arrival = rng.exponential(work.period) if work.period else 0.0
    while True:
        if work.period:
            begin = max(clock, arrival)
            arrival += rng.exponential(work.period)
        else:
            begin = clock + (rng.exponential(work.think) if work.think else 0.0)
        if begin >= seconds:
            break
        cpu = rng.exponential(work.cpu)
        count = rng.poisson(work.requests)
        storage = work.latency * slower * rng.gamma(count) if count else 0.0
        clock = begin + cpu * (1 + wait) + storage
        busy += clock - begin
        running, delayed = running + cpu, delayed + cpu * wait
        requests, took = requests + count, took + storage
    return demand_estimator.Usage(*(np.array([value / max(seconds, clock)]) for value in (
        running, delayed, 1e-4 * requests, requests, 0.0, took, 0.0, 0.0, 0.0)))


def stack(usages):
    """Several VMs' usage as one."""
    return demand_estimator.of_columns(np.vstack([usage.columns for usage in usages]))
