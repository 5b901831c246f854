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

"""The report: one HTML page that needs no other file."""

from __future__ import annotations

import html
import pathlib
from typing import Any, Mapping, Sequence

import numpy as np

from tracon_lab.demo import arms
from tracon_lab.demo import comparison
from tracon_lab.demo import outcome
from tracon_lab.demo import plots
from tracon_lab.demo import report_text
from tracon_lab.demo import settings as settings_module
from tracon_lab import page
from tracon_lab.simulator import truth as truths

AUDITED = 'enforce, history'
_REFUSED = ('arm', 'VM', 'hosts refused', 'placed', 'worst host', 'who would breach', 'response',
            'predicted bound', 'limit')
_FEW = 12
Results = Mapping[int, Mapping[str, Mapping[str, Any]]]


def write(path: pathlib.Path, settings: settings_module.Settings, truth: truths.Truth,
          header: Mapping[str, str], results: Results,
          rows: Sequence[comparison.Row],
          repair: comparison.Repair | None = None) -> None:
    """Write the report.

    :param header: what the file of measurements says of itself
    :param results: by seed and arm
    """
    seed = min(results)
    first = results[seed]
    audit = first.get(AUDITED, {}).get('audit')
    parts = [report_text.head(settings, header, len(results)),
             _story(rows, repair, audit, seed, settings)]
    if 'audit_failure' in first.get(AUDITED, {}):
        parts.append('<section><h2>The audit has failed</h2><p>'
                     + html.escape(first[AUDITED]['audit_failure']) + '</p></section>')
    if audit:
        parts.append(_migration(audit, settings, seed))
    if repair is not None and repair.seeds > 1:
        parts.append(_repair(results, repair))
    parts += [_arms(rows, results), _where(first, settings, seed), _refusals(first, seed)]
    parts += [_predicted(results, truth), report_text.fairness(settings), page.END]
    path.write_text('\n'.join(parts), encoding='utf-8')


def _story(rows: Sequence[comparison.Row], repair: comparison.Repair | None,
           audit: Mapping[str, Any] | None, seed: int,
           settings: settings_module.Settings) -> str:
    """Return what a reader should know after the first screen: a few sentences and a picture."""
    by_name = {row.arm: row for row in rows}
    stock, ours = by_name.get(arms.STOCK), by_name.get(AUDITED)
    said = []
    if stock is not None and ours is not None:
        said.append(report_text.placed(stock, ours))
    if audit and repair is not None:
        said.append(report_text.changed(audit, seed, settings))
        said.append(report_text.gained(repair))
    text = '</li><li>'.join(said)
    return ('<section>' + (f'<ul><li>{text}</li></ul>' if said else '')
            + plots.story(rows, repair, report_text.slowdowns(
                audit, audit['changed']['neighbour']) if audit else None, seed) + '</section>')


def _repair(results: Results, repair: comparison.Repair) -> str:
    lines: list[list[object]] = []
    for seed, one in sorted(results.items()):
        audit = one.get(AUDITED, {}).get('audit')
        if not audit:
            continue
        breaches = [outcome.score(audit[state]).in_breach for state in comparison.STATES]
        slow = report_text.slowdowns(audit, audit['changed']['neighbour'])
        lines.append([seed, ' → '.join(f'{value:.2f}' for value in slow),
                      'yes' if audit['healed'] else 'no', *breaches,
                      outcome.score(audit['during']).mean_slowdown,
                      outcome.score(audit['after']).mean_slowdown,
                      outcome.score(audit['oracle']).mean_slowdown,
                      len(audit['moves']), audit['oracle_migrations']])
    return ('<section><h2>The change and its repair, seed by seed</h2>'
            f'<p>{html.escape(report_text.repaired(repair))}.</p>'
            + page.table(('seed', 'neighbour before → then → after', 'healed',
                          'in breach before', 'then', 'after audits', 'oracle',
                          'mean slowdown then', 'after audits', 'oracle', 'migrations',
                          'oracle’s'), lines) + '</section>')


