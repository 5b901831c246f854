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

"""The requests: VMs that arrive one by one, and the VMs there were before them."""

from __future__ import annotations

import dataclasses

import numpy as np

from tracon_lab.simulator import truth as truths
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.placement import limits as limits_module


@dataclasses.dataclass(frozen=True)
class Flavor:
    """A flavor; all have the same size and differ by what they promise alone.

    :param share: of the requests that ask for it
    """

    name: str
    share: float
    limits: limits_module.Limits = limits_module.NONE

    @property
    def extra_specs(self) -> dict[str, str]:
        """The limits as Nova stores them."""
        specs = {}
        if np.isfinite(self.limits.max_slowdown):
            specs[limits_module.MAX_SLOWDOWN] = f'{self.limits.max_slowdown:g}'
        if self.limits.min_iops_ratio > 0:
            specs[limits_module.MIN_IOPS_RATIO] = f'{self.limits.min_iops_ratio:g}'
        return specs


FLAVORS = {flavor.name: flavor for flavor in (
    Flavor('plain', 0.55),
    Flavor('steady', 0.15, limits_module.Limits(max_slowdown=2.0)),
    Flavor('swift', 0.15, limits_module.Limits(max_slowdown=1.5)),
    Flavor('storage', 0.15, limits_module.Limits(min_iops_ratio=0.5)))}


@dataclasses.dataclass(frozen=True)
class Request:
    """One VM that is asked for.

    :param program: what it will do, which is not told to any service
    :param profile: (4,) what it will demand: one measurement of that program alone
    """

    name: str
    project: str
    flavor: str
    program: str
    profile: FloatArray

    @property
    def limits(self) -> limits_module.Limits:
        """What its flavor promises."""
        return FLAVORS[self.flavor].limits


@dataclasses.dataclass(frozen=True)
class Workload:
    """Requests in the order in which they arrive, and earlier VMs, which are gone."""

    requests: tuple[Request, ...]
    history: tuple[Request, ...]


def draw(seed: int, truth: truths.Truth, vms: int = 24, projects: int = 6, history: int = 240,
         concentration: float = 0.5) -> Workload:
    """Draw a workload.

    Every project has a mix of programs of its own, drawn from a symmetric Dirichlet distribution;
    flavors are drawn apart from that, and there is one image, so that neither says anything about
    the program. Earlier VMs come from the same mixes, by random numbers of their own.

    :param concentration: of the Dirichlet distribution: near 0 a project runs one program, and
        history says what comes; large, projects are all alike, and history says nothing
    """
    mixes, ahead, before = (np.random.default_rng([seed, stream]) for stream in range(3))
    mix = mixes.dirichlet(np.full(len(truth.programs), concentration), size=projects)
    return Workload(tuple(_draw('vm', ahead, truth, mix, vms)),
                    tuple(_draw('earlier', before, truth, mix, history)))


def _draw(name: str, rng: np.random.Generator, truth: truths.Truth, mix: FloatArray,
          count: int) -> list[Request]:
    flavors = list(FLAVORS.values())
    drawn = []
    for number in range(1, count + 1):
        project = int(rng.integers(len(mix)))
        program = truth.programs[int(rng.choice(len(truth.programs), p=mix[project]))]
        flavor = flavors[int(rng.choice(len(flavors), p=[one.share for one in flavors]))]
        drawn.append(Request(f'{name}{number:02}', f'project{project + 1}', flavor.name, program,
                             one_profile(rng, truth, program)))
    return drawn


def one_profile(rng: np.random.Generator, truth: truths.Truth, program: str) -> FloatArray:
    """Return one measurement, (4,), of a program alone."""
    measured = truth.profiles[program]
    profile: FloatArray = measured[int(rng.integers(len(measured)))]
    return profile
