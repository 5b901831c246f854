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

"""Reads the samples that Ceilometer exports to Prometheus, or to Aetos: that behind Keystone.

One query for each meter brings all samples of all resources. Where they are many, they are asked
for by the last digits of their ids, so that no answer is larger than a page.

The time that a query is about stands in the query: Aetos 1.0 lets no other parameter through.
"""

from __future__ import annotations

import dataclasses
import logging
import re
import time
from typing import Any, Callable, Mapping, Sequence

from tracon_watcher import errors
from tracon_watcher.telemetry import rest
from tracon_watcher.telemetry import samples

LOG = logging.getLogger(__name__)

_PATH = 'api/v1/query'
_REMEDY = 'check that the endpoint is Prometheus, or something that answers like it'
_DIGITS = '0123456789abcdef'
_LABEL = re.compile(r'[a-zA-Z_][a-zA-Z0-9_]*')
_NAME = re.compile(r'[a-zA-Z_:][a-zA-Z0-9_:]*')


@dataclasses.dataclass(frozen=True)
class Settings:
    """What to ask Prometheus for, and how.

    :param prefix: of the names of Ceilometer's metrics; dots of a meter's name become underscores
    :param label: that has the id of the resource
    :param only: labels and their values that the metrics must have, where several clouds share it
    :param scrape_seconds: between two scrapes: so much later than polled may a sample seem
    :param series: in an answer, roughly
    :param seconds: that a round may take; queries that are left then are not asked
    """

    prefix: str = 'ceilometer_'
    label: str = 'resource'
    only: Mapping[str, str] = dataclasses.field(default_factory=dict)
    scrape_seconds: float = 30.0
    series: int = 20000
    seconds: float = 300.0

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.prefix):
            raise errors.InvalidOption('prefix', self.prefix, 'the beginning of a metric\'s name')
        for label in (self.label, *self.only):
            if not _LABEL.fullmatch(label):
                raise errors.InvalidOption('label', label, 'letters, digits and underscores')


@dataclasses.dataclass(frozen=True)
class CollectionRound:
    """What came of one reading.

    :param resources: that were found
    :param parts: of the resources that were to be asked for, 1, 17 or 259 of them
    :param failed: parts that were not answered
    :param seconds: that it took
    :param warnings: that came with answers, each once; data may be missing then
    :param first: the first thing that went wrong; None when nothing did
    """

    resources: int
    parts: int
    failed: int
    seconds: float
    warnings: tuple[str, ...]
    first: rest.Unanswered | None


