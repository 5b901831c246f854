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

"""A SYNTHETIC cloud whose VMs suffer as one model says, while another one may be in use."""

import numpy as np

from tests import synthetic
from tracon_watcher.contention import demands
from tracon_watcher.engine import view as views
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster

POLLING = 60.0


def profiles(vms, slowdown, deviation, at, present, limited=()):
    """Return what telemetry would say.

    :param limited: VMs that were at limits of their own
    """
    count = len(vms)
    nothing = np.full((count, 4), np.nan)
    return demands.Profiles(
        tuple(vms), present, np.zeros((count, 4)), present, present, slowdown,
        np.full(count, deviation), slowdown, nothing[:, :3], np.ones(count, dtype=np.intp),
        np.full(count, at), np.full(count, POLLING), np.zeros((count, 7)),
        np.zeros((count, 2), dtype=bool), np.array([vm in limited for vm in vms], dtype=bool),
        np.zeros(count), np.full(count, np.nan), nothing[:, :2])


class World:
    """Hosts with VMs that do the same for ever.

    :param truth: the model by which they suffer
    :param noise: standard deviation of what is measured, in exponents

    VMs whose name begins with one of ``hurt`` are ``times`` as slow as that.
    """

    def __init__(self, hosts=6, residents=4, truth=None, noise=0.05, seed=1, other_pools=False):
        self.rng = np.random.default_rng(seed)
        self.now = 1_000_000.0
        self.noise = noise
        self.truth = truth or synthetic.model()
        self.hosts = {f'h{number}': [f'vm-{number}-{place}' for place in range(residents)]
                      for number in range(hosts)}
        self.demand = {vm: self.rng.uniform(0.05, 0.4, 4) * synthetic.CAPACITY
                       for vms in self.hosts.values() for vm in vms}
        self.unknown = set()
        #: VMs that limits of their own hold back.
        self.limited = set()
        #: By VM, the share of its time that it waits for its own limits.
        self.own_wait = {}
        self.hurt = ()
        self.times = 3.0
        self.pool = 'ceph' if other_pools else cluster.LOCAL
        #: By VM, its storage where that is not its host's.
        self.storage = {}

    def view(self, models):
        """Return the view of this moment, as the engine would make it."""
        state = cluster.build([cluster.Host(
            host, tuple(cluster.Resident(
                vm, self.demand[vm], io_domain=self.storage.get(vm),
                own_wait=self.own_wait.get(vm, 0.0)) for vm in vms),
            synthetic.HOST_TYPE, self.pool, self.now) for host, vms in self.hosts.items()],
            generated_at=self.now)
        assessor = assessment.Assessor(state, models, assessment.Settings(maximum_age=900.0))
        known = {vm: views.VM(vm, vm, 'p', host)
                 for host, vms in self.hosts.items() for vm in vms}
        return views.View(1, assessor, assessor, known, np.full(len(state.uuids), np.nan), 0.07,
                          self.now)

    def measured(self, view):
        """Return what telemetry says of it, by the truth and chance."""
        state = view.assessor.cluster
        truth = assessment.Assessor(state, {synthetic.HOST_TYPE: assessment.Models(
            self.truth, self.truth)}).exponents()[0]
        width = 0.05 + 0.05 * truth
        suffered = np.maximum(truth + self.rng.normal(0, 1, len(truth)) * width
                              + self.rng.normal(0, self.noise, len(truth)), 0.0)
        slowdown = np.where([vm in self.unknown for vm in state.uuids], np.nan, np.exp(suffered))
        slowdown[[vm.startswith(tuple(self.hurt)) for vm in state.uuids]] *= self.times
        return profiles(state.uuids, slowdown, self.noise, self.now, state.profiles,
                        self.limited)

    def cycle(self, watched, models, polls=5):
        """Let time pass, and have a cycle watched; by default all VMs' turn comes with it."""
        self.now += polls * POLLING
        view = self.view(models)
        return watched.take(view, self.measured(view))

    def shuffle(self):
        """Have each VM be on another host."""
        vms = [vm for listed in self.hosts.values() for vm in listed]
        self.rng.shuffle(vms)
        size = len(vms) // len(self.hosts)
        for number, host in enumerate(self.hosts):
            self.hosts[host] = [str(vm) for vm in vms[number * size:(number + 1) * size]]
