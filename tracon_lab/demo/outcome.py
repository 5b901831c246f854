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

"""What became of an arm, by measured truth alone."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Collection, Mapping, Sequence

import numpy as np

from tracon_lab.demo import workload as workloads
from tracon_lab.simulator import truth as truths


@dataclasses.dataclass(frozen=True)
class Score:
    """How some VMs fare.

    :param vms: number of them
    :param mean_slowdown: arithmetic mean of their measured slowdowns
    :param geometric_mean: of the same
    :param worst_slowdown: the largest
    :param limited: VMs among them with a limit
    :param in_breach: of these, whose measured slowdown or IOPS ratio breaks it
    """

    vms: int
    mean_slowdown: float
    geometric_mean: float
    worst_slowdown: float
    limited: int
    in_breach: int


def judged(vms: Sequence[Mapping[str, Any]], truth: truths.Truth) -> list[dict[str, Any]]:
    """Return the placed VMs with what was measured of their pair.

    :param vms: each with ``name``, ``flavor``, ``program`` and ``host``, which is None for one
        that was not placed; at most two on a host
    :returns: the placed ones, with ``neighbour`` (name or None), ``slowdown``, ``iops_ratio``
        (None where undefined), ``limited`` and ``in_breach``
    :raises ValueError: when three VMs share a host: of those nothing was measured
    """
    by_host: dict[str, list[Mapping[str, Any]]] = {}
    for vm in vms:
        if vm['host'] is not None:
            by_host.setdefault(vm['host'], []).append(vm)
    result = []
    for vm in vms:
        if vm['host'] is None:
            continue
        others = [one for one in by_host[vm['host']] if one['name'] != vm['name']]
        if len(others) > 1:
            raise ValueError(f'{len(others) + 1} VMs on {vm["host"]}; pairs alone were measured')
        other = others[0] if others else None
        slowdown, ratio = truth.beside(vm['program'], other and other['program'])
        limits = workloads.FLAVORS[vm['flavor']].limits
        result.append({
            **vm, 'neighbour': other and other['name'], 'slowdown': slowdown,
            'iops_ratio': None if math.isnan(ratio) else ratio,
            'limited': bool(workloads.FLAVORS[vm['flavor']].extra_specs),
            'in_breach': slowdown > limits.max_slowdown or ratio < limits.min_iops_ratio})
    return result


def score(vms: Sequence[Mapping[str, Any]], among: Collection[str] | None = None) -> Score:
    """Sum up judged VMs.

    :param among: names of those that count; None for all
    """
    chosen = [vm for vm in vms if among is None or vm['name'] in among]
    slowdown = np.array([vm['slowdown'] for vm in chosen])
    if not chosen:
        return Score(0, math.nan, math.nan, math.nan, 0, 0)
    return Score(len(chosen), float(slowdown.mean()), float(np.exp(np.log(slowdown).mean())),
                 float(slowdown.max()), sum(vm['limited'] for vm in chosen),
                 sum(vm['in_breach'] for vm in chosen))
