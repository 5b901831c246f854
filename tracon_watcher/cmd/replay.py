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
"""``tracon replay``: recorded decisions, made again with other settings."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import math
import pathlib
import time
from typing import Any, Iterator, Mapping, Sequence

from cliff import lister
import numpy as np

from tracon_watcher.characteristics import BoolArray
from tracon_watcher.characteristics import FloatArray
from tracon_watcher.cmd import db
from tracon_watcher import errors
from tracon_watcher import numerals

COLUMNS = ('setting', 'decisions', 'changed', 'refused', 'assumed', 'unknown', 'compared',
           'slowdown_mean', 'slowdown_p99', 'upper_bound_p99', 'worst_vm_p99')
AS_IT_WAS, DECIDED_AGAIN = 'as it was', 'decided again'
#: In the place of a host's position: all hosts are refused; what was decided is not known.
_REFUSED, _UNKNOWN = -1, -2


class Replay(db.DatabaseCommand, lister.Lister):
    """Decide recorded requests again with other settings, and compare the predicted slowdowns.

    Each decision is made again by itself, with what was predicted then for its hosts. What VMs
    that go elsewhere would have changed for later requests is not known, and left out. Of settings
    with several values each combination has a row. The row "decided again" has the settings that
    there were: what has changed there is the error of this method. "assumed" counts decisions in
    which other weighers' weights are not known for some host; it then has the mean of the others.
    Slowdowns are those predicted for the new VM, over the decisions that have a prediction in each
    row; worst_vm is the VM that each placement slows down most.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        from nova_filters import policy
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add('decisions', type=pathlib.Path, nargs='?', metavar='FILE',
            help='file with a recorded decision, in JSON, on each line (default: the engine\'s '
                 'database)')
        add('--days', type=numerals.number(0, 36500), default=7.0, metavar='N',
            help='days up to now whose decisions are taken from the database '
                 '(default: %(default)g)')
        for name, parse, what in (
                ('--mode', _mode, 'mode on all hosts: ' + ', '.join(policy.MODES)),
                ('--max-slowdown', numerals.number(1, 1000),
                 'slowdown that each VM tolerates, instead of the limits that there were'),
                ('--weight-multiplier', numerals.number(0, 1e9),
                 'multiplier of this extension\'s weigher; 0: Nova\'s own weighers alone')):
            add(name, type=lambda text, parse=parse: [parse(one) for one in text.split(',')],
                default=[], metavar='VALUE,…', help=what)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        path = parsed_args.decisions
        found = list(self._of_database(parsed_args) if path is None else _of_file(path))
        if not found:
            raise errors.InvalidDocument(
                str(path or 'the database'), 'decisions', 0,
                'expected some with a known outcome; widen --days')
        given = (parsed_args.mode, parsed_args.max_slowdown, parsed_args.weight_multiplier)
        settings = [Setting(), *(Setting(*one) for one in itertools.product(
            *(values or [None] for values in given)) if any(value is not None for value in one))]
        return COLUMNS, numerals.rows(_rows(found, settings), parsed_args)

    def _of_database(self, parsed_args: argparse.Namespace) -> Iterator[DecisionRecord]:
        from tracon_watcher.engine.storage import decisions
        from tracon_watcher.engine.storage import repository
        from tracon_watcher.engine.storage import schema
        database = self.database(parsed_args)
        schema.check(database)
        stored, marker = repository.Storage(database).decisions, None
        since = time.time() - 86400.0 * parsed_args.days
        while page := stored.find(since=since, marker=marker, limit=decisions.PAGE):
            marker = page[-1].id
            for one in page:
                yield from _recorded(f'decision {one.id}', {**one.document, 'chosen': one.chosen})


def _mode(text: str) -> str:
    from nova_filters import policy
    if text not in policy.MODES:
        raise argparse.ArgumentTypeError(f'{text!r}: expected one of {", ".join(policy.MODES)}')
    return text


def _of_file(path: pathlib.Path) -> Iterator[DecisionRecord]:
    try:
        with open(path, encoding='utf-8') as stream:
            for number, line in enumerate(stream, 1):
                yield from _recorded(f'{path}, line {number}', json.loads(line))
    except (OSError, ValueError) as error:
        raise errors.InvalidDocument(str(path), 'the file', str(error), (
            'expected a decision of nova-scheduler, in JSON, on each line')) from None


@dataclasses.dataclass(frozen=True)
class Setting:
    """Settings to decide with; None: the recorded one.

    :param max_slowdown: slowdown that each VM tolerates, save background work
    """

    mode: str | None = None
    max_slowdown: float | None = None
    weight_multiplier: float | None = None

    def __str__(self) -> str:
        return ', '.join(f'{name}={value:g}' if isinstance(value, float) else f'{name}={value}'
                         for name, value in vars(self).items() if value is not None
                         ) or DECIDED_AGAIN