def _arms(rows: Sequence[comparison.Row], results: Results) -> str:
    per_seed = {row.arm: [(one.mean_slowdown, one.in_breach) for one in (
        outcome.score(seed[row.arm]['vms']) for seed in results.values() if row.arm in seed)]
        for row in rows}
    several = any(row.seeds > 1 for row in rows)
    columns = ['arm', 'placed', 'refused', 'mean slowdown', 'geometric mean', 'worst slowdown',
               'in breach', 'of VMs with a limit']
    if several:
        columns += ['slowdown against stock', 'breaches against stock']
    lines: list[list[object]] = []
    for row in rows:
        lines.append([row.arm, _count(row.placed), _count(row.refused), row.mean_slowdown,
                      row.geometric_mean, row.worst_slowdown, _count(row.in_breach),
                      _count(row.limited)])
        if several:
            lines[-1] += [_difference(row.slowdown), _difference(row.breaches)]
    text = ['<h2>The same requests, placed five times</h2>', plots.bars(rows, per_seed),
            page.table(columns, lines)]
    if several:
        text += [plots.differences(rows), report_text.INTERVALS, _plainly(rows)]
    return '<section>' + ''.join(text) + '</section>'


def _count(value: float) -> int | float:
    return int(value) if value == int(value) else value


def _difference(found: comparison.Difference | None) -> str:
    if found is None:
        return ''
    return f'{found.mean:+.2f} [{found.low:+.2f}, {found.high:+.2f}]'


def _plainly(rows: Sequence[comparison.Row]) -> str:
    """Say of each arm in words whether it helps."""
    said = []
    for row in rows:
        if row.slowdown is not None and row.breaches is not None:
            said.append(f'<li><b>{html.escape(row.arm)}</b>: mean slowdown '
                        f'{row.slowdown.verdict}, VMs in breach {row.breaches.verdict}.</li>')
    return '<p>Against stock Nova, plainly:</p><ul>' + ''.join(said) + '</ul>'


def _where(first: Mapping[str, Mapping[str, Any]], settings: settings_module.Settings,
           seed: int) -> str:
    panels = [(f'{name}', first[name]['vms']) for name in (arms.STOCK, AUDITED) if name in first]
    return (f'<section><h2>Who runs beside whom (seed {seed})</h2>' + report_text.MAP
            + plots.hosts(panels, settings.host_names) + '</section>')


def _refusals(first: Mapping[str, Mapping[str, Any]], seed: int) -> str:
    nowhere: list[list[object]] = []
    elsewhere: list[list[object]] = []
    for name in arms.ARMS:
        for one in first.get(name, {}).get('refusals', ()):
            if one['outcome'] == 'refused':
                worst, everywhere = one['worst'][0], one['breached'] == one['hosts']
                (nowhere if everywhere else elsewhere).append([
                    name, one['vm'], f'{one["breached"]} of {one["hosts"]}',
                    'not placed' if everywhere else 'elsewhere', worst['host'], worst['vm'],
                    worst['response'].replace('_', ' '), worst['predicted_bound'],
                    worst['limit']])
    if not nowhere and not elsewhere:
        return ('<section><h2>Refusals</h2><p>No host was refused to any VM with this seed.</p>'
                '</section>')
    shown = nowhere + elsewhere[:max(_FEW - len(nowhere), 0)]
    rest = (nowhere + elsewhere)[len(shown):]
    text = [f'<section><h2>Refusals (seed {seed})</h2>', report_text.REFUSALS,
            page.table(_REFUSED, shown)]
    if rest:
        text.append(f'<details><summary>{len(rest)} more</summary>{page.table(_REFUSED, rest)}'
                    '</details>')
    return ''.join(text) + '</section>'


