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

"""What the report says in words, and how it looks."""

from __future__ import annotations

import html
import math
from typing import Any, Mapping

from tracon_lab.demo import comparison
from tracon_lab.demo import settings as settings_module
from tracon_lab.demo import workload
from tracon_lab import page

INTERVALS = (
    '<p>Each line is a 95&nbsp;% confidence interval (Student’s t over seeds) of the difference '
    'to stock Nova on the same requests, over the VMs that both have placed. An interval that '
    'contains 0 shows no difference.</p>')

MAP = (
    '<p>A tile is a host, each half a slot with the program that runs there and its measured '
    'slowdown. A red frame marks a VM in breach of its limit.</p>')

REFUSALS = (
    '<p>A host is refused when the bound of the predicted slowdown or IOPS ratio that is '
    'favourable to the VM (one-sided, 80&nbsp;%) still breaks a limit, of the newcomer or of a VM '
    'that is there already. The worst of the refused hosts is shown.</p>')


def head(settings: settings_module.Settings, header: Mapping[str, str], seeds: int) -> str:
    """Return the page's beginning."""
    where = html.escape(settings.host_type)
    emulated = header.get('emulated', 'no')
    device = '' if emulated == 'no' else (' The device is emulated: '
                                          + html.escape(emulated.removeprefix('yes: ')) + '.')
    synthetic = ''
    if 'synthetic' in settings.host_type.lower():
        synthetic = ('<p class="synthetic">These measurements are SYNTHETIC: invented to try the '
                     'demonstration out. Nothing here says anything about real machines.</p>')
    count = 'one seed' if seeds == 1 else f'{seeds} seeds'
    return (page.begin('tracon-watcher: the same VMs, placed with and without it') +
            f'<h1>The same VMs, placed with and without interference in mind</h1>'
            f'<p class="lead">A real nova-scheduler places {settings.vms} VMs on '
            f'{settings.hosts} hosts of two slots, as it comes and with tracon-watcher ({count}). '
            f'What VMs do to each other was measured between real virtual machines, host type '
            f'<b>{where}</b>{_measured(header)}.{device}</p>{synthetic}')


def _measured(header: Mapping[str, str]) -> str:
    said = [html.escape(f'{name} {header[key]}') for key, name in (
        ('qemu', 'QEMU'), ('accelerator', 'accelerator'), ('date', 'measured on'))
        if key in header]
    return f' ({", ".join(said)})' if said else ''


def predicted(count: int, pairs: int, error: float, bias: float, inside: float) -> str:
    """Return what there is to say of predictions.

    :param count: VMs
    :param pairs: pairs of programs among them
    :param error: mean of |predicted − measured| / measured
    :param bias: mean of (predicted − measured) / measured
    :param inside: share of the measured values between the bounds
    """
    return (f'<p>{count} VMs that share a host, in all arms, {pairs} different pairs of programs, '
            f'a dot each: mean error {error:.0%}, bias '
            f'{bias:+.0%}; {inside:.0%} of the measured values lie between the two bounds (60 % '
            'would, if the bounds were exact). Predictions know what each program does alone, and '
            'none of the pairs to the right, which are the truth that everything here is judged '
            'by.</p>')


