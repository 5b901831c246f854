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

"""Cells of tables: numbers that may be unknown, links, shares as bars."""

from __future__ import annotations

import datetime
from typing import Any

from django import urls
from django.utils import dateparse
from django.utils import html
from django.utils import timesince
from django.utils import timezone
from django.utils.translation import gettext as _

#: What is not known.
NONE = '–'


def number(value: float | None, decimals: int = 2, suffix: str = '') -> str:
    """Return a number for people."""
    # A template says '' for what a document lacks.
    return NONE if value in (None, '') else f'{value:.{decimals}f}{suffix}'


def minutes(seconds: float | None) -> str:
    """Return a duration in minutes."""
    return NONE if seconds is None else _('%d min') % round(seconds / 60)


def share(value: float | None) -> str:
    """Return a share in per cent."""
    return NONE if value is None else f'{100 * value:.0f} %'


def interval(found: dict[str, Any]) -> str:
    """Return what is predicted, with its bounds."""
    if found['predicted'] is None:
        return NONE
    if found['lower'] is None or found['upper'] is None:
        return number(found['predicted'])
    return f'{found["predicted"]:.2f} ({found["lower"]:.2f}–{found["upper"]:.2f})'


def observed(found: dict[str, Any]) -> str:
    """Return what counters show, with its error."""
    value, error = found['observed'], found['observed_error']
    if value is None or error is None:
        return number(value)
    return f'{value:.2f} ± {value * error:.2f}'


def vm_link(found: dict[str, Any] | None) -> str:
    """Return a link to a VM; only its name where it is not said which it is."""
    if found is None:
        return NONE
    name = found['name'] or found['uuid'] or NONE
    if not found.get('uuid'):
        return html.escape(name)
    return html.format_html('<a href="{}">{}</a>', urls.reverse(
        'horizon:admin:interference_vms:detail', args=(found['uuid'],)), name)


def host_link(name: str | None) -> str:
    """Return a link to a host."""
    if not name:
        return NONE
    return html.format_html('<a href="{}">{}</a>', urls.reverse(
        'horizon:admin:interference_hosts:detail', args=(name,)), name)


def culprit(found: dict[str, Any] | None) -> str:
    """Return who causes most of a slowdown, and how much of it."""
    if found is None:
        return NONE
    return html.format_html('<span class="tracon-culprit">{} <span class="tracon-share">{}</span>'
                            '</span>', vm_link(found), share(found['share']))


def own_culprits(found: dict[str, Any]) -> str:
    """Return which VMs of its own project slow a VM down, and whether others do."""
    # The list of all VMs names one, the page of a single VM all.
    blamed = found.get('culprits', [found['culprit']] if found['culprit'] else [])
    own = [html.format_html('<a href="{}">{}</a> {}', urls.reverse(
        'horizon:project:interference:detail', args=(one['uuid'],)),
        one['name'] or one['uuid'], share(one['share'])) for one in blamed
        if one['uuid'] and one.get('project_id', found['project_id']) == found['project_id']]
    others = [] if len(own) == len(blamed) else [_('VMs of other projects')]
    return html.format_html_join(', ', '{}', ((one,) for one in own + others)) or NONE


def limit(found: dict[str, Any]) -> str:
    """Return a VM's limit, marked where it is crossed."""
    value = found['limits']['max_slowdown']
    if found.get('background'):
        return str(_('background'))
    if not found['in_breach']:
        return number(value)
    return html.format_html('{} <span class="label tracon-bad">{}</span>', number(value),
                            _('crossed'))


def share_bar(value: float | None) -> str:
    """Return a share with a bar before it."""
    if value is None:
        return NONE
    return html.format_html(
        '<span class="tracon-nowrap"><span class="tracon-bar" aria-hidden="true">'
        '<span style="width: {}%"></span></span>{}</span>',
        round(100 * max(0.0, min(value, 1.0))), share(value))


def status(name: str) -> str:
    """Return what is known of a host as a label."""
    kind = 'good' if name == 'known' else 'caution'
    return html.format_html('<span class="label tracon-{}">{}</span>', kind,
                            name.replace('_', ' '))


def state(name: str) -> str:
    """Return the state of a plan or an action as a label."""
    kind = {'SUCCEEDED': 'good', 'FAILED': 'bad'}.get(name, 'caution')
    return html.format_html('<span class="label tracon-{}">{}</span>', kind, name.lower())


def words(name: str) -> str:
    """Return a word of the API's as words of people."""
    return name.replace('_', ' ')


def span(seconds: float) -> str:
    """Return how long something takes."""
    start = timezone.now()
    return timesince.timesince(start - datetime.timedelta(seconds=seconds), start)


def age(moment: str | None) -> str:
    """Return how long ago an ISO time was."""
    found = dateparse.parse_datetime(moment or '')
    return NONE if found is None else timesince.timesince(found)
