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

"""The best that migrations could do: an optimum over all assignments, by measured truth."""

from __future__ import annotations

import itertools
import math
from typing import Any, Mapping, Sequence

import numpy as np

from tracon_lab.demo import outcome
from tracon_lab.simulator import truth as truths

#: What a breach weighs beside harm: more than all harm together, so that breaches come first.
_BREACH = 1e4
_KEYS = ('name', 'flavor', 'program', 'host')


def harm(vms: Sequence[Mapping[str, Any]]) -> float:
    """Return the sum of log slowdown and −log IOPS ratio of judged VMs."""
    return float(sum(math.log(vm['slowdown'])
                     - (0.0 if vm['iops_ratio'] is None else math.log(vm['iops_ratio']))
                     for vm in vms))


def best(vms: Sequence[Mapping[str, Any]], hosts: Sequence[str],
         truth: truths.Truth) -> tuple[list[dict[str, Any]], int]:
    """Return the assignment with the fewest breaches and, of these, the least harm.

    An integer program over who shares a host with whom: a minimum-weight matching in which at
    most as many groups as there are hosts are allowed. Hosts are alike, so that which group gets
    which host is an assignment problem of its own: as many VMs as possible stay where they are.

    :param vms: n running ones, with ``name``, ``flavor``, ``program`` and ``host``
    :param hosts: names of all hosts of two slots, at least n / 2
    :returns: judged VMs, and how many of them had to migrate
    """
    import scipy.optimize
    import scipy.sparse
    groups = [(one,) for one in range(len(vms))] + list(
        itertools.combinations(range(len(vms)), 2))
    bare = [{key: vm[key] for key in _KEYS} for vm in vms]
    cost = []
    for group in groups:
        judged = outcome.judged([{**bare[one], 'host': ''} for one in group], truth)
        cost.append(_BREACH * sum(vm['in_breach'] for vm in judged) + harm(judged))
    rows = [one for group in groups for one in group]
    columns = [column for column, group in enumerate(groups) for _one in group]
    each_once = scipy.sparse.csr_array((np.ones(len(rows)), (rows, columns)),
                                       shape=(len(vms), len(groups)))
    found = scipy.optimize.milp(
        np.array(cost), integrality=np.ones(len(groups)), bounds=scipy.optimize.Bounds(0, 1),
        constraints=[scipy.optimize.LinearConstraint(each_once, 1, 1),
                     scipy.optimize.LinearConstraint(np.ones((1, len(groups))), 0, len(hosts))])
    chosen = [groups[column] for column in np.flatnonzero(found.x > 0.5)]
    staying = np.array([[sum(vms[one]['host'] == host for one in group) for host in hosts]
                        for group in chosen])
    taken = scipy.optimize.linear_sum_assignment(-staying)[1]
    for group, host in zip(chosen, taken):
        for one in group:
            bare[one]['host'] = hosts[int(host)]
    return outcome.judged(bare, truth), sum(
        vm['host'] != after['host'] for vm, after in zip(vms, bare))
