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

"""Guests in front and background work behind: the arms of an experiment, their order, its table.

The four arms are Scavenger's comparison (Javadi, PhD thesis 2019, section 5.5) and one more:
nothing behind; cores of its own alone ("cpuset"), the thesis's baseline; half of everything for
the background at any time; and tracon-background. A run has a window of each arm. Each value is
compared with that of another arm in the same run, since machines are faster or slower from one
minute to the next.
"""

from __future__ import annotations

import csv
import math
import pathlib
import random
import typing

from tracon_lab.background import programs
from tracon_watcher import csv_table
from tracon_watcher.probe import readings

NOTHING, CPUSET, STATIC, REGULATED = 'nothing', 'cpuset only', 'static quotas', 'tracon-background'
ARMS = (NOTHING, CPUSET, STATIC, REGULATED)
#: Measures of the foreground: seconds, the more the slower.
WEB, WEB_MEDIAN, CALC, SEQREAD = 'web T95', 'web median', 'calc', 'seqread'
FOREGROUND = (WEB, CALC, SEQREAD)
#: Cores in use, of all processes and guests.
CPU_USE = 'cores in use'
#: Per cent of requests that DIAL leaves to the worker on the cores of the background.
DIAL_SHARE = 'requests to the worker beside the background'
#: Unit of work that is a ratio to that with static quotas.
RELATIVE = 'of static quotas'
COLUMNS = ('run', 'arm', 'measure', 'value')
#: What the thesis states of its own machines for two batch programs behind (section 5.5.2), in
#: per cent: with :data:`CPUSET`, then with Scavenger.
DEGRADATION, INCREASE = 'degradation of the foreground', 'CPU use, increase'
THESIS = {DEGRADATION: '283, 572; Scavenger 12, 8', INCREASE: 'Scavenger 170, 198'}
TABLE = ('measure', 'unit', 'runs', *(column for arm in ARMS[1:] for column in (arm, f'± {arm}')),
         'thesis')
#: Windows: run, arm, then values by measure.
Windows = dict[tuple[int, str], dict[str, float]]


def planned(arms: typing.Sequence[str], runs: int, seed: int) -> list[list[str]]:
    """Return the order of the arms in each run.

    A random order is rotated from run to run, and drawn again when it is through: in as many runs
    as there are arms each arm is once in each place.
    """
    rng, orders = random.Random(seed), []
    for run in range(runs):
        turn = run % len(arms)
        if not turn:
            drawn = rng.sample(arms, len(arms))
        orders.append(drawn[turn:] + drawn[:turn])
    return orders


def measure(arms: typing.Sequence[str], runs: int, seed: int,
            window: typing.Callable[[str, int], dict[str, float]],
            report: typing.Callable[[str], None],
            keep: typing.Callable[[Windows], None]) -> None:
    """Measure a window of each arm in each run.

    :param window: measures one of an arm in a run; returns values by measure
    :param keep: called with all windows so far, after each of them
    """
    windows: Windows = {}
    for run, order in enumerate(planned(arms, runs, seed), 1):
        for arm in order:
            windows[run, arm] = window(arm, run)
            report(f'run {run}, {arm}: ' + ', '.join(
                f'{name} {value:.3g}' for name, value in windows[run, arm].items()))
            keep(windows)


def table(windows: Windows) -> list[tuple[typing.Any, ...]]:
    """Return the rows of :data:`TABLE`: means over runs, with half of their 95 % intervals."""
    runs = [{arm: windows[run, arm] for arm in ARMS} for run in sorted({one for one, _ in windows})
            if all((run, arm) in windows for arm in ARMS)]

    def ratios(arm: str, to: str, measures: typing.Sequence[str]) -> list[float]:
        return [sum(one[arm][name] / one[to][name] if one[to][name] else math.nan
                    for name in measures) / len(measures) for one in runs]

    def increases(arm: str, measures: typing.Sequence[str]) -> list[float]:
        return [100 * (value - 1) for value in ratios(arm, NOTHING, measures)]

    work = programs.PROGRAMS
    rows: list[tuple[str, str, typing.Callable[[str], list[float]]]] = [
        (f'slowdown of {name}', 'ratio', lambda arm, name=name: ratios(arm, NOTHING, (name,)))
        for name in (*FOREGROUND, WEB_MEDIAN)]
    rows.append((DEGRADATION, '%', lambda arm: increases(arm, FOREGROUND)))
    rows += [(f'work of {name}', RELATIVE, lambda arm, name=name: ratios(arm, STATIC, (name,)))
             for name in work]
    rows.append(('work, mean', RELATIVE, lambda arm: ratios(arm, STATIC, tuple(work))))
    rows += [(f'work of {name}', f'{unit}/s', lambda arm, name=name: [
        one[arm][name] for one in runs]) for name, (_work, unit) in work.items()]
    rows += [('CPU use', 'cores', lambda arm: [one[arm][CPU_USE] for one in runs]),
             (INCREASE, '%', lambda arm: increases(arm, (CPU_USE,)))]
    if runs and all(DIAL_SHARE in one[NOTHING] for one in runs):
        rows.append((DIAL_SHARE, '%', lambda arm: [one[arm][DIAL_SHARE] for one in runs]))
    return [(measure, unit, len(runs), *(value for arm in ARMS[1:] for value in
                                         readings.interval(values(arm))),
             THESIS.get(measure, '')) for measure, unit, values in rows]


def write(path: pathlib.Path, facts: typing.Mapping[str, str], windows: Windows) -> None:
    """Write windows as CSV, below the facts as comments."""
    with open(path, 'w', newline='', encoding='utf-8') as out:
        out.writelines(f'# {name}: {value}\n' for name, value in facts.items())
        rows = csv.writer(out, lineterminator='\n')
        rows.writerow(COLUMNS)
        rows.writerows((run, arm, measure, f'{value:.6g}') for (run, arm), values in
                       windows.items() for measure, value in values.items())


def read(path: pathlib.Path, arms: typing.Sequence[str] = ARMS) -> Windows:
    """Read windows that :func:`write` has written.

    :raises tracon_watcher.errors.InvalidDocument: naming file, line, column and value
    """
    windows: Windows = {}
    for row in csv_table.read(path, 'measure it with --output', COLUMNS).rows:
        if row.text('arm') not in arms:
            row.refuse('arm', f'expected one of {", ".join(arms)}')
        windows.setdefault((row.whole('run', 1), row.text('arm')), {})[
            row.text('measure')] = row.number('value')
    return windows
