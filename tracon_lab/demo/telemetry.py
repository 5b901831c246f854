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

"""Writes the snapshot that telemetry would: who runs where, what it demands, what came before."""

from __future__ import annotations

import dataclasses
import math
import time

import numpy as np

from tracon_lab.demo import workload
from tracon_lab.simulator import truth as truths
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import snapshot


@dataclasses.dataclass
class Running:
    """A VM that runs.

    :param profile: (4,) what it demands now
    """

    request: workload.Request
    uuid: str
    host: str
    profile: FloatArray
    program: str


class Telemetry:
    """Knows what runs, and the profiles of all VMs that ever ran.

    A VM's own profile is known from the moment it runs. That is what telemetry would say of it
    somewhat later; forty VMs that arrive one by one leave it the time.

    :param truth: of which hosts' cores are taken, and how long programs wait for storage alone
    :param image: id of the image that all VMs have
    :param earlier: VMs that are gone
    """

    def __init__(self, path: str, hosts: list[str], truth: truths.Truth, image: str,
                 earlier: tuple[workload.Request, ...]) -> None:
        self._path = path
        self.hosts = hosts
        self._truth = truth
        self._image = image
        self._earlier = earlier
        self._version = 0
        self.running: dict[str, Running] = {}

    def kind(self, request: workload.Request) -> tuple[str, str, str]:
        """Return (project, flavor, image), all that is known of a request."""
        return request.project, request.flavor, self._image

    def cluster(self, foretold: workload.Request | None = None) -> cluster.ClusterState:
        """Return the present state.

        :param foretold: a request whose profile an oracle knows. History then says of VMs of its
            project, flavor and image that they do exactly what this one will do; the extension
            reads it as any other history, and as requests come one by one nothing else does.
        """
        known = [(one, one.profile) for one in self._earlier]
        known += [(vm.request, vm.profile) for vm in self.running.values()]
        history = newcomer_profiles.learn(
            np.array([profile for _request, profile in known]).reshape(-1, 4),
            [self.kind(request) for request, _profile in known])
        if foretold is not None:
            key = newcomer_profiles.kind_keys(*self.kind(foretold))[0]
            history[key] = newcomer_profiles.Profile(foretold.profile, np.zeros(4), 1, 'oracle',
                                                     storage_wait=self._storage_wait(
                                                         foretold.program))
        now = time.time()
        return cluster.build([cluster.Host(
            host, tuple(cluster.Resident(vm.uuid, vm.profile, vm.request.limits,
                                         storage_wait=self._storage_wait(vm.program))
                        for vm in self.running.values() if vm.host == host),
            updated_at=now, cores=self._truth.cores) for host in self.hosts],
            history, self._version, now)

    def write(self, foretold: workload.Request | None = None) -> int:
        """Write a new snapshot and return its version."""
        self._version += 1
        snapshot.write(self._path, self.cluster(foretold))
        return self._version

    def assessor(self) -> assessment.Assessor:
        """Return the judgement of the present state."""
        return assessment.Assessor(self.cluster())

    def _storage_wait(self, program: str) -> float:
        return self._truth.storage_waits.get(program, math.nan)
