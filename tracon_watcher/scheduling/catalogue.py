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

"""Schedulers by name."""

from __future__ import annotations

import dataclasses
import math
import re

from tracon_watcher import errors
from tracon_watcher.scheduling import base
from tracon_watcher.scheduling import fifo
from tracon_watcher.scheduling import matching
from tracon_watcher.scheduling import mibs
from tracon_watcher.scheduling import mios
from tracon_watcher.scheduling import mix
from tracon_watcher.scheduling import performance as performances
from tracon_watcher.scheduling import priced

#: One of each family, as they are shown. The baseline of ratios is the better of the FIFOs.
USUAL = ('FIFO-packed', 'FIFO-spread', 'MIOS', 'MIBS_8', 'MIX_8', 'PRICED_8')
_NAME = re.compile(r'(?P<family>[A-Z]+|matching)(?:-(?P<order>packed|spread))?'
                   r'(?:_(?P<window>\d+))?(?P<full>-full)?(?::(?P<more>.*))?$')
_KNOWN = ('FIFO-packed, FIFO-spread, MIOS, MIBS_q, MIBS_q-full, MIX_q, MIX_q-full, PRICED_q (with '
          ':threshold=θ and :surplus=s behind it) or matching; q is the length of the queue')
_MOST = 4096


@dataclasses.dataclass(frozen=True)
class _Name:
    """A name, taken apart."""

    family: str
    order: str
    window: int
    full: bool
    more: dict[str, float]


def check(name: str) -> None:
    """See that a scheduler has this name.

    :raises tracon_watcher.errors.InvalidOption: for a name that is none
    """
    _taken_apart(name)


def build(name: str, performance: performances.Performance, objective: str) -> base.Scheduler:
    """Return the scheduler of a name.

    :param performance: as predicted
    :param objective: ``RT`` or ``IO``
    :raises tracon_watcher.errors.InvalidOption: for a name that is none
    """
    parts = _taken_apart(name)
    if parts.family == 'FIFO':
        return fifo.Fifo(parts.order)
    if parts.family == 'MIOS':
        return mios.Mios(performance, objective)
    if parts.family == 'MIBS':
        return mibs.Mibs(performance, objective, parts.window, parts.full)
    if parts.family == 'MIX':
        return mix.Mix(performance, objective, parts.window, parts.full)
    if parts.family == 'matching':
        return matching.Matching(performance, objective)
    scheduler = priced.Priced(performance, parts.window, **parts.more)
    scheduler.name = name
    return scheduler


def _taken_apart(name: str) -> _Name:
    found = _NAME.match(name)
    if found is None:
        raise errors.InvalidOption('scheduler', name, f'expected {_KNOWN}')
    family, order, full = found['family'], found['order'], bool(found['full'])
    window = int(found['window']) if found['window'] else None
    takes = {'window': window is not None, 'order': order is not None, 'full': full,
             'more': found['more'] is not None}
    expected = {'FIFO': {'order'}, 'MIOS': set(), 'MIBS': {'window'}, 'MIX': {'window'},
                'PRICED': {'window'}, 'matching': set()}.get(family)
    allowed = {'MIBS': {'full'}, 'MIX': {'full'}, 'PRICED': {'more'}}.get(family, set())
    given = {part for part, there in takes.items() if there}
    if expected is None or not expected <= given <= expected | allowed:
        raise errors.InvalidOption('scheduler', name, f'expected {_KNOWN}')
    if window is not None and not 1 <= window <= _MOST:
        raise errors.InvalidOption('scheduler', name,
                                   f'the queue holds from 1 to {_MOST} tasks')
    return _Name(family, order or '', window or 1, full, _more(name, found['more']))


def _more(name: str, text: str | None) -> dict[str, float]:
    values: dict[str, float] = {}
    for part in (text or '').split(':') if text is not None else ():
        key, _equals, value = part.partition('=')
        try:
            values[key] = float(value)
        except ValueError:
            values[key] = math.nan
        # Without a threshold no task waits. There is no such thing as an endless surplus.
        if not (math.isfinite(values[key]) and key in ('threshold', 'surplus')
                or values[key] == -math.inf and key == 'threshold'):
            raise errors.InvalidOption('scheduler', name, f'expected {_KNOWN}')
    return values
