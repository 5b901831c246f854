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

"""``tracon bench models``: what fitting costs, beside the obvious way to do the same."""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any, Callable

from cliff import lister
import numpy as np

from tracon_watcher.cmd import packaged
from tracon_watcher import errors

_COLUMNS = ('what', 'seconds', 'reference', 'reference seconds', 'ratio')
_HOUR = 3600.0


class Models(lister.Lister):
    """Time the stepwise search and a refit, in CPU seconds on one core.

    The stepwise search is timed on invented points beside one that solves a least-squares problem
    for each candidate of each step; a refit of each host type on the measurements that come with
    the package, beside the hour in which it is to be done once.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('file', nargs='*', metavar='FILE',
                            help='measurements to refit; by default those of the package')
        parser.add_argument('--points', type=int, default=1000, metavar='N',
                            help='invented points (default: %(default)s)')
        parser.add_argument('--rounds', type=int, default=5, metavar='N',
                            help='rounds to take the median of (default: %(default)s)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        import threadpoolctl
        if parsed_args.points < 60:
            raise errors.InvalidOption('--points', parsed_args.points, 'at least 60')
        if parsed_args.rounds < 1:
            raise errors.InvalidOption('--rounds', parsed_args.rounds, 'at least 1')
        with threadpoolctl.threadpool_limits(1):
            rows = [_stepwise(parsed_args.points, parsed_args.rounds),
                    *_refits(parsed_args.file)]
        return _COLUMNS, [tuple(packaged.shown(value, parsed_args) for value in row)
                          for row in rows]


def _stepwise(points: int, rounds: int) -> tuple[Any, ...]:
    from tracon_watcher.models import nonlinear
    from tracon_watcher.models import stepwise
    rng = np.random.default_rng(1)
    values = rng.uniform(size=(points, 8))
    columns = nonlinear.monomials(values, nonlinear.powers(8, 2))
    response = (1 + values @ rng.uniform(size=8) + values[:, 0] * values[:, 5]
                + rng.normal(0, 0.1, points))
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(_seconds(lambda: stepwise.search(columns, response)))
        theirs.append(_seconds(lambda: obvious(columns, response)))
    own, reference = statistics.median(ours), statistics.median(theirs)
    return (f'stepwise search, {points} points, {columns.shape[1]} terms', own,
            'a least-squares problem a candidate', reference, own / reference)


def obvious(columns: np.ndarray, response: np.ndarray) -> set[int]:
    """Return the terms that the same search chooses, each candidate solved on all points."""
    from tracon_watcher.models import stepwise

    def criterion(chosen: frozenset[int]) -> float:
        design = np.column_stack([np.ones(len(response)), columns[:, sorted(chosen)]])
        rest = response - design @ np.linalg.lstsq(design, response, rcond=None)[0]
        return stepwise.aic(float(rest @ rest), len(response), len(chosen))

    chosen: frozenset[int] = frozenset()
    best = criterion(chosen)
    while True:
        steps = [chosen ^ {term} for term in range(columns.shape[1])]
        least, step = min(((criterion(one), one) for one in steps), key=lambda found: found[0])
        if least >= best - 1e-9:
            return set(chosen)
        best, chosen = least, step


def _refits(files: list[str]) -> list[tuple[Any, ...]]:
    from tracon_watcher.models import fit
    by_host: dict[str, list[Any]] = {}
    for one in packaged.read(files):
        by_host.setdefault(one.host_type, []).append(one)
    rows: list[tuple[Any, ...]] = []
    for host_type, parts in by_host.items():
        seconds = _seconds(lambda parts=parts: fit.production_models(parts))
        rows.append((f'refit of {host_type}, errors and intervals included', seconds, 'an hour',
                     _HOUR, seconds / _HOUR))
    return rows


def _seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start
