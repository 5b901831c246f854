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

from __future__ import annotations

import argparse
import pathlib
from typing import Any

from cliff import lister
import numpy as np

from tracon_lab.cmd import arguments
from tracon_watcher import errors
from tracon_watcher import numerals

COLUMNS = ('judged_by', 'load', 'vms', 'unknown', 'above_limit', 'found', 'false_alarms', 'error',
           'bias')
_EDGES = (0.8, 1.2)
#: Of the picture.
_CORES, _USED = (1, 4, 16, 64), 0.2


class Hosts(lister.Lister):
    """Simulate large hosts by events, and show which predictor finds the VMs that are slowed down.

    VMs are closed loops that share cores as control groups do. The law of queueing gets the
    profile of each alone; a constant is the mean slowdown for every VM.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add('--hosts', type=numerals.whole(1), default=200, metavar='N',
            help='number of hosts (default: %(default)s)')
        add('--cores', type=numerals.whole(1), default=64, metavar='N',
            help='cores of each host (default: %(default)s)')
        add('--least', type=numerals.whole(1), default=60, metavar='N',
            help='smallest number of VMs on a host (default: %(default)s)')
        add('--most', type=numerals.whole(1), default=200, metavar='N',
            help='largest number of VMs on a host (default: %(default)s)')
        add('--limit', type=numerals.number(1, 1000), default=1.2, metavar='SLOWDOWN',
            help='slowdown above which a VM counts as slowed down (default: %(default)s)')
        add('--events', type=numerals.whole(1000), default=40000, metavar='N',
            help='events of each host: loops that become ready or idle (default: %(default)s)')
        add('--seed', type=numerals.whole(0), default=1,
            help='random seed for drawing VMs (default: %(default)s)')
        add('--plot', type=arguments.picture('.png', '.svg'), metavar='FILE',
            help='plot file of slowdown over load, on hosts of 1, 4, 16 and 64 cores (PNG or SVG)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        from tracon_lab.simulator import crowds
        from tracon_lab.simulator import loops
        from tracon_watcher import progress
        if parsed_args.most < parsed_args.least:
            raise errors.InvalidOption('--most', parsed_args.most, 'at least --least')
        drawn = crowds.draw(parsed_args.hosts, parsed_args.cores, parsed_args.least,
                            parsed_args.most, parsed_args.seed)
        shown = progress.Progress(1.0)
        true = drawn.of_work(loops.slowdowns(
            drawn.cores, drawn.vcpus, drawn.used, np.ones(drawn.used.shape), parsed_args.events,
            parsed_args.seed, lambda share: shown.report('events', share)))
        shown.report('events', 1.0)
        judges = {'law of queueing': _law(drawn),
                  'constant': np.full(true.shape, true[drawn.there].mean())}
        if parsed_args.plot:
            _plot(parsed_args.plot, parsed_args.events, parsed_args.seed)
        load = (drawn.vcpus * drawn.used).sum(axis=1) / drawn.cores
        parts = {'all': np.ones(len(load), dtype=bool), f'< {_EDGES[0]}': load < _EDGES[0],
                 f'{_EDGES[0]} … {_EDGES[1]}': (load >= _EDGES[0]) & (load <= _EDGES[1]),
                 f'> {_EDGES[1]}': load > _EDGES[1]}
        rows = []
        for judge, predicted in judges.items():
            for part, chosen in parts.items():
                there = drawn.there & chosen[:, np.newaxis] & np.isfinite(true)
                found = crowds.score(predicted[there], true[there], parsed_args.limit)
                rows.append((judge, part, found.vms, found.unknown, found.above, found.found,
                             found.false, found.error, found.bias))
        return COLUMNS, numerals.rows(rows, parsed_args)


def _law(drawn: Any) -> np.ndarray:
    from tracon_watcher.queueing import network
    host, _vm = np.nonzero(drawn.there)
    found = network.effects(
        network.Hosts(drawn.cores),
        network.VMs(host, drawn.vcpus[drawn.there], drawn.used[drawn.there]))
    predicted = np.full(drawn.vcpus.shape, np.nan)
    predicted[drawn.there] = found.slowdown * found.by_itself
    return np.asarray(drawn.of_work(predicted))


def _plot(path: pathlib.Path, events: int, seed: int) -> None:
    """Draw how equal VMs of one vCPU slow each other down: the law as lines, events as dots."""
    from matplotlib import figure

    from tracon_lab.simulator import crowds
    from tracon_lab.simulator import loops

    drawing = figure.Figure(figsize=(6.5, 4), layout='constrained')
    axes = drawing.subplots()
    for cores in _CORES:
        count = np.unique(np.round(np.linspace(0.2, 1.8, 17) * cores / _USED).astype(int))
        there = np.arange(count[-1]) < count[:, np.newaxis]
        drawn = crowds.Crowds(np.full(len(count), float(cores)), there.astype(int),
                              np.full(there.shape, _USED))
        load = count * _USED / cores
        line, = axes.plot(load, _law(drawn)[:, 0], label=f'{cores} cores' if cores > 1
                          else '1 core')
        true = drawn.of_work(loops.slowdowns(drawn.cores, drawn.vcpus, drawn.used,
                                             np.ones(there.shape), events, seed))
        axes.plot(load, np.nanmean(true, axis=1), '.', color=line.get_color())
    axes.set(xlabel='load: what all would use alone, over the cores',
             ylabel='slowdown of the time on the CPU', ylim=(0.9, None), xlim=(0, None))
    axes.grid(alpha=0.3)
    axes.legend(title='law (line), events (dots)', frameon=False)
    drawing.savefig(path, dpi=110)
