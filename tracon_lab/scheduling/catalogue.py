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

from tracon_lab.scheduling import base
from tracon_lab.scheduling import fifo
from tracon_lab.scheduling import matching
from tracon_lab.scheduling import mibs
from tracon_lab.scheduling import minmin
from tracon_lab.scheduling import mios
from tracon_lab.scheduling import mix
from tracon_lab.scheduling import performance as performances
from tracon_lab.scheduling import priced
from tracon_watcher import errors
from tracon_watcher import numerals

#: One of each family, as they are shown.
USUAL = ('FIFO-packed', 'FIFO-spread', 'FIFO-single', 'MIOS', 'MIBS_8', 'MIX_8', 'MINMIN_8',
         'PRICED_8')
_NAME = re.compile(r'(?P<family>[A-Z]+|matching)(?:_(?P<window>\d+))?'
                   r'(?P<words>(?:-[a-z]+)*)(?P<values>(?::[^:]*)*)$')
_KNOWN = ('FIFO-packed, FIFO-spread, FIFO-single, MIOS, MIOS-residents, MIBS, MIBS_q, MIX_q, '
          'MINMIN_q (with -paired, but for MINMIN, and -partial or -eager behind it, or :wait=s), '
          'PRICED_q (with :threshold=θ and :surplus=s behind it), matching or matching-spread; q '
          'is the length of the queue')
_MOST = 4096
_PAIRED, _PARTIAL, _EAGER = 'paired', 'partial', 'eager'
_RESIDENTS, _SPREAD = 'residents', 'spread'


@dataclasses.dataclass(frozen=True)
class _Family:
    """Parts that names of a family may have.

    :param queue: ``must``, ``may`` or ``never`` have a length of the queue
    :param words: behind hyphens, each no more than once
    :param values: keys of values behind colons
    """

    queue: str = 'never'
    words: tuple[str, ...] = ()
    values: tuple[str, ...] = ()


_FAMILIES = {
    'FIFO': _Family(words=fifo.ORDERS), 'MIOS': _Family(words=(_RESIDENTS,)),
    'matching': _Family(words=(_SPREAD,)),
    'MIBS': _Family('may', (_PAIRED, _PARTIAL, _EAGER), ('wait',)),
    'MIX': _Family('must', (_PAIRED, _PARTIAL, _EAGER), ('wait',)),
    'MINMIN': _Family('must', (_PARTIAL, _EAGER), ('wait',)),
    'PRICED': _Family('must', (), ('threshold', 'surplus'))}


@dataclasses.dataclass(frozen=True)
class _Name:
    """A name, taken apart."""

    family: str
    window: int | None
    words: tuple[str, ...]
    values: dict[str, float]

    @property
    def reading(self) -> base.Reading:
        batch = None
        if self.window is not None and _EAGER not in self.words:
            batch = base.Batch(_PARTIAL not in self.words, self.values.get('wait', math.inf))
        return base.Reading(self.window, batch, _PAIRED in self.words)


def check(name: str) -> None:
    """Check that a scheduler has this name.

    :raises tracon_watcher.errors.InvalidOption: for any other
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
        return fifo.Fifo(parts.words[0])
    if parts.family == 'MIOS':
        return mios.Mios(performance, objective, bool(parts.words))
    if parts.family == 'MIBS':
        return mibs.Mibs(performance, objective, parts.reading)
    if parts.family == 'MIX':
        return mix.Mix(performance, objective, parts.reading)
    if parts.family == 'MINMIN':
        return minmin.MinMin(performance, objective, parts.reading)
    if parts.family == 'matching':
        return matching.Matching(performance, objective, bool(parts.words))
    scheduler = priced.Priced(performance, parts.window or 1, **parts.values)
    scheduler.name = name
    return scheduler


def _taken_apart(name: str) -> _Name:
    found = _NAME.match(name)
    family = _FAMILIES.get(found['family']) if found is not None else None
    if found is None or family is None:
        raise _unknown(name)
    window = int(found['window']) if found['window'] else None
    words = tuple(found['words'].split('-')[1:])
    if family.queue == ('must' if window is None else 'never'):
        raise _unknown(name)
    if not set(words) <= set(family.words) or len(set(words)) < len(words):
        raise _unknown(name)
    # FIFO has one order; a batch that does not wait has nothing to be partial.
    if (family.words == fifo.ORDERS and len(words) != 1) or (
            {_PARTIAL, _EAGER} <= set(words)):
        raise _unknown(name)
    values = _values(name, found['values'], family.values)
    # All waiting tasks are never a full queue.
    if (window is None or _EAGER in words) and 'wait' in values or (
            window is None and {_PARTIAL, _EAGER} & set(words)):
        raise _unknown(name)
    if window is not None and not 1 <= window <= _MOST:
        raise errors.InvalidOption('scheduler', name,
                                   f'the queue holds from 1 to {_MOST} tasks')
    return _Name(found['family'], window, words, values)


def _values(name: str, text: str, known: tuple[str, ...]) -> dict[str, float]:
    values: dict[str, float] = {}
    for part in text.split(':')[1:]:
        key, _equals, value = part.partition('=')
        if key not in known:
            raise _unknown(name)
        if key == 'threshold' and value == '-inf':
            values[key] = -math.inf     # without a threshold no task waits
            continue
        try:
            values[key] = numerals.parse(value, 0.0 if key == 'wait' else -math.inf)
        except numerals.InvalidNumber as error:
            raise errors.InvalidOption('scheduler', name, f'{key} is {error}') from None
    return values


def _unknown(name: str) -> errors.InvalidOption:
    return errors.InvalidOption('scheduler', name, f'expected {_KNOWN}')
