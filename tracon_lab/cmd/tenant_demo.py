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
"""``tracon tenant demo``: DIAL beside round robin and least connections, on a real HAProxy."""

from __future__ import annotations

import argparse
import os
import pathlib
import shutil
from typing import Any, TYPE_CHECKING

from cliff import lister
import numpy as np

from tracon_watcher import errors
from tracon_watcher import numerals

if TYPE_CHECKING:
    from tracon_lab.tenant_demo import experiment

#: Load of this machine from which on the figures say little.
_BUSY = 0.7
_COLOURS = {'cpu': '#f2b266', 'memory': '#b9a3e3', 'disk': '#7fb2e5', 'network': '#8fcf9f'}


class Demo(lister.Lister):
    """Contend with one of three workers of HAProxy, for one resource after the other.

    Three workers in control groups of this machine get the same requests three times: balanced by
    round robin, by least connections, and by "tracon dial run", whose model is trained before. The
    table has the 90th percentile of latency of all requests during each kind of contention, and
    what DIAL says that it is. Needs root, HAProxy, and the controllers cpu and blkio (io).
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add('--output', type=pathlib.Path, default=pathlib.Path('tracon-tenant-demo'),
            metavar='DIR', help='folder for the plot, the model and logs (default: %(default)s)')
        add('--rounds', type=numerals.whole(1, 100), default=1, metavar='N',
            help='how often each arm is played; the table has the medians (default: %(default)s)')
        add('--replicas', action='store_true',
            help='instead of HAProxy, queries that each ask three segments of two replicas, with '
                 'equal shares of replicas and with those of DIAL; the table has the 95th '
                 'percentile')
        add('--interval', type=numerals.number(1, 60), default=1.0, metavar='SECONDS',
            help='of DIAL, 10 in production; all takes as many times longer (default: '
                 '%(default)s)')
        add('--contention', type=numerals.whole(5, 1000), default=10, metavar='INTERVALS',
            help='how long each contention lasts (default: %(default)s)')
        add('--quiet-intervals', type=numerals.whole(10, 10000), default=10, metavar='N',
            help='how many intervals are quiet before, in which DIAL learns, and alarms are '
                 'false (default: %(default)s)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        from tracon_lab.tenant_demo import experiment
        if not (parsed_args.replicas or shutil.which('haproxy')):
            raise errors.NotInstalled('haproxy is not installed: apt-get install haproxy')
        if os.getloadavg()[0] > _BUSY:
            self.app.LOG.warning('Other programs use this machine (load %.1f): latencies will be '
                                 'theirs, too', os.getloadavg()[0])
        folder = parsed_args.output.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        site = experiment.Site(folder, parsed_args.interval, parsed_args.contention,
                               parsed_args.quiet_intervals)
        if parsed_args.replicas:
            return self._replicas(parsed_args, site)
        outcomes: dict[str, list[experiment.Outcome]] = {arm: [] for arm in experiment.ARMS}
        with site.workers():
            self.app.LOG.info('Trains the model; runs of each kind that it names rightly:\n%s',
                              site.train())
            for number in range(parsed_args.rounds):
                for arm, found in outcomes.items():
                    self.app.LOG.info('Round %d of %d: %s', number + 1, parsed_args.rounds, arm)
                    found.append(site.play(arm, number))
        _draw({arm: found[0] for arm, found in outcomes.items()}, folder / 'tail.png')
        self.app.LOG.info('The plot: %s', folder / 'tail.png')
        return experiment.COLUMNS, numerals.rows(experiment.table(outcomes), parsed_args)

    def _replicas(self, parsed_args: argparse.Namespace,
                  site: experiment.Site) -> tuple[tuple[str, ...], list[Any]]:
        from tracon_lab.tenant_demo import replicas
        found: dict[bool, list[replicas.Outcome]] = {False: [], True: []}
        with site.workers():
            for number in range(parsed_args.rounds):
                for steered, outcomes in found.items():
                    self.app.LOG.info('Round %d of %d: %s', number + 1, parsed_args.rounds,
                                      'DIAL' if steered else 'equal shares')
                    outcomes.append(replicas.play(site, steered, number))
        return replicas.COLUMNS, numerals.rows(
            replicas.table(found[False], found[True]), parsed_args)


def _draw(outcomes: dict[str, experiment.Outcome], path: pathlib.Path) -> None:
    """Draw the tail latency over time, an arm below the other."""
    import matplotlib.figure
    figure = matplotlib.figure.Figure(figsize=(10, 6), layout='constrained')
    for axes, (arm, outcome) in zip(figure.subplots(len(outcomes), sharey=True),
                                    outcomes.items()):
        for kind, (begin, end) in outcome.windows.items():
            if kind in _COLOURS:
                axes.axvspan(begin, end, color=_COLOURS[kind], alpha=0.4, label=kind)
        seconds, place = np.unique(outcome.sent.astype(int), return_inverse=True)
        axes.step(seconds, [np.percentile(outcome.taken[place == one], 90) * 1e3
                            for one in range(len(seconds))], where='post', color='#22272e')
        axes.set(title=arm, ylabel='T90 of a second (ms)', yscale='log')
    axes.set_xlabel('time (s); contention beside one of three workers')
    figure.get_axes()[0].legend(ncols=4, loc='upper left')
    figure.savefig(path, dpi=110)
