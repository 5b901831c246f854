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

"""A demonstration from measurements to report."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from typing import Any, Sequence

from tracon_lab.demo import comparison
from tracon_lab.demo import crew
from tracon_lab.demo import report
from tracon_lab.demo import report_text
from tracon_lab.demo import settings as settings_module
from tracon_lab.models import dataset
from tracon_lab.simulator import truth as truths
from tracon_watcher import errors
from tracon_watcher import progress as progresses

AUDITED = report.AUDITED


@dataclasses.dataclass(frozen=True)
class Wish:
    """What is wanted.

    :param files: measurements
    :param host_type: None for the one with the most pair rows
    :param folder: for results, logs and the report
    :param fresh: run again what there are results of
    :param audits: seeds after which audits run: first, all or none
    :param audits_only: run no other arm than the one that audits follow
    :param options: further arguments of :class:`.settings.Settings`
    """

    seeds: Sequence[int]
    files: Sequence[str]
    host_type: str | None
    folder: pathlib.Path
    fresh: bool
    processes: int
    audits: str
    audits_only: bool
    options: dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Demonstration:
    """What came out.

    :param results: by seed and arm
    """

    settings: settings_module.Settings
    truth: truths.Truth
    results: dict[int, dict[str, dict[str, Any]]]
    rows: list[comparison.Row]
    report: pathlib.Path
    repair: comparison.Repair | None = None


def run(wish: Wish) -> Demonstration:
    """Run all arms of all seeds that have no result yet, and write the report.

    :raises tracon_watcher.errors.TraconError: saying what is wrong
    """
    if not wish.files:
        raise errors.InvalidOption('--measurements', None, 'no measurements came with the '
                                   'package; name a CSV file of `tracon lab measure`')
    wish.folder.mkdir(parents=True, exist_ok=True)
    datasets = dataset.read_all(wish.files)
    host_type = _host_type(datasets, wish.host_type)
    truth = truths.of(datasets, host_type)
    notes = progresses.Progress(1)
    settings = settings_module.Settings(tuple(wish.files), host_type, **wish.options)
    listed = [task for task in crew.tasks(wish.seeds, _audited(wish), AUDITED)
              if task.arm == AUDITED or not wish.audits_only]
    kept = crew.Results(wish.folder, settings.fingerprint())
    results: dict[int, dict[str, dict[str, Any]]] = {seed: {} for seed in wish.seeds}
    for task in listed:
        found = None if wish.fresh else kept.find(task)
        if found is not None:
            results[task.seed][task.arm] = found
    missing = [task for task in listed if task.arm not in results[task.seed]]
    if len(missing) < len(listed):
        notes.say(f'{len(listed) - len(missing)} of {len(listed)} results of an earlier run are '
                  f'in {wish.folder}; --fresh runs them again')
    if missing:
        notes = progresses.Progress(len(missing))
        notes.say(f'Nova places {settings.vms} VMs on {settings.hosts} hosts, {len(missing)} '
                  f'times; its logs are in {wish.folder}')
        for task, result in crew.run(missing, settings, wish.folder, wish.processes,
                                     notes.report):
            kept.keep(task, result)
            results[task.seed][task.arm] = result
            notes.report(task, 1.0)
    rows = comparison.rows(results)
    path = wish.folder / 'report.html'
    done = Demonstration(settings, truth, results, rows, path, comparison.repair(results, AUDITED))
    report.write(path, settings, truth, next(
        one.header for one in datasets if one.host_type == host_type), results, rows, done.repair)
    for line in _told(done):
        notes.say(line)
    return done


def _host_type(datasets: Sequence[dataset.Dataset], wanted: str | None) -> str:
    known = truths.host_types(datasets)
    if not known:
        raise errors.NotEnoughData('the truth of a placement', 0, 9)
    if wanted is not None and wanted not in known:
        raise errors.InvalidOption('--host-type', wanted, 'pairs were measured on '
                                   + ', '.join(known))
    return wanted or known[0]


def _audited(wish: Wish) -> Sequence[int]:
    return {'first': wish.seeds[:1], 'all': wish.seeds, 'none': ()}[wish.audits]


def _told(done: Demonstration) -> list[str]:
    """Return what a reader of the table wants to know beside it; write ``summary.json``."""
    lines = []
    seed = min(done.results)
    for number in sorted(done.results):
        audited = done.results[number].get(AUDITED, {})
        if 'audit_failure' in audited:
            lines.append(f'Seed {number}: the audit has failed: {audited["audit_failure"]}')
    audit = done.results[seed].get(AUDITED, {}).get('audit')
    if audit:
        lines += [f'Seed {seed}: {line}' for line in report_text.story(audit)]
    if done.repair is not None and done.repair.seeds > 1:
        lines.append(report_text.repaired(done.repair))
    lines += ['Slowdown: run time beside the neighbour, as a multiple of that alone. In breach: '
              'slower than the flavor promises, of all VMs whose flavor promises something',
              f'Report: {done.report}']
    (done.report.parent / 'summary.json').write_text(json.dumps(
        {'settings': done.settings.to_document(),
         'rows': [dataclasses.asdict(row) for row in done.rows],
         'repair': done.repair and dataclasses.asdict(done.repair)}, indent=1), encoding='utf-8')
    return lines
