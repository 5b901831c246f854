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

"""What a soak has shown: a table of its first and last tenths, and a plot."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any, Iterator, Mapping

import numpy as np

from tests.soak import cloud as clouds
from tests.soak import run

#: Columns whose first and last tenths are compared, and what they are.
COMPARED = (
    ('own_over_reference', 'CPU time of a request, over that of fixed work'),
    ('cycle_over_reference', "time of the engine's cycle, over CPU time of fixed work"),
    ('own_ms_mean', "CPU time of a request, ms, mean"),
    ('own_ms_p95', "CPU time of a request, ms, 95th percentile"),
    ('wall_ms_mean', 'time of a request, ms, mean'),
    ('wall_ms_p95', 'time of a request, ms, 95th percentile'),
    ('cycle_seconds', "time of the engine's cycle, s"),
    ('mib_leader', 'memory of the engine that leads, MiB'),
    ('mib_schedulers', 'memory of the workers of nova-scheduler, MiB'),
    ('mib_auditor', "memory of Watcher's decision engine, MiB"),
    ('mib_rabbitmq', 'memory of RabbitMQ, MiB'),
    ('mib_database', 'memory of the database server, MiB'))


def record(soak: run.Soak, cloud: clouds.Cloud) -> dict[str, Any]:
    """Return all that is to be kept of a run."""
    return {'synthetic': 'hosts, VMs, their demand and their counters',
            'plan': dataclasses.asdict(soak.plan), 'events': soak.events, 'wrong': soak.wrong,
            'details': soak.details,
            'failed': dict(soak.failed), 'errors_logged': cloud.faults_logged(),
            'rows': soak.rows}


def text(record: Mapping[str, Any]) -> str:
    """Return the table."""
    plan, rows = record['plan'], record['rows']
    last = rows[-1]
    lines = [
        f"{last['hour']:.0f} hours of simulated time in {last['seconds'] / 60:.0f} minutes, "
        f"after {plan['warm_up']:.0f} of warm-up: "
        f"{plan['hosts']} hosts, {last['created']} VMs created, about {last['vms']} at a time, "
        f"{last.get('migrated', 0)} live migrations, {last.get('audits', 0)} audits",
        f"requests judged by fresh data: {_judged(rows):.1%}",
        f"quiet hosts refused: {sum(row.get('wrong', 0) for row in rows)}; "
        f"newcomers placed on hot hosts by fresh data: {last.get('on_hot', 0)}",
        f"VMs forced to hot hosts: {last.get('forced', 0)}; moves recommended: "
        f"{last.get('moves', 0)}, outdated when they came: {last.get('moves_outdated', 0)}",
        f"what must not be: {len(record['wrong'])}", '',
        f"{'':<60}{'first tenth':>12}{'last tenth':>12}{'ratio':>8}"]
    for name, label in COMPARED:
        first, end = tenths(rows, name)
        lines.append(f'{label:<60}{first:>12.4g}{end:>12.4g}{end / first:>8.2f}')
    lines += ['', *record['wrong'][:20],
              *(f'{count} times {why}' for why, count in record['failed'].items())]
    return '\n'.join(lines)


def tenths(rows: list[Mapping[str, Any]], name: str) -> tuple[float, float]:
    """Return the medians of a column over the first and the last tenth, after the warm-up."""
    rows = [row for row in rows if row['hour'] >= 0]
    hours = np.array([row['hour'] for row in rows])
    values = np.array(list(column(rows, name)))
    end = hours[-1]
    parts = values[hours <= end / 10], values[hours >= end * 9 / 10]
    first, last = (float(np.nanmedian(part)) if np.isfinite(part).any() else float('nan')
                   for part in parts)
    return first, last


def column(rows: list[Mapping[str, Any]], name: str) -> Iterator[float]:
    """Yield a column's numbers; NaN where there is none."""
    for row in rows:
        if name == 'mib_leader':
            value = row.get(f'mib_{row["leader"]}')
        elif name == 'mib_schedulers':
            value = sum(row.get(f'mib_scheduler-{number}', np.nan)
                        for number in range(clouds.SCHEDULERS))
        else:
            value = row.get(name)
        yield np.nan if value is None else float(value)


def plot(record: Mapping[str, Any], path: pathlib.Path) -> None:
    """Draw a record.

    :param path: of a PNG
    """
    from matplotlib import figure
    from matplotlib import ticker
    rows = record['rows']
    hours = [row['hour'] for row in rows]
    made = figure.Figure(figsize=(10, 11), layout='constrained')
    memory, request, work, judged = made.subplots(4, 1, sharex=True)
    server = {'mariadb': 'MariaDB', 'postgresql': 'PostgreSQL'}[record['plan']['database']]
    for name, label in (('mib_engine-a', 'engine a'), ('mib_engine-b', 'engine b'),
                        ('mib_schedulers', 'three workers of nova-scheduler'),
                        ('mib_auditor', "Watcher's decision engine"),
                        ('mib_rabbitmq', 'RabbitMQ'), ('mib_database', server)):
        memory.plot(hours, list(column(rows, name)), label=label)
    memory.set_ylabel('memory in use, MiB')
    for name, label in (('wall_ms_p95', 'time, 95th percentile'), ('wall_ms_mean', 'time, mean'),
                        ('own_ms_mean', 'CPU time, mean'),
                        ('reference_ms', 'CPU time of fixed work')):
        request.plot(hours, list(column(rows, name)), label=label)
    request.set_yscale('log')
    request.set_ylabel('filter and weigher, ms a request')
    work.plot(hours, list(column(rows, 'cycle_seconds')), label="the engine's cycle")
    work.plot(hours, list(column(rows, 'listing_seconds')), label='a listing of the cloud')
    work.plot(hours, list(column(rows, 'snapshot_age')), label='age of the snapshot, at most')
    work.set_yscale('log')
    work.set_ylabel('seconds')
    for name, label, style in (
            ('hot', 'hot hosts offered', '-'), ('refused', 'hosts refused', '--'),
            ('missed', 'hot hosts not refused', '-'), ('wrong', 'quiet hosts refused', '-')):
        judged.plot(hours, list(column(rows, name)), style, label=label)
    judged.set_ylabel('hosts a request')
    judged.set_xlabel('hours of simulated time')
    for axes in (request, work):
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter('{x:g}')
        axes.yaxis.set_minor_formatter('')
    for axes in (memory, request, work, judged):
        axes.axvspan(hours[0], 0, alpha=0.1, color='tab:orange', linewidth=0)
        # Who begins to lead has spent next to no time yet.
        axes.set_ylim(bottom={work: 0.2, request: 1}.get(axes, 0))
        axes.grid(alpha=0.3)
        for event in record['events']:
            axes.axvspan(event['begins'], max(event['ends'], event['begins'] + 0.5), alpha=0.15,
                         color='black', linewidth=0)
        axes.legend(loc='center left', bbox_to_anchor=(1.0, 0.5), fontsize='small', frameon=False)
    for event in record['events']:
        # Those of the warm-up stand too close to each other for names.
        if event['begins'] >= 0:
            memory.annotate(event['name'], (event['begins'], 1.02), rotation=30,
                            fontsize='small', xycoords=('data', 'axes fraction'))
    made.savefig(path, dpi=100)


def _judged(rows: list[Mapping[str, Any]]) -> float:
    requests = sum(row['requests'] for row in rows)
    return 1 - sum(row.get('unjudged', 0) for row in rows) / max(requests, 1)
