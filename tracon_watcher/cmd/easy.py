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

"""``tracon easy``: on which workers of a tenant's OLAP system new segments are stored."""

from __future__ import annotations

import argparse
import math
import pathlib
from typing import Any

from cliff import lister
import numpy as np

from tracon_watcher import csv_table
from tracon_watcher import document
from tracon_watcher import errors
from tracon_watcher import numerals

SCHEMA = 'tracon-segment-load/1'
LOG = ('query', 'cpu_seconds', 'rows_scanned', 'table', 'segment', 'rows', 'age_days', 'fraction')
SEGMENTS = ('segment', 'table', 'rows', 'age_days', 'worker')
_CURVES = ('cpu_seconds_per_row', 'scans_per_day')


class Fit(lister.Lister):
    """Learn from a query log how the load of segments changes with their age.

    The log is CSV with a row for each segment that a query scanned on a worker: query (a name of
    the query on that worker), cpu_seconds and rows_scanned (of the query there in all, the same in
    each of its rows), table, segment, rows (of the segment), age_days (since the begin of its
    data), fraction (of the segment's time that the query asked for). A segment that no query
    scanned has one row, with query, cpu_seconds, rows_scanned and fraction empty.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add('log', metavar='LOG', help='query log (CSV)')
        add('-o', '--output', required=True, type=pathlib.Path, metavar='MODEL',
            help='file for the curves (JSON)')
        add('--hours', type=numerals.number(0.01, 8760), default=1.0,
            help='length of the log (default: %(default)s)')
        add('--expiry-days', type=numerals.number(0.1, 36500), default=90.0, metavar='DAYS',
            help='age at which segments are removed (default: %(default)s)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        from tracon_watcher.tenant import segment_load
        expiry, content, shown = parsed_args.expiry_days, [], []
        for table, (ages, per_row, scans, scanned) in _observed(
                parsed_args.log, parsed_args.hours / 24.0).items():
            try:
                curves = (segment_load.fit(ages, per_row, expiry, scanned),
                          segment_load.fit(ages, scans, expiry))
            except (errors.NotEnoughData, errors.InvalidOption) as error:
                raise errors.InvalidDocument(parsed_args.log, 'table', table, str(error)) from None
            found = {'table': table, 'youngest_days': float(ages.min())}
            for name, curve, values in zip(_CURVES, curves, (per_row, scans)):
                found[name] = [curve.constant, curve.factor, curve.exponent]
                wrong = np.abs(curve(ages) - values)[values > 0] / values[values > 0]
                shown.append((table, name, len(ages), *found[name],
                              100.0 * float(wrong.mean()) if len(wrong) else math.nan))
            content.append(found)
        document.write(document.sealed(
            {'schema': SCHEMA, 'expiry_days': expiry, 'tables': content}), parsed_args.output)
        return (('table', 'curve', 'segments', 'constant', 'factor', 'exponent', 'error_percent'),
                numerals.rows(shown, parsed_args))


class Place(lister.Lister):
    """Choose workers for new segments, so that load is balanced until the segments expire.

    SEGMENTS is CSV with a row for each segment on each worker: segment, table, rows, age_days,
    worker. The worker of a new segment is empty. New segments are placed in the order of the file.
    WORKERS is CSV with the column worker, and names all workers, empty ones too.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add('--model', required=True, help='file that `tracon easy fit` wrote')
        add('--segments', required=True, help='segments (CSV)')
        add('--workers', required=True, help='workers (CSV)')
        add('--replicas', type=numerals.whole(1, 1000), default=1, metavar='R',
            help='workers that hold each new segment (default: %(default)s)')
        add('--table-weight', type=numerals.number(0, 1000), default=0.0, metavar='W',
            help='how much more the load of segments of the same table counts; 10 balances each '
                 'table by itself (default: %(default)s, as published)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        from tracon_watcher.tenant import segment_load
        from tracon_watcher.tenant import segment_placement
        models = read_model(parsed_args.model)
        workers: list[str] = []
        for row in csv_table.read(parsed_args.workers, 'name a table', ('worker',)).rows:
            if not row.text('worker') or row.text('worker') in workers:
                row.refuse('worker', 'name each worker, and each once')
            workers.append(row.text('worker'))
        held, segments = _segments(parsed_args.segments, workers, models)
        names = list(segments)
        loads = np.array([float(segment_load.remaining_load(models[table], rows, age))
                          for table, rows, age in segments.values()])
        tables = np.unique([facts[0] for facts in segments.values()], return_inverse=True)[1]
        new = np.flatnonzero(~held.any(axis=0))
        chosen = segment_placement.place(
            new, held, segment_placement.easy(loads, tables, parsed_args.table_weight),
            parsed_args.replicas)
        return (('segment', 'worker', 'cpu_seconds'),
                [(names[segment], workers[worker], numerals.shown(loads[segment], parsed_args))
                 for segment, where in zip(new, chosen) for worker in where])


def read_model(path: str) -> dict[str, Any]:
    """Return the models of a document by table, every field checked."""
    from tracon_watcher.tenant import segment_load
    fields = document.read(path, 'tracon easy fit')
    fields.string('schema', (SCHEMA,))
    expiry = fields.number('expiry_days', 0.0)
    found = {one.name('table'): segment_load.Model(
        *(segment_load.Curve(*one.array(name, (3,)).tolist()) for name in _CURVES),
        one.number('youngest_days', 1e-3, expiry), expiry) for one in fields.sections('tables')}
    fields.check_seal('write it again with `tracon easy fit`')
    return found


def _observed(path: str, days: float) -> dict[str, tuple[np.ndarray, ...]]:
    """Return by table ages, CPU seconds per row, scans a day and rows scanned in a log of days."""
    from tracon_watcher.tenant import segment_load
    queries: dict[str, tuple[int, float, float]] = {}
    segments: dict[tuple[str, str], tuple[int, float, float]] = {}
    parts: dict[tuple[int, int], float] = {}
    for row in csv_table.read(path, 'name a query log', LOG, LOG).rows:
        key = _named(row)
        facts = row.number('rows', 1.0, 1e15), row.number('age_days', 1e-3, 36500.0)
        segment, *before = segments.setdefault(key, (len(segments), *facts))
        if facts != tuple(before):
            row.refuse('segment', 'rows or age differ from those before; state the same in each')
        if not row.text('query'):
            continue
        totals = row.number('cpu_seconds', 0.0, 1e12), row.number('rows_scanned', 0.0, 1e18)
        query, *before = queries.setdefault(row.text('query'), (len(queries), *totals))
        if totals != tuple(before) or (query, segment) in parts:
            row.refuse('query', 'an earlier row has this segment, or other totals; '
                       'state each segment once, and the totals of the query in each row')
        parts[query, segment] = row.number('fraction', 1e-9, 1.0) * facts[0]
    if not parts:
        raise errors.InvalidDocument(path, 'column query', '', 'the log has no query')
    query, segment = np.array(list(parts)).T
    _index, rows, ages = np.array(list(segments.values())).T
    cpu, scans = (segment_load.attribute(
        np.array(totals), query, segment, np.array(list(parts.values())), len(segments))
        for totals in list(zip(*queries.values()))[1:])
    per_row = np.divide(cpu, scans, out=np.full(len(cpu), math.nan), where=scans > 0)
    tables = np.array([table for table, _segment in segments])
    return {str(table): tuple(values[tables == table] for values in (
        ages, per_row, scans / rows / days, scans)) for table in dict.fromkeys(tables)}


def _segments(path: str, workers: list[str], models: dict[str, Any]
              ) -> tuple[np.ndarray, dict[str, tuple[str, float, float]]]:
    """Return which worker holds which segment, and table, rows and age of each by its name."""
    found: dict[str, tuple[str, float, float]] = {}
    places: dict[str, list[str]] = {}
    for row in csv_table.read(path, 'name a table of segments', SEGMENTS, SEGMENTS).rows:
        (table, name), worker = _named(row), row.text('worker')
        if table not in models:
            row.refuse('table', f'the model knows {", ".join(models)}; fit one that knows all')
        if worker and worker not in workers:
            row.refuse('worker', 'no such worker; add it, or leave this empty to place it again')
        facts = table, row.number('rows', 1.0, 1e15), row.number('age_days', 0.0, 36500.0)
        there = places.setdefault(name, [])
        if found.setdefault(name, facts) != facts or (
                there and (not worker or {'', worker} & set(there))):
            row.refuse('segment', 'an earlier row has it; state the same facts in each row, each '
                       'worker once, and a new segment once')
        there.append(worker)
    return np.array([[worker in places[name] for name in found] for worker in workers]), found


def _named(row: csv_table.Row) -> tuple[str, str]:
    """Return the names of table and segment."""
    for name in ('table', 'segment'):
        if not row.text(name):
            row.refuse(name, 'name it')
    return row.text('table'), row.text('segment')
