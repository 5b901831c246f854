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

"""What is chosen, ranked and refused where much is equal on paper, as one JSON document.

:mod:`tests.long.test_cpus` runs it under the kernels of several CPUs. Measurements are those that
come with the package; clusters are synthetic.
"""

from __future__ import annotations

import itertools
import json
import sys
import types

import numpy as np

from nova_filters import decision_record
from nova_filters import policy
from nova_filters import scheduling_result
from tests import synthetic
from tracon_lab.cmd import packaged
from tracon_lab.models import baseline
from tracon_lab.models import dataset
from tracon_lab.models import nonlinear
from tracon_lab.models import optimal_design
from tracon_lab.models import per_application
from tracon_lab.models import wmm
from tracon_lab.profiling import plan as cloud_plan
from tracon_lab.testbed import application_plans
from tracon_lab.testbed import host_types
from tracon_watcher import assignment
from tracon_watcher.placement import assessment
from tracon_watcher.placement import attribution
from tracon_watcher.placement import cluster
from tracon_watcher.placement import explanation
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import plan
from tracon_watcher.placement import planner

GRID = np.array(list(itertools.product(np.arange(5) / 4, repeat=3)))[1:]
#: Shares of capacity that VMs demand; hosts have several of each.
SORTS = np.array([[0.3, 0.1, 0.7, 0.1], [0.1, 0.3, 0.2, 0.3], [0.05, 0.05, 0.9, 0.05]])
NOW = 1000.0


def plans():
    """Settings that are measured."""
    kind = host_types.named('same-core-raw-disk')
    return {
        'reduced': [window.key for window in application_plans.reduced(kind, 1).windows],
        'cloud': {str(speed): cloud_plan.settings(cloud_plan.Speed(1e8, *speed))
                  for speed in ((1000.0, 1000.0), (3333.3, 777.7), (30.0, 7.0))},
        'designs': {f'{count}, {terms.__name__}': optimal_design.choose(
            GRID, count, terms).tolist() for count in (10, 15, 25)
            for terms in (optimal_design.compressed, optimal_design.with_kinks)}}


def fitted_terms():
    """Terms and ranks of models, of measured programs and where terms are worth equally much."""
    file, = (one for one in packaged.measurements() if one.endswith('same-core-raw-disk.csv'))
    points = baseline.steady(dataset.read(file))
    found = {}
    for name in per_application.applications(points)[:4]:
        own = per_application.of_application(points, 'slowdown', name)
        for kind in ('LM', 'NLM'):
            estimator = per_application.fit(own, 'slowdown', kind).estimator
            found[f'{name}, {kind}'] = [np.flatnonzero(estimator.chosen_).tolist(),
                                        estimator.rank_]
    for start in ('empty', 'full'):
        response = 1 + GRID.sum(axis=1) + np.cos(7 * GRID).sum(axis=1)
        estimator = nonlinear.StepwiseQuadratic(start).fit(GRID, response)
        found[f'symmetric, {start}'] = np.flatnonzero(estimator.chosen_).tolist()
    return found


def nearest_points():
    """Predictions between points of a grid, several of which are equally near."""
    rng = np.random.default_rng(1)
    estimator = wmm.WeightedMeanRegressor().fit(GRID, rng.uniform(1, 4, len(GRID)))
    found = {'grid': np.round(estimator.predict(GRID[:40] + 0.125), 6).tolist()}
    # Of two columns one is the other: there is nothing along one axis.
    same = np.column_stack([GRID, GRID[:, 0] + GRID[:, 1]])
    estimator = wmm.WeightedMeanRegressor().fit(same, rng.uniform(1, 4, len(GRID)))
    found['beside a plane'] = np.round(estimator.predict(
        same[:40] + rng.uniform(0, 0.1, (40, 4))), 6).tolist()
    return found


