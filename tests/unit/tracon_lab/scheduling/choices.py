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

"""What schedulers choose, as JSON on standard output; run in a process of its own by test_cpus."""

import json
import sys

import numpy as np

from tracon_lab.cmd import packaged
from tracon_lab.models import dataset
from tracon_lab.scheduling import catalogue
from tracon_lab.scheduling import objective as objectives
from tracon_lab.scheduling import pool as pools
from tracon_lab.scheduling import saturation
from tracon_lab.simulator import dynamic
from tracon_lab.simulator import truth as truths
from tracon_lab.simulator import workload
from tracon_lab.simulator import world as worlds
from tracon_watcher import assignment

NAMES = (*catalogue.USUAL, 'MIOS-residents', 'MIBS', 'MIBS_8-paired', 'MIX_8-paired-eager',
         'PRICED_8:threshold=-inf', 'matching', 'matching-spread')


def placements(performance, tasks):
    """Return where each scheduler puts the same tasks on the same hosts, some occupied."""
    found = {}
    for of in objectives.ALL:
        for name in NAMES:
            scheduler = catalogue.build(name, performance, of)
            pool = pools.Pool(performance.configurations, [0] * 24, scheduler.order)
            for host in range(8):
                pool.add(host, host % 8)
            found[f'{name} {of}'] = [
                [int(position), int(host)]
                for position, host in scheduler.schedule(tasks[:scheduler.window], pool)]
    return found


def world(name):
    """Return what is chosen with the measurements of one host type."""
    data = [one for one in dataset.read_all(packaged.measurements()) if one.host_type == name]
    built = worlds.build(data, [name], [2])
    tasks = workload.draw(np.random.default_rng(7), workload.mix('medium', 8), 32).tolist()
    shares = workload.mix('heavy', 8)
    optimum = saturation.solve(built.truth, shares, np.array([24]))
    runs = {}
    for scheduler in ('MIX_8', 'PRICED_8'):
        outcome = dynamic.run(built.truth, [0] * 16,
                              catalogue.build(scheduler, built.predicted, 'RT'),
                              workload.Poisson(0.3, shares, [3], 1800.0), 1800.0)
        runs[scheduler] = [outcome.completed.tolist(), outcome.spent.tolist()]
    return {'classes': built.classes, 'placements': placements(built.predicted, tasks),
            'predicted': np.nan_to_num(built.predicted.slowdown).tolist(),
            'optimum': [built.configurations.name(index)
                        for index in np.flatnonzero(optimum.shares > 1e-6)],
            'lightest first': truths.of(data, name).lightest_first, 'runs': runs}


def equals():
    """Return an assignment among costs that are equal but for the rounding of a product."""
    rng = np.random.default_rng(0)
    one = rng.uniform(0.1, 1.0, (12, 40))
    cost = one @ np.ones((40, 12))
    return [int(column) for column in assignment.least_cost(cost)]


if __name__ == '__main__':
    json.dump({**world('shared-slow-device'), 'equals': equals()}, sys.stdout)
