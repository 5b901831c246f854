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
from typing import Mapping

from tracon_watcher.demo import settings as settings_module
from tracon_watcher import page

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
            f'<p class="lead">{settings.vms} VMs arrive one by one at {settings.hosts} hosts of '
            f'two slots. A real nova-scheduler places them, once as it comes and four times with '
            f'tracon-watcher; {count}. What VMs do to each other was measured between real '
            f'virtual machines, host type <b>{where}</b>'
            f'{_measured(header)}.{device}</p>{synthetic}')


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
            'would, if the bounds were exact). The models were fitted to other measurements than '
            'the pairs to the right, which are the truth that everything here is judged '
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
{max(settings.vms - settings.hosts, 0)} join.</li>
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
