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

"""Numbers about the engine itself, for Prometheus."""

from __future__ import annotations

import time
from typing import Any, Callable, Iterator, Mapping

from prometheus_client import core
from prometheus_client import registry

from tracon_watcher.engine import engine as engines
from tracon_watcher.engine import migration_tracker
from tracon_watcher.engine.storage import errors


class EngineCollector(registry.Collector):
    """Reads the engine when it is scraped.

    :param moves: tracks recommended migrations and their outcomes
    :param published: returns numbers about publishing, empty while the engine does not lead
    """

    def __init__(self, engine: engines.Engine, moves: migration_tracker.MigrationTracker,
                 published: Callable[[], Mapping[str, int]],
                 clock: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._moves = moves
        self._published = published
        self._clock = clock

    def describe(self) -> list[Any]:
        """Return nothing: what there is, is only known when it is asked for."""
        return []

    def collect(self) -> Iterator[Any]:
        """Yield the metrics."""
        engine = self._engine
        yield core.GaugeMetricFamily(
            'tracon_engine_leading', 'Whether this engine leads.',
            float(engine.publisher is not None))
        works, age, took = (core.GaugeMetricFamily(
            f'tracon_engine_activity_{name}', text, labels=['activity']) for name, text in (
                ('working', 'Whether an activity worked when it was done last.'),
                ('age_seconds', 'Seconds since an activity worked last.'),
                ('duration_seconds', 'Seconds that it took.')))
        for name, one in engine.activities.items():
            works.add_metric([name], float(one.failure is None))
            if one.succeeded_at is not None:
                age.add_metric([name], self._clock() - one.succeeded_at)
                took.add_metric([name], one.seconds)
        yield from (works, age, took)
        yield core.GaugeMetricFamily(
            'tracon_engine_reports', 'Things that are not as they should be; the log says which.',
            len(engine.reports))
        yield from self._collected()
        episodes = core.CounterMetricFamily(
            'tracon_engine_episodes', 'Documents of tracon-background on episodes of throttling, '
            'by whether they were recorded or dropped.', labels=['result'])
        for name, count in dict(self._moves.episodes.counts).items():
            episodes.add_metric([name], count)
        yield episodes
        try:
            yield from self._stored()
        except errors.StorageFailed:
            # The database is away, which is when everything else is needed most.
            pass
        for name, value in self._published().items():
            yield core.GaugeMetricFamily(
                f'tracon_engine_published_{name}', 'Of what those who listen asked, or of them.',
                value)

    def _stored(self) -> list[Any]:
        suspended = core.GaugeMetricFamily(
            'tracon_engine_suspended', 'Kinds of moves that are suspended, since too few of them '
            'helped: until when, in seconds since the epoch.', labels=['kind'])
        for kind, until in self._moves.standing()['suspended'].items():
            suspended.add_metric([kind], until)
        by_state, by_verdict = self._moves.counts()
        states = core.GaugeMetricFamily(
            'tracon_moves', 'Live migrations that were recommended in the last seven days, by '
            'what became of them.', labels=['state'])
        verdicts = core.GaugeMetricFamily(
            'tracon_move_outcomes', 'Live migrations of the last seven days by whether they '
            'helped, as measured five minutes after.', labels=['verdict'])
        for family, counts in ((states, by_state), (verdicts, by_verdict)):
            for name, count in counts.items():
                family.add_metric([name], count)
        return [suspended, states, verdicts]

    def _collected(self) -> Iterator[Any]:
        found = self._engine.collected
        if found is None:
            return
        yield core.GaugeMetricFamily(
            'tracon_engine_samples', 'Samples that the last collection read.', found.samples)
        yield core.GaugeMetricFamily(
            'tracon_engine_intervals', 'Intervals that it learnt from.', found.learnt)
        skew = core.GaugeMetricFamily(
            'tracon_engine_clock_skew_seconds', 'By how much the clock of any host is off at '
            'most, and 0 where all are right; the log says whose.', labels=['direction'])
        for direction, sign in (('ahead', 1), ('behind', -1)):
            skew.add_metric([direction], max(
                0.0, *(sign * one for one in found.skews.values()), 0.0))
        yield skew
        lost = core.GaugeMetricFamily(
            'tracon_engine_intervals_lost', 'Intervals without rates, by why.', labels=['why'])
        for why, count in found.lost.items():
            lost.add_metric([why], count)
        yield lost
