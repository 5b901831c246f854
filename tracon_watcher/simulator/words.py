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

"""Where the figures differ from the paper's, in words, from the rows themselves."""

from __future__ import annotations

from typing import Callable, Sequence

import numpy as np

from tracon_watcher.simulator import results

#: By how much two means may differ and still count as the same.
_SAME = 0.01
WHY = ('Our interference is another machine\'s: what these programs do to each other on this '
       'disk and core, not what eight benchmarks did on a Dell of 2009.')
NEWCOMER = ('MIOS and MIBS ask only what the newcomer will suffer. Where a program harms others '
            'more than they harm it, the slot that is best for the newcomer is the worst for '
            'whoever runs there, and the two cancel out.')
ONE_SLOT = ('As soon as one slot at a time becomes free, MIBS puts the first of its queue into '
            'it, whatever the length of the queue: it is FIFO then. "-full" waits for a full '
            'queue and as many free slots, which leaves slots empty meanwhile: it loses where '
            'that costs more than the choice is worth.')


def of_figure(name: str, rows: Sequence[results.Row]) -> list[str]:
    """Return sentences about one figure, from its rows."""
    tell = _TELLERS.get(name)
    return tell(rows) if tell is not None else []


def _percent(ratio: float) -> str:
    return f'{100 * (ratio - 1):+.1f} %'


def _find(rows: Sequence[results.Row], scheduler: str, **where: object) -> results.Row | None:
    return next((row for row in rows if row.scheduler == scheduler and all(
        getattr(row, key) == value for key, value in where.items())), None)


def _last(rows: Sequence[results.Row], field: str) -> object:
    return max(getattr(row, field) for row in rows)


def _figure_4(rows: Sequence[results.Row]) -> list[str]:
    said = []
    for objective, value in (('RT', 'speedup'), ('IO', 'io_boost')):
        gains = [f'{row.model} {_percent(getattr(row, value))} (matching '
                 f'{_percent(getattr(best, value))})' for row in rows
                 if row.scheduler == 'MIBS_8' and row.objective == objective
                 and (best := _find(rows, 'matching', objective=objective,
                                    model=row.model)) is not None]
        said.append(f'MIBS_8 for {objective} against the better FIFO, by model: '
                    f'{", ".join(gains)}.')
    return [*said, WHY, NEWCOMER]


def _figure_8(rows: Sequence[results.Row]) -> list[str]:
    most = _last(rows, 'machines')
    said = []
    for mix, published in (('light', 'about 30 %'), ('medium', 'over 40 %'),
                           ('heavy', 'limited')):
        for objective, value in (('RT', 'speedup'), ('IO', 'io_boost')):
            own, best, new = (_find(rows, name, mix=mix, objective=objective, machines=most)
                              for name in ('MIBS_8', 'optimum', 'matching'))
            if own is None or best is None or new is None:
                continue
            said.append(
                f'{mix}, {objective}, {most:,} machines: MIBS_8 {_percent(getattr(own, value))} '
                f'(published: {published}), {own.distance:.1%} from the optimum, which is '
                f'{_percent(getattr(best, value))}; matching by predictions '
                f'{_percent(getattr(new, value))}, {new.distance:.1%} from it.')
    return [*said, WHY, NEWCOMER]


def _streams(x: str) -> Callable[[Sequence[results.Row]], list[str]]:
    def tell(rows: Sequence[results.Row]) -> list[str]:
        said = []
        for mix in ('light', 'medium', 'heavy'):
            own = [row for row in rows if row.mix == mix]
            if not own:
                continue
            most = _last(own, x)
            parts = [f'{row.scheduler} {_percent(row.throughput)} ({row.distance:.1%} from the '
                     f'optimum)' for row in own if getattr(row, x) == most
                     and not row.scheduler.startswith('FIFO')]
            unit = 'tasks a minute' if x == 'rate' else 'machines'
            said.append(f'{mix}, {most:,.0f} {unit}: {", ".join(parts)}.')
            said += _ranked(own, x)
        return [*said, WHY, ONE_SLOT]
    return tell


def _queues(rows: Sequence[results.Row]) -> list[str]:
    """Compare the lengths of MIBS's queue where most arrives, then say the rest."""
    most = _last(rows, 'rate')
    said = []
    for name in ('MIBS_4', 'MIBS_4-full'):
        long, short = (_find(rows, one, mix='medium', rate=most)
                       for one in (name.replace('4', '8'), name))
        if long is not None and short is not None:
            said.append(f'medium, {most:,.0f} tasks a minute: {long.scheduler} against {name} '
                        f'{_percent(long.throughput / short.throughput)} (published: about '
                        f'+10 %).')
    return said + _streams('rate')(rows)


def _ranked(rows: Sequence[results.Row], x: str) -> list[str]:
    """Say where the order MIX ≥ MIBS ≥ MIOS does not hold, and where PRICED is not ahead."""
    said = []
    for better, worse in (('MIX_8', 'MIBS_8'), ('MIBS_8', 'MIOS'), ('PRICED_8', 'MIX_8')):
        compared = [(row, other) for row in rows if row.scheduler == better
                    and (other := _find(rows, worse, **{x: getattr(row, x)})) is not None]
        if not compared:
            continue
        ahead, behind = ([f'{getattr(row, x):,.0f}' for row, other in compared
                          if sign * (row.throughput - other.throughput) > max(_SAME, float(
                              np.nan_to_num(row.deviation + other.deviation)))]
                         for sign in (1, -1))
        said.append(f'{better} against {worse}, beyond noise: ahead at '
                    f'{", ".join(ahead) or "none"}, behind at {", ".join(behind) or "none"} of '
                    f'{len(compared)}.')
    return said


def _sigma(rows: Sequence[results.Row]) -> list[str]:
    said = []
    for mix in dict.fromkeys(row.mix for row in rows):
        gains = [f'{row.sigma:g}: {_percent(row.throughput)}' for row in rows
                 if row.mix == mix and row.scheduler == 'PRICED_8']
        packed = [abs(row.throughput - 1) for row in rows
                  if row.mix == mix and row.scheduler.startswith('FIFO')]
        said.append(f'{mix}: PRICED_8 by σ, {", ".join(gains)}; packed and spread FIFO differ by '
                    f'{max(packed):.1%} at most.')
    return said


def _cost(rows: Sequence[results.Row]) -> list[str]:
    said = []
    most = _last(rows, 'machines')
    fifo = _find(rows, 'FIFO-spread', machines=most)
    for name in dict.fromkeys(row.scheduler for row in rows):
        own = sorted((row for row in rows if row.scheduler == name), key=lambda row: row.machines)
        beside = '' if fifo is None else (
            f', {own[-1].event_cost / fifo.event_cost:.1f} times FIFO\'s')
        said.append(f'{name}: {own[0].event_cost * 1e6:.1f} µs an event with '
                    f'{own[0].machines:,} machines, {own[-1].event_cost * 1e6:.1f} µs with '
                    f'{own[-1].machines:,} ({own[-1].event_cost / own[0].event_cost:.2f} times)'
                    f'{beside}.')
    return said


_TELLERS: dict[str, Callable[[Sequence[results.Row]], list[str]]] = {
    '4': _figure_4, '8': _figure_8, '9': _streams('rate'), '10': _queues,
    '11': _streams('machines'), '12': _streams('machines'), 'sigma': _sigma, 'cost': _cost}