def state(hosts, limited=True):
    """Hosts that differ in the order of their VMs alone, one of ten without any."""
    orders = list(itertools.permutations([0, 0, 1, 1, 2]))
    rows = []
    for number in range(hosts):
        vms = () if number % 10 == 9 else tuple(
            cluster.Resident(f'vm-{number:03}-{place}', SORTS[sort] * synthetic.CAPACITY / 2,
                             limits.Limits(1.9, 0.3) if limited and sort == 2 else limits.NONE)
            for place, sort in enumerate(orders[number % len(orders)]))
        rows.append(cluster.Host(f'host-{number:03}', vms, synthetic.HOST_TYPE,
                                 'pool' if number % 3 else cluster.LOCAL, NOW, 2))
    return cluster.build(rows)


def moves():
    """Moves of the planner."""
    found = {}
    for limited, most in ((False, 6), (True, 4)):
        assessor = assessment.Assessor(state(40, limited))
        made = planner.plan_moves(
            assessor, parameters=plan.Parameters(min_gain=0.02, migration_cost=0.0,
                                                 max_migrations=most, explained=9),
            now=NOW, assign=assignment.least_cost)
        found[f'limited: {limited}'] = [
            [[move.uuid, move.source, move.destination, list(move.relieves)]
             for move in made.moves], made.reason, [
                [one.uuid, one.destination, one.hosts, one.obstacle.against.value]
                for host in made.remainders for one in host.options]]
    return found


def who_harms():
    """Who does most to each VM, and to whom each does most."""
    assessor = assessment.Assessor(state(60))
    uuids = assessor.cluster.uuids
    found = attribution.find_culprits(assessor)
    return {'worst': [None if row < 0 else uuids[row] for row in found.culprit],
            'attributed': {uuids[row]: [uuids[one] for one in attribution.attribute(
                assessor, row).influence.rows] for row in range(0, 60, 7)},
            'victims': {uuids[row]: [uuids[one] for one in attribution.victims(
                assessor, row).rows] for row in range(0, 60, 7)}}


def explained():
    """Hosts and VMs in the order in which an explanation names them."""
    assessor = assessment.Assessor(state(40))
    found = explanation.explain(explanation.of_now(assessor, 'vm-000-0', NOW), assessor)
    return [[one['host'], one['rank'], one['refused'], (one.get('most') or {}).get('vm'),
             (one.get('most') or {}).get('ahead_without'), (one['worst'] or {}).get('vm'),
             [vm['vm'] for vm in one.get('residents') or ()]] for one in found['hosts']]


def scheduled():
    """What nova-scheduler is told of hosts, and what is recorded and logged."""
    assessor = assessment.Assessor(state(60))
    found = {}
    for name, share in (('small', 0.2), ('large', 1.0), ('nothing', 0.0)):
        profile = newcomer_profiles.Profile(share * SORTS[0] * synthetic.CAPACITY, np.zeros(4), 3,
                                            'all')
        judged = assessor.assess(profile, limits.Limits(2.2, 0.2))
        count = len(assessor.cluster.hosts)
        states = [types.SimpleNamespace(host=host, aggregates=())
                  for host in assessor.cluster.hosts]
        of_request = scheduling_result.SchedulingResult(
            'asked', states, np.arange(count), np.full(count, int(policy.Mode.ENFORCE)), judged,
            judged, False, False)
        of_request.inputs = types.SimpleNamespace(
            at=NOW, snapshot=(1, 1), newcomer=profile, assessor=assessor, part=None, pool=-1)
        weights = of_request.weights_of(states)
        written = decision_record.to_document(decision_record.CapturedDecision(
            'an id', 'a request', 'create', 'an outcome', of_request, {}))
        found[name] = {
            'refused': of_request.refused().tolist(),
            'equal weights': [weights.index(one) for one in weights],
            'order': sorted(range(count), key=lambda place: -weights[place]),
            'recorded': [[one['host'], one['rank'], one['refused'], (one['worst'] or {}).get('vm'),
                          one['reasons']] for one in written['hosts']]}
        if of_request.refused().any():
            logged = scheduling_result.refusal_content(of_request, of_request.refused(),
                                                       'an outcome')
            found[name]['logged'] = [logged['reasons'], [
                [one['host'], one['vm'], one['response']] for one in logged['worst']]]
    return found


def main():
    """Print all of it."""
    json.dump({part.__name__: part() for part in (
        plans, fitted_terms, nearest_points, moves, who_harms, explained, scheduled)}, sys.stdout)


if __name__ == '__main__':
    main()
