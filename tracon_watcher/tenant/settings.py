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

"""The settings of ``tracon dial run``, a file of YAML in which every key is checked."""

from __future__ import annotations

import dataclasses
import math
import os
import pathlib
import re
from typing import Any, Mapping

import yaml

from tracon_watcher import errors
from tracon_watcher import files
from tracon_watcher import numerals
from tracon_watcher.tenant import latency_model

#: Of proxies and servers in HAProxy. What else a name held would reach its runtime API.
_NAME = re.compile(r'[A-Za-z0-9_.:-]+')
_URL = re.compile(r'https?://[^/\s]+\S*')
#: What is no kind of contention: quiet times at any rate of requests, and what cannot be told.
LOAD, UNKNOWN = 'load', 'unknown'
#: Ranges of the numbers.
_RANGES = {
    'peak_rate': (1e-3, 1e9),
    'percentile': (50.0, 99.9),
    'objective_ms': (0.0, 3.6e6),
    'interval_seconds': (1.0, 600.0),
    'quiet_readings': (20, 10000),
    'step': (0.01, 1.0),
    'trickle': (1e-4, 0.5),
    'metrics_port': (1, 65535),
    'runs': (2, 1000),
    'run_intervals': (1, 1000),
}
_WHOLE = ('quiet_readings', 'metrics_port', 'runs', 'run_intervals')
_TEXTS = ('socket', 'log', 'backend', 'metrics_address', 'model')


@dataclasses.dataclass(frozen=True)
class Settings:
    """What DIAL is told of a load balancer and its workers.

    :ivar socket: of HAProxy's runtime API, with the level admin
    :ivar log: file that HAProxy's HTTP log ends in
    :ivar workers: names of the servers of ``backend``, all of one size
    :ivar peak_rate: requests that one worker without contention serves, 1/s
    :ivar percentile: x of the tail latency T_x
    :ivar objective_ms: T_x up to which a worker is never called contended
    :ivar quiet_readings: readings of T_x from which on contention is looked for
    :ivar coefficients: c0, c1, c2 of eq. 4.1, in any unit: only the shape of the curve is used
    :ivar step: how much the share of a worker changes in an interval at most
    :ivar trickle: least share of a worker; by default a fifth of the requests beyond T_x
    :ivar model: file of a model that tells kinds of contention
    :ivar exporters: URL of each worker's node_exporter
    :ivar stressors: for training: a command by worker by kind of contention
    :ivar runs: of training, of each command
    :ivar run_intervals: that count in each of these
    """

    socket: pathlib.Path
    log: pathlib.Path
    backend: str
    workers: tuple[str, ...]
    peak_rate: float
    percentile: float = 90.0
    objective_ms: float = 0.0
    interval_seconds: float = 10.0
    quiet_readings: int = 30
    coefficients: tuple[float, float, float] = latency_model.MM1
    step: float = 0.2
    trickle: float = math.nan
    metrics_address: str = '127.0.0.1'
    metrics_port: int | None = None
    model: pathlib.Path | None = None
    exporters: Mapping[str, str] = dataclasses.field(default_factory=dict)
    stressors: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    runs: int = 3
    run_intervals: int = 6

    def __post_init__(self) -> None:
        """Take a trickle that the tail of all requests does not consist of."""
        if math.isnan(self.trickle):
            object.__setattr__(self, 'trickle', (1.0 - self.percentile / 100.0) / 5.0)


def load(path: str | os.PathLike[str]) -> Settings:
    """Read settings.

    :raises tracon_watcher.errors.InvalidDocument: naming the key, its value and the remedy
    """
    text = files.text(path, 'name a file of settings for DIAL')
    try:
        content = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, 'problem_mark', None)
        place = f'line {mark.line + 1}' if mark else 'the file'
        raise errors.InvalidDocument(os.fspath(path), place,
                                     getattr(error, 'problem', None) or str(error),
                                     'expected YAML: a "key: value" in each line') from None
    fields = {field.name: field for field in dataclasses.fields(Settings)}

    def refuse(key: str, value: object, remedy: str) -> errors.InvalidDocument:
        return errors.InvalidDocument(os.fspath(path), key, value, remedy)

    if not isinstance(content, dict):
        raise refuse('the file', content, f'expected keys, of {", ".join(fields)}')
    for key, value in content.items():
        if key not in fields:
            raise refuse(str(key), value, f'there is no such key; there are {", ".join(fields)}')
    for name, field in fields.items():
        if field.default is field.default_factory and name not in content:
            raise refuse(name, None, 'state it; it has no default')
    taken: dict[str, Any] = {}
    for key, value in content.items():
        if key in _RANGES:
            try:
                # YAML itself reads 1_000, .nan and true; their texts are no numbers here.
                parse = numerals.parse_whole if key in _WHOLE else numerals.parse
                taken[key] = parse(str(value), *_RANGES[key])
            except numerals.InvalidNumber as error:
                raise refuse(key, value, error.remedy) from None
        elif key in _TEXTS:
            if not isinstance(value, str) or not value:
                raise refuse(key, value, 'expected a text')
            taken[key] = pathlib.Path(value) if key in ('socket', 'log', 'model') else value
        elif key == 'exporters':
            if not _texts(value) or not all(map(_URL.fullmatch, value.values())):
                raise refuse(key, value, 'expected "worker: http://address:9100/metrics"')
            taken[key] = value
        elif key == 'stressors':
            if not isinstance(value, dict) or not value or not all(
                    _named(kind) and _texts(one) for kind, one in value.items()) or (
                        {LOAD, UNKNOWN} & set(value)):
                raise refuse(key, value, f'expected "kind: {{worker: command}}", and no kind '
                             f'{LOAD} or {UNKNOWN}')
            taken[key] = value
        elif key == 'workers':
            if not isinstance(value, list) or len(value) < 2 or not all(map(_named, value)):
                raise refuse(key, value, 'expected two names of servers or more, such as [a, b]')
            if len(set(value)) < len(value):
                raise refuse(key, value, 'name each server once')
            taken[key] = tuple(value)
        else:
            taken[key] = rising_curve(value)
            if taken[key] is None:
                raise refuse(key, value, 'expected [c0, c1, c2] with c2 and c1 + 2 c2 of at least '
                             '0, not both 0, and a sum above 0: latency rises with load')
    if not _named(taken['backend']):
        raise refuse('backend', taken['backend'], 'expected the name of a backend of HAProxy')
    found = Settings(**taken)
    if found.trickle * len(found.workers) >= 1:
        raise refuse('trickle', found.trickle, f'expected less than 1/{len(found.workers)}, an '
                     f'equal share of {len(found.workers)} workers')
    if (found.model or found.stressors) and set(found.exporters) != set(found.workers):
        raise refuse('exporters', dict(found.exporters), 'state one of each worker')
    for kind, commands in found.stressors.items():
        if not set(commands) <= set(found.workers):
            raise refuse(f'stressors.{kind}', commands, f'expected {", ".join(found.workers)}')
    return found


def _named(value: object) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def _texts(value: object) -> bool:
    return isinstance(value, dict) and bool(value) and all(
        isinstance(one, str) and one.strip() for pair in value.items() for one in pair)


def rising_curve(value: object) -> tuple[float, float, float] | None:
    """Return c0, c1, c2 of eq. 4.1, or nothing where they are not those of a rising curve."""
    try:
        c0, c1, c2 = (numerals.parse(str(one)) for one in value)  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        return None
    rises = c2 >= 0 and c1 + 2 * c2 >= 0 and (c1 or c2)
    return (c0, c1, c2) if rises and c0 + c1 + c2 > 0 else None
