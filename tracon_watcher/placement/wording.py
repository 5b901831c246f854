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

"""A host of an explanation in sentences: why it is refused or ranked there, what would differ."""

from __future__ import annotations

from typing import Any, Callable, Mapping

from tracon_watcher.placement import verdict

_RESPONSES = {'slowdown': 'slowdown', 'iops_ratio': 'IOPS ratio'}
_UNKNOWN = {
    'unknown_cores': 'it is not known how many cores its VMs share',
    'stale': 'its data is stale',
    'unknown_profile': 'nothing is known of a VM there, or of this one',
    'unknown_storage': 'its storage is unknown',
    'unknown_host': 'no telemetry of it has come yet',
    'drifted': 'measurements and predictions have parted ways on hosts of its type'}

#: Returns what a VM is called, given its uuid.
Call = Callable[[str], str]


def why(host: Mapping[str, Any], call: Call = str) -> str:
    """Say why a host of an explanation is where it is, in one or two sentences.

    :param host: of the document of :func:`tracon_watcher.placement.explanation.explain`
    :param call: what a VM is called
    """
    reason = _UNKNOWN.get(str(host['status']))
    if reason is not None:
        return f'unknown: {reason}; such a host ranks by the median of the others.'
    place = 'chosen' if host['chosen'] else 'not chosen'
    if host['rank'] is not None:
        place += f', rank {host["rank"]}'
    said = []
    worst = host['worst']
    if host['refused']:
        said.append(f'refused: {_breach(worst, call)}' if _is_breach(worst) else 'refused')
    elif _is_breach(worst) and host['would_pass']:
        said.append(f'{place}, though {_breach(worst, call)}')
    else:
        said.append(place)
    behind = host['behind']
    if behind is not None and not host['refused']:
        said[0] += (f'; harm {host["score"]:.3f}, {abs(behind):.3f} '
                    f'{"more" if behind >= 0 else "less"} than on the chosen host')
    elif host['score'] is not None:
        said[0] += f'; harm {host["score"]:.3f}'
    most = host['most']
    if most is not None:
        said.append(f'{call(most["vm"])} accounts for {most["part"]:.3f} of it' + (
            ', and without it this host would be ahead' if most['ahead_without'] else ''))
    return '. '.join(said) + '.'


def what_would_differ(host: Mapping[str, Any], call: Call = str) -> str:
    """Say what would have let a host pass; empty for one on which no limit is breached."""
    passing = host['would_pass']
    if passing is None:
        return ''
    # Rounded to the side on which it passes.
    wanted = [f'{_RESPONSES[one["response"]]} limit of {_of(one["vm"], call)} '
              + (f'at {one["needed"] + 0.005:.2f} or more' if one['response'] == 'slowdown'
                 else f'at {max(one["needed"] - 0.0005, 0.0):.3f} or less')
              for one in passing['limits'] if one['needed'] is not None]
    said = []
    if wanted:
        said.append('It would have passed with the ' + ' and the '.join(wanted)
                    + ('' if passing['complete'] else ', as far as was recorded'))
    without = passing['without']
    if without:
        said.append('It would have passed without ' + ' or without '.join(
            call(vm) for vm in without))
    elif without is not None:
        said.append('No single VM\'s absence would have let it pass')
    return ''.join(f'{one}. ' for one in said).strip()


def _is_breach(worst: Mapping[str, Any] | None) -> bool:
    # Of hosts on which no limit is breached the VM harmed most is recorded, without a limit.
    return worst is not None and worst.get('bound') is not None and worst.get('limit') is not None


def _breach(worst: Mapping[str, Any], call: Call) -> str:
    response = worst['response']
    way = 'at least' if response == 'slowdown' else 'at most'
    text = (f'the {_RESPONSES[response]} of {_of(worst["vm"], call)} would be {way} '
            f'{worst["bound"]:.2f}, beyond its limit {worst["limit"]:.2f}')
    if worst.get('before') is not None and worst.get('after') is not None:
        text += f' (expected: {worst["after"]:.2f}, now {worst["before"]:.2f})'
    return text


def _of(vm: str, call: Call) -> str:
    return 'the VM itself' if vm == verdict.NEWCOMER else call(vm)