def _migration(audit: Mapping[str, Any], settings: settings_module.Settings, seed: int) -> str:
    changed = audit['changed']
    neighbour = changed['neighbour']
    healing = report_text.healing(audit)
    moves = [[str(move['audit']), move['vm'], f'{move["source"]} → {move["destination"]}',
              'the neighbour' if move in healing else 'others',
              move['predicted_gain'],
              '; '.join(f'{vm} {a:.2f} → {b:.2f}' for vm, (a, b) in move['measured'].items())]
             for move in audit['moves']]
    marked = [changed['vm'], neighbour, *(move['vm'] for move in audit['moves'])]
    text = [f'<section><h2>One VM changes, and Watcher audits until it is quiet (seed {seed})'
            '</h2>', report_text.audits(audit)]
    if moves:
        text.append(page.table(('audit', 'VM', 'migrates', 'helps', 'predicted gain',
                                'measured slowdowns, before → after this migration'), moves))
    else:
        text.append('<p>It recommends no migration: none would gain more than it costs.</p>')
    text += [report_text.AFFECTED, page.table(
        ('VM', 'limit', 'before', 'after the change', 'after the audits', 'oracle',
         'in breach'), _affected(audit)),
        _states(audit), _left(audit),
        plots.hosts([('after the change', audit['during']),
                     ('after the audits', audit['after'])], settings.host_names, marked),
        '</section>']
    return ''.join(text)


def _affected(audit: Mapping[str, Any]) -> list[list[object]]:
    """Return a line for each VM whose slowdown or breach is not the same in all states."""
    by_name = {state: {vm['name']: vm for vm in audit[state]} for state in comparison.STATES}
    lines: list[list[object]] = []
    for name in sorted(by_name['before']):
        vms = [by_name[state][name] for state in ('before', 'during', 'after')]
        if len({(vm['slowdown'], vm['in_breach']) for vm in vms}) == 1:
            continue
        who = {audit['changed']['vm']: ' (changed)',
               audit['changed']['neighbour']: ' (its neighbour)'}.get(name, '')
        lines.append([name + who, report_text.limit(vms[0]['flavor']),
                      *(vm['slowdown'] for vm in vms), by_name['oracle'][name]['slowdown'],
                      ' → '.join('yes' if vm['in_breach'] else 'no' for vm in vms)])
    return lines


def _states(audit: Mapping[str, Any]) -> str:
    names = ('before the change', 'after it, and if nothing is done',
             f'after {len(audit["audits"])} audits, {len(audit["moves"])} migrations',
             f'the oracle’s best, {audit["oracle_migrations"]} migrations')
    scores = [outcome.score(audit[state]) for state in comparison.STATES]
    return page.table(('', 'mean slowdown', 'worst slowdown', 'VMs in breach'),
                      [[name, one.mean_slowdown, one.worst_slowdown, one.in_breach]
                       for name, one in zip(names, scores)])


def _left(audit: Mapping[str, Any]) -> str:
    if not audit['left']:
        return '<p>No VM is in breach after the audits.</p>'
    return '<p>Still in breach after the audits:</p>' + page.table(
        ('VM', 'beside', 'limit', 'measured slowdown', 'why'),
        [[one['vm'], one['neighbour'], report_text.limit(one['flavor']), one['slowdown'],
          report_text.why_left(one)] for one in audit['left']])


def _predicted(results: Results, truth: truths.Truth) -> str:
    pairs: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for seed in results.values():
        for one in seed.values():
            programs = {vm['name']: vm['program'] for vm in one['vms']}
            for vm in one['vms']:
                if vm['neighbour'] is not None and 'predicted_slowdown' in vm:
                    pairs.setdefault((vm['program'], programs[vm['neighbour']]), []).append(vm)
    vms = [vm for group in pairs.values() for vm in group]
    if not vms:
        return ''
    ratio = np.array([vm['predicted_slowdown'] / vm['slowdown'] for vm in vms])
    inside = np.mean([vm['predicted_low'] <= vm['slowdown'] <= vm['predicted_high']
                      for vm in vms])
    dots = [{'count': len(group), **{name: float(np.mean([vm[name] for vm in group])) for name in (
        'slowdown', 'predicted_slowdown', 'predicted_low', 'predicted_high')}}
        for group in pairs.values()]
    return ('<section><h2>Predicted against measured</h2>' + report_text.predicted(
        len(vms), len(pairs), float(np.abs(ratio - 1).mean()), float((ratio - 1).mean()),
        float(inside))
        + f'<div class="pair">{plots.scatter(dots)}{plots.matrix(truth)}</div></section>')