def fairness(settings: settings_module.Settings) -> str:
    """Return how the comparison was made, and what it leaves open."""
    refused = (
        'VMs for which every host would break a limit are refused '
        '(<code>on_all_refused = refuse</code>); they stand above with their reasons, and count '
        'in no comparison. Their absence spares a neighbour, which favours the arm that refuses.'
        if settings.on_all_refused == 'refuse' else
        'When every host would break a limit, the least harmful one is taken '
        '(<code>on_all_refused = least_harm</code>).')
    return f"""<section><h2>How this was done, and what it leaves open</h2><ul>
<li>Nova’s API, conductor, FilterScheduler and Placement are the real ones, in one process on
SQLite; hypervisors are Nova’s fake driver. Stock means Nova’s default filters and weighers. The
other arms add InterferenceFilter and InterferenceWeigher by configuration alone.</li>
<li>Nova’s RAM weigher spreads, with and without us: the first {settings.hosts} VMs land on
empty hosts, and the arms differ in whom the last
{max(settings.vms - settings.hosts, 0)} join. Which of equally good hosts Nova takes is drawn, with
the seed and the same in all arms; otherwise UUIDs would decide it.</li>
<li>Before the change {settings.departing:.0%} of the VMs end. This leaves some hosts empty, and
room to act: in a cloud with every slot taken, no migration is possible. The VM that changes is
drawn among those whose neighbour it puts in breach; no outcome is looked at. Audits have the
strategy’s default parameters, without a cooldown between them.</li>
<li>All flavors have one size, and there is one image. Programs are drawn from a mix that each of
{settings.projects} projects has of its own (Dirichlet, concentration
{settings.concentration:g}); flavors, and with them limits, are drawn apart from that.</li>
<li><b>history</b>: a newcomer is expected to behave as earlier VMs of its project, flavor and
image did ({settings.history} earlier VMs of the same mixes). Once it runs, its own profile is
known. <b>oracle</b>: history says of each newcomer exactly what it will do; that is the best any
prediction of newcomers could do.</li>
<li>The truth is the measured pair: a VM’s slowdown is that of its program beside its
neighbour’s, the mean of all measurements of the pair; alone it is 1. Programs keep their
behaviour, and pairs start together; real VMs do neither. Two VMs share a host, never
more.</li>
<li>{refused}</li></ul></section>"""


AFFECTED = (
    '<p>Measured slowdowns of every VM that the change or a migration has affected; the oracle '
    'knows all measurements and may migrate as much as it wants.</p>')


def placed(stock: comparison.Row, ours: comparison.Row) -> str:
    """Return a sentence on what placement alone brings."""
    return (f'<b>Placement.</b> With stock Nova, VMs run {stock.mean_slowdown:.2f} times as long '
            f'as alone on average, and {stock.in_breach:.3g} are slower than their flavor '
            f'promises. With tracon-watcher ({html.escape(ours.arm)}) it is '
            f'{ours.mean_slowdown:.2f} times, and {ours.in_breach:.3g}.')


def changed(audit: Mapping[str, Any], seed: int, settings: settings_module.Settings) -> str:
    """Return sentences on the VM that changes, and on what heals its neighbour."""
    who = audit['changed']
    name = who['neighbour']
    before, during, after = slowdowns(audit, name)
    moves = healing(audit)
    helped = ('No migration makes it faster.' if not moves else 'It is helped by the migration of '
              + ' and of '.join(f'{one["vm"]} from {one["source"]} to {one["destination"]}'
                                for one in moves) + '.')
    return (f'<b>Change.</b> Later {len(audit["ended"])} VMs have ended, and {who["vm"]} turns '
            f'from {who["from"]} to {who["to"]} (seed {seed}). Its neighbour {name} was slowed '
            f'down {before:.2f} times, and now is {during:.2f} times. Watcher audits until it '
            f'recommends nothing more: {name} is at {after:.2f}. {helped}')


def gained(found: comparison.Repair) -> str:
    """Return a sentence on what the audits bring, beside doing nothing and the oracle."""
    over = '' if found.seeds == 1 else f' (mean of {found.seeds} seeds)'
    return (f'<b>Repair.</b> VMs in breach{over}: {found.breaches["during"]:.3g} if nothing is '
            f'done, {found.breaches["after"]:.3g} after the audits and '
            f'{found.migrations:.3g} migrations; an oracle that knows all measurements reaches '
            f'{found.breaches["oracle"]:.3g} with {found.oracle_migrations:.3g}. The neighbour is '
            f'healed in {found.healed} of {found.seeds} '
            f'{"seed" if found.seeds == 1 else "seeds"}.')


