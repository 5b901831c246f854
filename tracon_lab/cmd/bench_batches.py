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

"""``tracon bench batches``: what it is worth to place several VMs at once rather than in turn."""

from __future__ import annotations

import argparse
from typing import Any, Iterator

from cliff import lister
import numpy as np

from tracon_lab.cmd import packaged
from tracon_lab.cmd import simulate
from tracon_watcher import numerals

_COLUMNS = ('where', 'host_type', 'cases', 'better_at_once', 'mean_gain', 'largest_gain')
_SLOTS = 4


class Batches(lister.Lister):
    """Compare placing VMs one after the other with placing them at once, by predictions.

    Data centres are drawn at random from measured programs. Multi-create: identical VMs, each
    placed where it does least harm, against the exact optimum; the gain is the share of the harm
    that they add. Moves: plans of live migrations with and without destinations chosen together;
    the gain is the share of the harm that a plan removes. Means are over the cases with a gain.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add('--measurements', action='append', default=[], metavar='FILE',
            help='measurements (CSV); may be repeated (default: those in the package)')
        add('--host-type', type=simulate.words,
            default=['same-core-raw-disk', 'shared-slow-device'], metavar='NAME[,NAME…]',
            help='host types (default: same-core-raw-disk,shared-slow-device)')
        add('--cases', type=numerals.whole(1), default=100, metavar='N',
            help='number of data centres to draw (default: %(default)s)')
        add('--hosts', type=numerals.whole(2), default=12, metavar='N',
            help='hosts of each data centre, with four slots (default: %(default)s)')
        add('--moves', type=numerals.whole(1), default=5, metavar='N',
            help='largest number of moves in a plan (default: %(default)s)')
        add('--seed', type=numerals.whole(0), default=1,
            help='random seed for drawing data centres (default: %(default)s)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        from tracon_lab.simulator import world as worlds
        data = packaged.read(parsed_args.measurements)
        rows = []
        for host_type in parsed_args.host_type:
            world = worlds.build(data, [host_type], [_SLOTS], model='law')
            for where, gains in (
                    ('multi-create', list(_multi_create(parsed_args, world))),
                    ('moves', list(_moves(parsed_args, world)))):
                better = [gain for gain in gains if gain > 1e-6]
                rows.append((where, host_type, len(gains), len(better), *(
                    numerals.shown(value, parsed_args) for value in (
                        float(np.mean(better)) if better else 0.0,
                        float(max(better, default=0.0))))))
        return _COLUMNS, rows


def _multi_create(arguments: argparse.Namespace, world: Any) -> Iterator[float]:
    """Yield how much less harm the exact optimum adds, as a share."""
    from tracon_lab.scheduling import matching
    space, predicted = world.configurations, world.predicted
    log_responses = np.nan_to_num(np.log(predicted.slowdown)) - np.nan_to_num(
        np.log(predicted.iops_ratio))
    harm = (space.residents * log_responses).sum(axis=1)
    for case in range(arguments.cases):
        rng = np.random.default_rng([arguments.seed, case])
        hosts = [_drawn(rng, world) for _host in range(arguments.hosts)]
        task = int(rng.integers(len(space.classes)))
        free = sum(_SLOTS - space.size[index] for index in hosts)
        count = min(int(rng.integers(2, 13)), free)
        if not count:
            continue
        wanted = np.zeros(len(space.classes), dtype=np.intp)
        wanted[task] = count
        best = matching.solve(space, np.bincount(hosts, minlength=len(space)), wanted, harm).cost
        added = 0.0
        for _vm in range(count):
            each = [harm[space.added[index][task]] - harm[index]
                    if not space.full[index] else np.inf for index in hosts]
            place = int(np.argmin(each))
            added += each[place]
            hosts[place] = space.added[hosts[place]][task]
        yield (added - best) / added if added > 0 else 0.0


def _moves(arguments: argparse.Namespace, world: Any) -> Iterator[float]:
    """Yield how much more harm plans take away, as a share."""
    from tracon_watcher import assignment
    from tracon_watcher.placement import assessment
    from tracon_watcher.placement import cluster
    from tracon_watcher.placement import limits
    from tracon_watcher.placement import placement_constraints
    from tracon_watcher.placement import plan
    from tracon_watcher.placement import planner
    parameters = plan.Parameters(max_migrations=arguments.moves)
    space = world.configurations
    for case in range(arguments.cases):
        rng = np.random.default_rng([arguments.seed, case])
        hosts, free, needs = [], {}, {}
        for name in map(str, range(arguments.hosts)):
            members = space.members[_drawn(rng, world)]
            free[name] = (float(_SLOTS - len(members)), 0.0, 0.0)
            vms = []
            for place, task in enumerate(members):
                needs[f'{name}.{place}'] = (1.0, 0.0, 0.0)
                vms.append(cluster.Resident(
                    f'{name}.{place}', world.profiles[0, task],
                    limits.Limits(max_slowdown=2.0) if rng.random() < 0.3 else limits.NONE,
                    storage_wait=float(world.storage_waits[0, task])))
            hosts.append(cluster.Host(name, tuple(vms), cores=world.cores[0]))
        assessor = assessment.Assessor(cluster.build(hosts))
        rules = placement_constraints.Constraints(needs=needs, free=free)
        alone, together = (planner.plan_moves(assessor, rules, parameters, assign=assign)
                           for assign in (None, assignment.least_cost))
        gained = alone.before.harm - alone.after.harm
        if gained > 0:
            yield (alone.after.harm - together.after.harm) / gained


def _drawn(rng: np.random.Generator, world: Any) -> int:
    """Return a configuration of up to three residents."""
    space = world.configurations
    index: int = space.empty[0]
    for _resident in range(int(rng.integers(0, _SLOTS))):
        index = space.added[index][int(rng.integers(len(space.classes)))]
    return index