class PrometheusReader:
    """A :class:`tracon_watcher.telemetry.samples.Reader` of Prometheus."""

    def __init__(self, service: rest.Service, settings: Settings = Settings(),
                 clock: Callable[[], float] = time.monotonic) -> None:
        self.settings = settings
        #: Seconds by which a sample may have been taken before the time that it has.
        self.resolution = settings.scrape_seconds
        #: A sample has the time of its scrape.
        self.ahead = 0.0
        #: The last :class:`CollectionRound`.
        self.last: CollectionRound | None = None
        self._service = service
        self._clock = clock
        self._left: str | None = None
        #: Labels of the first by name of the series that lacked the label of the resource.
        self._strange: tuple[str, ...] = ()

    def read(self, since: float, until: float, meters: Sequence[str]) -> samples.Readings:
        """Return the samples of these meters; of a resource that could not be read none.

        :raises tracon_watcher.telemetry.samples.TelemetryUnavailable: when nothing could be read
        """
        started = self._clock()
        warnings: dict[str, None] = {}
        self._strange = ()
        endings = self._endings(until, meters, warnings) if meters else []
        # The last round may have ended before all of them: those that are left come first.
        begin = endings.index(self._left) if self._left in endings else 0
        endings = endings[begin:] + endings[:begin]
        self._left = None
        parts: list[samples.Readings] = []
        first: rest.Unanswered | None = None
        for index, ending in enumerate(endings):
            try:
                # A part without one of its meters is none: rates need the clock, above all.
                parts.append(self._part(ending, since, until, meters, warnings, started))
            except rest.Unanswered as error:
                first = first or error
                if not error.of_this:
                    # One that fails whenever it is asked for must not keep the others waiting.
                    late = parts and self._clock() - started > self.settings.seconds
                    self._left = endings[(index + (not late)) % len(endings)]
                    break
        failed = len(endings) - len(parts)
        found = dataclasses.replace(samples.join(parts, meters), asked=self._asked(meters))
        self.last = CollectionRound(len(found.resources), len(endings), failed,
                                    self._clock() - started,
                                    tuple(warnings), first)
        if first is not None:
            if not parts:
                raise first
            LOG.warning('%d of %d parts of all resources could not be read; first: %s', failed,
                        len(endings), first)
        if warnings:
            LOG.warning('Data of Prometheus may be incomplete: %s', '; '.join(warnings)[:500])
        return found

    def _asked(self, meters: Sequence[str]) -> str:
        """Return what was asked for, and what came that is no sample."""
        first = self._metric(meters[0]) if meters else 'nothing'
        which = self._which('') if self.settings.only else ''
        came = f' (one came with {", ".join(self._strange)} instead)' if self._strange else ''
        return (f'{self._service.where(_PATH)} was asked for series of {first}{which} and others '
                f'with the label {self.settings.label}{came}')

    def _endings(self, until: float, meters: Sequence[str], warnings: dict[str, None]
                 ) -> list[str | None]:
        """Return expressions that the ids match, each one of them; None is every id."""
        names = {self._metric(meter) for meter in meters}
        which = self._which(f'__name__=~"{"|".join(sorted(names))}"')
        counted = self._ask(f'max(count by (__name__) ({which} @ {until:.3f}))', 'vector',
                            warnings, self.settings.seconds)
        try:
            series = float(counted[0]['value'][1]) if counted else 0.0
        except (LookupError, TypeError, ValueError) as error:
            raise self._service.unusable(_PATH, counted, _REMEDY) from error
        if series <= self.settings.series:
            return [None]
        one = [f'.*{digit}' for digit in _DIGITS]
        if series > self.settings.series * len(_DIGITS):
            one = [f'.*{last}{digit}' for last in _DIGITS for digit in _DIGITS]
            one += ['.*[^0-9a-f][0-9a-f]', '[0-9a-f]']
        return [*one, '.*[^0-9a-f]']

    def _part(self, ending: str | None, since: float, until: float, meters: Sequence[str],
              warnings: dict[str, None], started: float) -> samples.Readings:
        found = samples.Samples(meters)
        # Whole seconds: a range is no fraction in older releases. What is too early is left out.
        window = int(until - since) + 1
        label = self.settings.label
        which = self._which('' if ending is None else f'{label}=~"{ending}"')
        for column, meter in enumerate(meters):
            left = self.settings.seconds - (self._clock() - started)
            if left < 0:
                raise rest.Unanswered(
                    self._service.where(_PATH),
                    f'queries are left after {self.settings.seconds:g} s',
                    'see how busy it is, or read less often')
            answer = self._ask(f'{self._metric(meter)}{which}[{window}s] @ {until:.3f}', 'matrix',
                               warnings, left)
            try:
                for series in answer:
                    # Without the label it is something else of that name.
                    if label not in series['metric']:
                        labels = tuple(sorted(map(str, series['metric'])))
                        self._strange = min(self._strange or labels, labels)
                    else:
                        points = series['values']
                        found.add(series['metric'][label], column,
                                  [float(point[0]) for point in points],
                                  [float(point[1]) for point in points])
            except (LookupError, TypeError, ValueError) as error:
                raise self._service.unusable(_PATH, answer, _REMEDY) from error
        return found.readings(since, until)

    def _ask(self, query: str, kind: str, warnings: dict[str, None], left: float) -> list[Any]:
        answer = self._service.ask('GET', _PATH, {'query': query}, within=left)
        if not isinstance(answer, dict) or answer.get('status') != 'success':
            raise self._service.unusable(_PATH, answer, _REMEDY)
        data, said = answer.get('data'), answer.get('warnings') or []
        if not isinstance(data, dict) or data.get('resultType') != kind or not isinstance(
                data.get('result'), list) or not isinstance(said, list):
            raise self._service.unusable(_PATH, answer, _REMEDY)
        warnings.update(dict.fromkeys(map(str, said)))
        result: list[Any] = data['result']
        return result

    def _metric(self, meter: str) -> str:
        name = self.settings.prefix + meter.replace('.', '_')
        if not _NAME.fullmatch(name):
            raise errors.InvalidOption('meter', meter, 'letters, digits, dots and underscores')
        return name

    def _which(self, condition: str) -> str:
        """Return the conditions that metrics are to meet: this one, if any, and the settings'."""
        def quoted(value: str) -> str:
            return value.replace('\\', '\\\\').replace('"', '\\"').replace('\n', '\\n')
        conditions = [condition] if condition else []
        conditions += [f'{label}="{quoted(value)}"' for label, value in self.settings.only.items()]
        return f'{{{",".join(conditions)}}}'