def audits(audit: Mapping[str, Any]) -> str:
    """Return the paragraph above the table of migrations."""
    counts = ', '.join(str(one['migrations']) for one in audit['audits'])
    end = '' if audit['quiet'] else ' The last one still recommended some; no more were run.'
    return (f'<p>{len(audit["ended"])} VMs have ended ({", ".join(audit["ended"])}). '
            f'<b>{audit["changed"]["vm"]}</b> on {audit["changed"]["host"]} turns from '
            f'{audit["changed"]["from"]} to <b>{audit["changed"]["to"]}</b>. Watcher audits the '
            'goal <i>interference</i> on its model of this Nova, and its applier carries out '
            f'what it recommends; migrations by audit: {counts}.{end}</p>')


def limit(flavor: str) -> str:
    """Return what a flavor promises, in a few characters."""
    limits = workload.FLAVORS[flavor].limits
    if limits.min_iops_ratio > 0:
        return f'IOPS ≥ {limits.min_iops_ratio:.0%}'
    return f'≤ {limits.max_slowdown:g}×' if math.isfinite(limits.max_slowdown) else ''


def slowdowns(audit: Mapping[str, Any], name: str) -> list[float]:
    """Return the measured slowdown of a VM before the change, during it and after the audits."""
    return [next(vm['slowdown'] for vm in audit[state] if vm['name'] == name)
            for state in ('before', 'during', 'after')]


def healing(audit: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the migrations that made the neighbour of the VM that changed faster."""
    name = audit['changed']['neighbour']
    return [move for move in audit['moves'] if name in move['measured']
            and move['measured'][name][1] < move['measured'][name][0]]


def story(audit: Mapping[str, Any]) -> list[str]:
    """Tell in a few sentences what changed, which migrations helped, and what is left."""
    changed = audit['changed']
    name = changed['neighbour']
    before, during, after = slowdowns(audit, name)
    lines = [f'{changed["vm"]} turns from {changed["from"]} to {changed["to"]}; its neighbour '
             f'{name} is slowed down {before:.2f}× before, {during:.2f}× then, {after:.2f}× '
             'after the audits']
    moves = healing(audit)
    if moves:
        lines.append('What helped it: ' + '; '.join(
            f'{move["vm"]} migrates from {move["source"]} to {move["destination"]}'
            for move in moves))
    states = {name: sum(vm['in_breach'] for vm in audit[name]) for name in comparison.STATES}
    lines.append(
        f'VMs in breach: {states["before"]} before, {states["during"]} then, {states["after"]} '
        f'after {len(audit["audits"])} audits with {len(audit["moves"])} migrations; an oracle '
        f'would reach {states["oracle"]} with {audit["oracle_migrations"]}')
    return lines


def repaired(found: comparison.Repair) -> str:
    """Return a sentence on what the audits of several seeds did."""
    return (f'Audits after the change, {found.seeds} seeds: the neighbour is healed in '
            f'{found.healed}; VMs in breach {found.breaches["before"]:.2f} before, '
            f'{found.breaches["during"]:.2f} then and if nothing is done, '
            f'{found.breaches["after"]:.2f} after the audits (oracle '
            f'{found.breaches["oracle"]:.2f}); mean slowdown {found.slowdowns["before"]:.2f}, '
            f'{found.slowdowns["during"]:.2f}, {found.slowdowns["after"]:.2f} (oracle '
            f'{found.slowdowns["oracle"]:.2f}); {found.migrations:.1f} migrations (oracle '
            f'{found.oracle_migrations:.1f})')


def why_left(one: Mapping[str, Any]) -> str:
    """Say why a VM is still in breach after the last audit."""
    oracle = ('The oracle’s assignment avoids it.' if one['oracle_avoids']
              else 'It is in breach in the oracle’s assignment too.')
    if not one['seen']:
        iops = workload.FLAVORS[one['flavor']].limits.min_iops_ratio > 0
        expected = one['predicted_iops_ratio' if iops else 'predicted_slowdown']
        said = 'know nothing of it' if expected is None else (
            f'expect an IOPS ratio of {expected:.0%}' if iops else f'expect {expected:.2f}×')
        return f'Predictions {said}: no breach with 80 % confidence. {oracle}'
    return ('It is predicted, but no single migration that is allowed is worth its cost. '
            + oracle)
