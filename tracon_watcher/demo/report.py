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

from tracon_watcher.demo import arms
from tracon_watcher.demo import comparison
from tracon_watcher.demo import outcome
from tracon_watcher.demo import plots
from tracon_watcher.demo import report_text
from tracon_watcher.demo import settings as settings_module
from tracon_watcher import page
from tracon_watcher.simulator import truth as truths

AUDITED = 'enforce, history'
_REFUSED = ('arm', 'VM', 'hosts refused', 'placed', 'worst host', 'who would breach', 'response',
            'predicted bound', 'limit')
_FEW = 12
Results = Mapping[int, Mapping[str, Mapping[str, Any]]]


def write(path: pathlib.Path, settings: settings_module.Settings, truth: truths.Truth,
          header: Mapping[str, str], results: Results,
          rows: Sequence[comparison.Row]) -> None:
    """Write the report.

    :param header: what the file of measurements says of itself
    :param results: by seed and arm
    """
    seed = min(results)
    first = results[seed]
    audit = first.get(AUDITED, {}).get('audit')
    parts = [report_text.head(settings, header, len(results)), _tiles(rows), _arms(rows, results),
             _where(first, settings, seed), _refusals(first, seed)]
    if 'audit_failure' in first.get(AUDITED, {}):
        parts.append('<section><h2>The audit has failed</h2><p>'
                     + html.escape(first[AUDITED]['audit_failure']) + '</p></section>')
    if audit:
        parts.append(_migration(audit, settings))
    parts += [_predicted(results, truth), report_text.fairness(settings), page.END]
    path.write_text('\n'.join(parts), encoding='utf-8')


def _tiles(rows: Sequence[comparison.Row]) -> str:
    by_name = {row.arm: row for row in rows}
    stock, ours = by_name.get(arms.STOCK), by_name.get(AUDITED)
    if stock is None or ours is None:
        return ''
    tiles = [('Mean slowdown, measured', f'{stock.mean_slowdown:.2f}×',
              f'{ours.mean_slowdown:.2f}×'),
             ('VMs in breach of their limit', f'{stock.in_breach:.3g}', f'{ours.in_breach:.3g}'),
             ('VMs placed', f'{stock.placed:.3g}', f'{ours.placed:.3g}')]
    return '<div class="tiles">' + ''.join(
        f'<div class="tile"><p>{html.escape(name)}</p><b>{before} → {after}</b>'
        f'<small>stock → {AUDITED}</small></div>' for name, before, after in tiles) + '</div>'


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


def _migration(audit: Mapping[str, Any], settings: settings_module.Settings) -> str:
    changed = audit['changed']
    states = [audit[name] for name in ('before', 'after_change', 'after')]
    scores = [outcome.score(state) for state in states]
    at = [{vm['name']: vm['slowdown'] for vm in state} for state in states]
    moves = [[move['vm'], move['source'], move['destination'], move['predicted_gain'],
              '; '.join(f'{vm} {a:.2f} → {b:.2f}' for vm, (a, b) in move['predicted'].items()),
              '; '.join(f'{vm} {at[1][vm]:.2f} → {at[2][vm]:.2f}' for vm in move['predicted'])]
             for move in audit['moves']]
    marked = [changed['vm'], *(move['vm'] for move in audit['moves'])]
    text = ['<section><h2>One VM changes its behaviour, and Watcher audits</h2>',
            f'<p><b>{changed["vm"]}</b> on {changed["host"]} turns from {changed["from"]} to '
            f'<b>{changed["to"]}</b>. Its neighbour {changed["neighbour"]} is slowed down '
            f'{at[0][changed["neighbour"]]:.2f} times before, '
            f'{at[1][changed["neighbour"]]:.2f} times afterwards, and '
            f'{at[2][changed["neighbour"]]:.2f} times after the audit. The snapshot is written '
            'anew, and a Watcher audit of the goal <i>interference</i> runs on Nova’s own '
            'cluster model. ']
    if moves:
        text += ['It recommends the live migrations below, and Watcher’s applier carries them '
                 'out through Nova’s API.</p>',
                 page.table(('VM', 'from', 'to', 'predicted gain', 'predicted slowdowns',
                             'measured slowdowns, whole plan'), moves)]
    else:
        text.append('It recommends no migration: none would gain more than it costs.</p>')
    phases = ('before the change', 'after the change', 'after the action plan')
    text += [page.table(('', 'mean slowdown', 'worst slowdown', 'VMs in breach'),
                        [[name, one.mean_slowdown, one.worst_slowdown, one.in_breach]
                         for name, one in zip(phases, scores)]),
             plots.hosts([('after the change', states[1]), ('after the action plan', states[2])],
                         settings.host_names, marked), '</section>']
    return ''.join(text)


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
