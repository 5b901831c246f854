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
from typing import Any

from cliff import lister
import numpy as np

from tracon_watcher import errors
from tracon_watcher import numerals

COLUMNS = ('scenario', 'strategy', 't99_ms', 'busiest')
_CORES = 4.0


class Easy(lister.Lister):
    """Simulate an OLAP system, and tell the tail latency by where its segments are.

    Synthetic tables, queries and workers in seven settings of Javadi's thesis of 2019, chapter 6.
    Strategies: count (Pinot's own), even (the same, where ties go to the worker with the fewest
    segments of all tables), spread (Druid's), EASY, and EASY with a table weight of 10. The last
    columns are the change of T99 in per cent against the first three; ci is half the 95 %
    confidence interval of the mean (Student's t) over runs with the same segments and queries.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add('--runs', type=numerals.whole(2, 1000), default=20, metavar='N',
            help='with a seed each (default: %(default)s)')
        add('--queries', type=numerals.whole(1000, 1000000), default=20000, metavar='N',
            help='of each run (default: %(default)s)')
        add('--load', type=numerals.number(0.01, 0.95), default=0.4,
            help='of all cores, on the average (default: %(default)s)')
        add('--scenario', metavar='TEXT', default='',
            help='scenarios whose names contain this (default: all)')
        add('--seed', type=numerals.whole(0), default=1, help='(default: %(default)s)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        from tracon_lab import segment_cluster as cluster
        from tracon_watcher import progress
        chosen = [name for name in cluster.SCENARIOS if parsed_args.scenario in name]
        if not chosen:
            raise errors.InvalidOption('--scenario', parsed_args.scenario,
                                       'expected a part of ' + '; '.join(cluster.SCENARIOS))
        shown = progress.Progress(1.0)
        rows = []
        for place, name in enumerate(chosen):
            runs = []
            for run in range(parsed_args.runs):
                runs.append(_run(cluster.SCENARIOS[name], parsed_args, run))
                shown.report('runs', (place + (run + 1) / parsed_args.runs) / len(chosen))
            tail, busiest = np.array(runs).transpose(1, 2, 0)
            for index, strategy in enumerate(cluster.STRATEGIES):
                rows.append((name, strategy, float(tail[index].mean()),
                             float(busiest[index].mean()),
                             *(value for base in range(len(cluster.BASELINES))
                               for value in _change(tail[index], tail[base]))))
        columns = [column for base in cluster.BASELINES
                   for column in (f'against_{base}', f'ci_{base}')]
        return (*COLUMNS, *columns), numerals.rows(rows, parsed_args)


def _run(scenario: Any, parsed_args: argparse.Namespace, run: int) -> tuple[Any, Any]:
    """Return T99 in ms and the busiest worker's utilisation, each by strategy."""
    from tracon_lab import segment_cluster as cluster
    # What is learnt from and what is measured are drawn apart.
    learning, measuring = (np.random.default_rng([parsed_args.seed, run, part])
                           for part in range(2))
    models = cluster.learn(scenario, parsed_args.queries, learning)
    segments = cluster.draw_segments(scenario, measuring)
    queries = cluster.draw_queries(scenario, segments, parsed_args.queries, measuring)
    found = []
    for strategy in cluster.STRATEGIES:
        held = cluster.place(scenario, segments, strategy, models)
        latency, utilisation = cluster.latencies(queries, held, parsed_args.load, _CORES)
        found.append((1e3 * float(np.percentile(latency, 99)), float(utilisation.max())))
    tail, busiest = zip(*found)
    return tail, busiest


def _change(own: np.ndarray, base: np.ndarray) -> tuple[float, float]:
    """Return the mean change in per cent, and half its 95 % confidence interval."""
    from tracon_lab.simulator import results
    change = 100.0 * (own / base - 1.0)
    return float(change.mean()), results.interval(change)