class DecisionRecord:
    """A decision on n hosts, as it was recorded.

    :param content: its document
    :ivar choice: position of the host that the VM came to, or why there is none
    :ivar slowdown: (n, 3) of the VM: lower bound, expected, and upper bound; NaN where unknown
    :ivar worst: (n,) of the VM that is slowed down most
    :raises KeyError: or TypeError, or ValueError, when it is none
    """

    def __init__(self, content: Mapping[str, Any]) -> None:
        self._content = content
        self._hosts: Sequence[Mapping[str, Any]] = content['hosts']
        names = [one['host'] for one in self._hosts]
        self.choice = (_REFUSED if content['chosen'] is None else
                       names.index(content['chosen']) if content['chosen'] in names else _UNKNOWN)
        nothing = [math.nan] * 3
        self.slowdown = np.array([one['slowdown'] or nothing for one in self._hosts],
                                 dtype=np.float64).reshape(-1, 3)
        worst = [one['worst'] or {} for one in self._hosts]
        self.worst = self._numbers([one.get('after') if one.get('response') == 'slowdown' else None
                                    for one in worst])
        self._others = self._numbers([one.get('other_weights') for one in self._hosts])
        self._score = self._numbers([one['score'] for one in self._hosts])
        self._breached = np.array([bool(one['reasons']) for one in self._hosts], dtype=np.bool_)

    def decide(self, setting: Setting) -> tuple[int, bool]:
        """Decide again, with the code of nova-scheduler.

        :returns: position of the host, or why there is none; and whether other weighers' weights
            were assumed
        """
        from nova_filters import policy
        from nova_filters import scheduling_result
        from tracon_watcher.placement import assessment
        content, count = self._content, len(self._hosts)
        breached = (self._breached if setting.max_slowdown is None else
                    self._breached_with(setting.max_slowdown))
        if breached is None:
            return _UNKNOWN, False
        # Of a state that is not known any more; its judgement alone is.
        unknown: Any = None
        found = assessment.Assessment(
            unknown, unknown, np.array([assessment.Status[one['status'].upper()]
                                        for one in self._hosts], dtype=np.intp),
            np.log(self.slowdown[:, [1, 1]].T), self._score,
            np.where(breached, 1.0, -np.inf), np.zeros(count), np.full(count, -np.inf))
        judged = scheduling_result.SchedulingResult(
            content['vm'], [None] * count, np.arange(count),
            np.array([policy.MODES[setting.mode or one['mode']] for one in self._hosts],
                     dtype=np.intp), found, found, content['operation'] == 'move',
            content.get('on_all_refused', 'least_harm') == 'least_harm')
        left = np.flatnonzero(~judged.taken_out())
        if not len(left):
            # Of those that were not recorded one might have been left.
            return (_UNKNOWN if content['considered'] > count else _REFUSED), False
        others = self._others[left]
        missing = np.isnan(others)
        others[missing] = 0.0 if missing.all() else others[~missing].mean()
        multiplier = setting.weight_multiplier
        if multiplier is None:
            multiplier = content.get('weight_multiplier', policy.Options('').weight_multiplier)
        weights = others + multiplier * scheduling_result.as_weighed(judged.weights()[left])
        # Nova weighs nothing where there is but one.
        return int(left[np.argmax(weights)]), bool(missing.any() and len(left) > 1)

    def _breached_with(self, limit: float) -> BoolArray | None:
        """Say on which hosts a limit of the slowdown would be breached; None: not known."""
        own = (self._content['newcomer'].get('limits') or {}).get('background') is not True
        found = np.zeros(len(self._hosts), dtype=bool)
        for place, one in enumerate(self._hosts):
            if one['status'] != 'known':
                continue
            if one.get('breached_limits') is None:
                return None
            found[place] = (own and self.slowdown[place, 0] > limit) or any(
                low <= limit < high for low, high in one['breached_limits']) or any(
                    reason.endswith('iops_ratio') for reason in one['reasons'])
        return found

    @staticmethod
    def _numbers(values: Sequence[float | None]) -> FloatArray:
        return np.array([math.nan if one is None else one for one in values], dtype=np.float64)


def _recorded(source: str, content: Any) -> Iterator[DecisionRecord]:
    """Yield a decision, if it is known what came of it."""
    try:
        if content['chosen'] is not None or content['refused'] == content['considered']:
            yield DecisionRecord(content)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise errors.InvalidDocument(source, 'a decision', f'{type(error).__name__}: {error}', (
            'expected a document of schema tracon-decision/1 with the host that was chosen'
            )) from None


def _rows(decisions: Sequence[DecisionRecord],
          settings: Sequence[Setting]) -> list[tuple[Any, ...]]:
    """Return a row for what there was, and one for each setting."""
    made = [[one.decide(setting) for one in decisions] for setting in settings]
    choices = np.array([[one.choice for one in decisions],
                        *([choice for choice, _assumed in some] for some in made)])
    assumed = [0, *(sum(one for _choice, one in some) for some in made)]
    # (rows, decisions, 4) slowdowns of the VM, with bounds, and of the one that suffers most
    values = np.full((*choices.shape, 4), np.nan)
    for row, some in enumerate(choices):
        for place, (one, choice) in enumerate(zip(decisions, some)):
            if choice >= 0:
                values[row, place] = *one.slowdown[choice], one.worst[choice]
    compared = ~np.isnan(values[..., :3]).any(axis=(0, 2))
    unknown = (choices == _UNKNOWN) | (choices[0] == _UNKNOWN)
    rows = []
    for row, setting in enumerate((AS_IT_WAS, *settings)):
        shown, worst = values[row, compared], values[row, compared, 3]
        rows.append((
            str(setting), len(decisions),
            int(((choices[row] != choices[0]) & ~unknown[row]).sum()),
            int((choices[row] == _REFUSED).sum()), assumed[row], int(unknown[row].sum()),
            int(compared.sum()), _mean(shown[:, 1]), _p99(shown[:, 1]), _p99(shown[:, 2]),
            _p99(worst[~np.isnan(worst)])))
    return rows


def _mean(values: FloatArray) -> float:
    return float(values.mean()) if len(values) else math.nan


def _p99(values: FloatArray) -> float:
    return float(np.percentile(values, 99)) if len(values) else math.nan
