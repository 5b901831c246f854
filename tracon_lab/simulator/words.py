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

import math
from typing import Callable, Sequence

from tracon_lab.simulator import published
from tracon_lab.simulator import results

WHY = ('The interference is another machine\'s: what these programs do to each other on this disk '
       'and core, not what eight benchmarks did on a Dell of 2009.')
SPREAD = ('A task prefers to be alone, so MIOS, MIBS and MIX give each host one task first; what '
          'they pair in the queue they place on different hosts. The other half then goes one by '
          'one to the slots that are left, by what the newcomer alone suffers. Spreading costs '
          'nothing by itself where the rest is placed all at once (matching-spread); to place it '
          'one by one does, even where residents count (MIOS-residents). Candidate 2 beside '
          'candidate 1 (-paired) judges both sides of a pair.')
WHOLE = ('A batch is decided when its queue is full and as many slots are free, since Algorithm 2 '
         'places every task of the queue. Slots stay empty meanwhile, which costs what the choice '
         'gains where interference is small. "-eager" decides as soon as one slot is free: MIBS '
         'is FIFO then, MIX takes the best of its queue.')
SINGLE = ('FIFO-single places one VM a host and leaves the other slots empty. What a scheduler '
          'gains less than this, it would gain by placing fewer VMs.')


def of_figure(name: str, rows: Sequence[results.Row]) -> list[str]:
    """Return sentences about one figure, from its rows."""
    tell = _TELLERS.get(name)
    return tell(rows) if tell is not None else []


def _percent(ratio: float) -> str:
    return f'{100 * (ratio - 1):+.1f} %'


def _gain(row: results.Row, value: str) -> str:
    """Return a gain with its interval, where the row has that of the value."""
    if math.isnan(row.interval):
        return _percent(getattr(row, value))
    return f'{_percent(getattr(row, value))} ± {100 * row.interval:.1f}'


def _find(rows: Sequence[results.Row], scheduler: str, **where: object) -> results.Row | None:
    return next((row for row in rows if row.scheduler == scheduler and all(
        getattr(row, key) == value for key, value in where.items())), None)


def _last(rows: Sequence[results.Row], field: str) -> object:
    return max(getattr(row, field) for row in rows)


def _figure_4(rows: Sequence[results.Row]) -> list[str]:
    said = []
    for objective, value in (('RT', 'speedup'), ('IO', 'io_boost')):
        gains = [f'{row.model} {_gain(row, value)} (matching {_gain(best, value)})'
                 for row in rows if row.scheduler == 'MIBS' and row.objective == objective
                 and (best := _find(rows, 'matching', objective=objective,
                                    model=row.model)) is not None]
        said.append(f'MIBS for {objective} against {results.BASELINE}, by model: '
                    f'{", ".join(gains)}.')
    return [*said, WHY, SPREAD]


def _figure_8(rows: Sequence[results.Row]) -> list[str]:
    most = _last(rows, 'machines')
    said = []
    for mix, told in (('light', 'about 30 %'), ('medium', 'over 40 %'),
                      ('heavy', 'limited')):
        for objective, value in (('RT', 'speedup'), ('IO', 'io_boost')):
            own, best, new = (_find(rows, name, mix=mix, objective=objective, machines=most)
                              for name in ('MIBS', 'optimum', 'matching'))
            if own is None or best is None or new is None:
                continue
            said.append(
                f'{mix}, {objective}, {most:,} machines: MIBS {_gain(own, value)} '
                f'(published: {told}), where the optimum gains {_gain(best, value)}; '
                f'matching by predictions {_gain(new, value)}.')
    return [*said, WHY, SPREAD]


def _streams(x: str) -> Callable[[Sequence[results.Row]], list[str]]:
    def tell(rows: Sequence[results.Row]) -> list[str]:
        said = []
        for mix in ('light', 'medium', 'heavy'):
            own = [row for row in rows if row.mix == mix]
            if not own:
                continue
            most = _last(own, x)
            last = [row for row in own if getattr(row, x) == most]
            parts = [f'{row.scheduler} {_gain(row, "throughput")}' for row in last
                     if row.scheduler != results.BASELINE]
            unit = 'tasks a minute' if x == 'rate' else 'machines'
            said.append(f'{mix}, {most:,.0f} {unit}: {", ".join(parts)}; possible at most '
                        f'{_percent(last[0].ceiling)}.')
            said += _ranked(own, x)
        return [*said, *([] if _published(rows) else [WHY]), WHOLE, SINGLE]
    return tell


def _published(rows: Sequence[results.Row]) -> bool:
    return any(row.host_type in published.NAMES for row in rows)


def _queues(rows: Sequence[results.Row]) -> list[str]:
    """Compare the lengths of MIBS's queue where most arrives, then say the rest."""
    most = _last(rows, 'rate')
    long, short = (_find(rows, name, mix='medium', rate=most) for name in ('MIBS_8', 'MIBS_4'))
    said = []
    if long is not None and short is not None:
        said.append(f'medium, {most:,.0f} tasks a minute: MIBS_8 against MIBS_4 '
                    f'{_percent(long.throughput / short.throughput)} (published: about +10 %).')
    return said + _streams('rate')(rows)


def _ranked(rows: Sequence[results.Row], x: str) -> list[str]:
    """Say where the order MIX ≥ MIBS ≥ MIOS does not hold, and where PRICED is not ahead."""
    said = []
    for better, worse in (('MIX_8', 'MIBS_8'), ('MIBS_8', 'MIBS_4'), ('MIBS_4', 'MIBS_2'),
                          ('MIBS_8', 'MIOS'), ('PRICED_8', 'MIX_8-eager'),
                          ('PRICED_8', 'FIFO-single')):
        compared = [(row, other) for row in rows if row.scheduler == better
                    and (other := _find(rows, worse, **{x: getattr(row, x)})) is not None]
        if not compared:
            continue
        ahead, behind = ([f'{getattr(row, x):,.0f}' for row, other in compared
                          if sign * (row.throughput - other.throughput) > _noise(row, other)]
                         for sign in (1, -1))
        said.append(f'{better} against {worse}, intervals apart: ahead at '
                    f'{", ".join(ahead) or "none"}, behind at {", ".join(behind) or "none"} of '
                    f'{len(compared)}.')
    return said


def _noise(row: results.Row, other: results.Row) -> float:
    """Return the difference up to which intervals overlap."""
    return sum(one.interval for one in (row, other) if not math.isnan(one.interval))


def _sigma(rows: Sequence[results.Row]) -> list[str]:
    said = []
    for mix in dict.fromkeys(row.mix for row in rows):
        gains = [f'{row.sigma:g}: {_gain(row, "throughput")} (FIFO-single '
                 f'{_percent(single.throughput)})' for row in rows
                 if row.mix == mix and row.scheduler == 'PRICED_8' and (single := _find(
                     rows, 'FIFO-single', mix=mix, sigma=row.sigma)) is not None]
        packed = [abs(row.throughput - 1) for row in rows
                  if row.mix == mix and row.scheduler == 'FIFO-packed']
        said.append(f'{mix}: PRICED_8 by σ, {", ".join(gains)}; packed and spread FIFO differ by '
                    f'{max(packed, default=math.nan):.1%} at most.')
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
    '11': _streams('machines'), '12': _streams('machines'), 'table1': _queues, 'sigma': _sigma,
    'cost': _cost}
