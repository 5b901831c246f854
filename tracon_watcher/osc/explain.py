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

"""``openstack interference explain``: why a VM is where it is, and why an audit moves no more."""

from __future__ import annotations

import argparse
import textwrap
from typing import Any, Iterator

from osc_lib.command import command

from tracon_watcher import numerals
from tracon_watcher.osc import columns

COLUMNS = ('Rank', 'Host', 'Verdict', 'Slowdown', 'IOPS Ratio', 'Harm')
#: Sentences, which stand below a table.
_SENTENCES = ('Why', 'What Would Differ')
_LONG = ('Decision', 'VM', 'Mode', 'Weight', 'Residents')
#: Of an audit: what was considered beyond its moves.
_AUDIT = ('Host', 'In Breach', 'VM', 'To', 'Against', 'Why')
_AUDIT_LONG = ('Harm', 'Ends')
#: What a tenant is told: nothing of hosts or of other VMs.
_OWN = ('VM', 'At', 'Considered', 'Refused', 'For Its Own Limit', 'For Another VM\'s', 'Rank',
        'Slowdown', 'IOPS Ratio')


class Report(command.Lister):
    """A list with sentences below its table."""

    _below: list[str] = []

    def produce_output(self, parsed_args: argparse.Namespace, column_names: Any,
                       data: Any) -> int:
        """Write the table, and below it what there is to say of each host."""
        code = super().produce_output(parsed_args, column_names, data)
        for line in self._below:
            self.app.stdout.write(textwrap.fill(line, 86, subsequent_indent='  ') + '\n')
        return int(code)


class Explain(Report):
    """Explain a placement, or why an audit moves no more

    For a placement it shows the prediction on each host, the reasons, and the changes that would
    have let the host pass. For an audit it shows the VMs left in breach, each move considered, and
    the obstacles to it. For a VM without a recorded decision, and with --now, it shows what a
    placement would be now; the present host then counts as chosen.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument('request_or_vm', metavar='<request-or-vm>', nargs='?',
                          help='Id of a request (req-…), or name or uuid of a VM')
        what.add_argument('--audit', metavar='<audit>',
                          help='Uuid of an audit of Watcher\'s, or "latest"')
        parser.add_argument('--now', action='store_true',
                            help='Assess the VM now, regardless of recorded decisions')
        parser.add_argument('--decisions', metavar='<number>', type=numerals.whole(1, 10),
                            default=1,
                            help='Number of latest decisions to explain, up to 10 (default: 1)')
        parser.add_argument('--host', metavar='<host>', help='Show only this host')
        parser.add_argument('--long', action='store_true', help='Show more columns')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        client, wanted = self.app.client_manager.interference, parsed_args.request_or_vm
        if parsed_args.audit is not None:
            return self._audit(client.show('audits', parsed_args.audit)['audit'], parsed_args)
        found = client.show(
            'explanations', wanted if wanted.startswith('req-') else client.uuid_of(wanted),
            limit=parsed_args.decisions, now='true' if parsed_args.now else None)['explanations']
        if any('hosts' not in one for one in found):
            return _OWN, (_own(one) for one in found)
        listed = [(one, host) for one in found for host in one['hosts']
                  if parsed_args.host in (None, host['host'])]
        table = parsed_args.formatter == 'table'
        if table:
            for one in found:
                self.app.stdout.write(_head(one) + '\n')
            self._below = [sentences(host) for _one, host in listed]
        return (COLUMNS + _SENTENCES * (not table) + _LONG * parsed_args.long,
                ((*row(host), *(
                    (host['why'], host['what_would_differ']) if not table else ()),
                    *(_more(one, host) if parsed_args.long else ())) for one, host in listed))

    def _audit(self, audit: dict[str, Any],
               parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        table = parsed_args.formatter == 'table'
        if table:
            self.app.stdout.write(_told(audit) + '\n')
        hosts = [one for one in audit['hosts'] if parsed_args.host in (None, one['host'])]
        return _AUDIT + _AUDIT_LONG * parsed_args.long, (
            _option(host, option, table and place > 0, parsed_args.long)
            # A host of which too little is known has no options.
            for host in hosts for place, option in enumerate(host['options'] or [_NOTHING]))


#: In the place of options, where there are none.
_NOTHING = {'vm': None, 'ends': [], 'destination': None, 'hosts': 0, 'against': 'unknown',
            'why': 'too little is known of the host'}


def _told(audit: dict[str, Any]) -> str:
    """Return what there is to say of an audit as a whole."""
    before, after = audit['before'], audit['after']
    return '\n'.join([
        f'audit {audit["audit"]} at {audit["at"]}',
        *(f'moves {columns.name(one["vm"])} from {one["source"]} to {one["destination"]}'
          for one in audit['moves']),
        *(f'removes background VM {columns.name(one["vm"])} from {one["host"]}'
          + (f', so that VM {one["request"]}, which found no host, fits there'
             if one.get('request') else '')
          for one in audit.get('removals', ())),
        f'VMs in breach: {before["in_breach"]:.0f} before, {after["in_breach"]:.0f} after its '
        f'{len(audit["moves"])} live migrations', textwrap.fill(audit['reason'], 86)])


def _option(host: dict[str, Any], option: dict[str, Any], again: bool,
            long: bool) -> tuple[Any, ...]:
    """Return a row.

    :param again: whether the row above is of the same host
    """
    breaches = [] if again else host['breaches']
    to = option['destination']
    more = f' and {option["hosts"] - 1} more' if option['hosts'] > 1 else ''
    row = ('' if again else host['host'],
           columns.lines(breaches, _breach) if breaches else columns.Value(breaches, ''),
           columns.vm(option['vm']), columns.Value({'host': to, 'hosts': option['hosts']},
                                                   f'{to}{more}' if to else 'anywhere'),
           option['against'], columns.Value(option['why'], textwrap.fill(option['why'], 44)))
    return row if not long else (
        *row, columns.number(host['harm'], 3), columns.lines(option['ends'], columns.name))


def _breach(one: dict[str, Any]) -> str:
    sign = '>' if one['response'] == 'slowdown' else '<'
    return (f'{columns.name(one["vm"])}: {one["response"]} {one["value"]:.2f} {sign} '
            f'{one["limit"]:.2f}')


def _head(one: dict[str, Any]) -> str:
    """Return what there is to say of a decision as a whole."""
    newcomer = one['newcomer'] or {}
    said = [f'VM {one["name"] or ""} {one["vm"]}'.replace('  ', ' '),
            f'{one["operation"]} at {one["at"] or "an unknown time"}'
            + (f', request {one["request"]}' if one['request'] else ''),
            f'outcome: {one["outcome"]}; {one["considered"]} hosts considered, '
            f'{one["refused"]} refused, {one["unknown"]} unknown',
            f'its demand was taken from: {newcomer.get("source") or "nothing"}']
    if one['judged_again'] != 'yes':
        said.append(f'judged again to see what would have differed: {one["judged_again"]}')
    return '\n'.join(said)


def sentences(host: dict[str, Any]) -> str:
    """Return the reasons of a host, and what would have let it pass."""
    return f'{host["host"]}: {host["why"]} {host["what_would_differ"]}'.strip()


def row(host: dict[str, Any]) -> tuple[Any, ...]:
    """Return the values of :data:`COLUMNS`."""
    return (columns.text(host['rank']), host['host'], _verdict(host), _interval(host['slowdown']),
            _interval(host['iops_ratio']), columns.number(host['score'], 3))


def _more(one: dict[str, Any], host: dict[str, Any]) -> tuple[Any, ...]:
    return (columns.text(one['id']), one['vm'], columns.text(host['mode']),
            columns.number(host['weight'], 3), columns.lines(host.get('residents', []), resident))


def _own(one: dict[str, Any]) -> tuple[Any, ...]:
    chosen, reasons = one['chosen'] or {}, one['refused_because_of']
    return (one['vm'], columns.text(one['at']), columns.text(one['considered']),
            columns.text(one['refused']), reasons['own_limit'], reasons['limit_of_another_vm'],
            columns.text(chosen.get('rank')), _interval(chosen.get('slowdown')),
            _interval(chosen.get('iops_ratio')))


def _verdict(host: dict[str, Any]) -> str:
    if host['chosen']:
        return 'chosen'
    if host['refused']:
        return 'refused'
    return 'ranked' if host['status'] == 'known' else str(host['status'] or 'unknown')


def _interval(found: list[float | None] | None) -> columns.Value:
    if not found or any(value is None for value in found):
        return columns.Value(found, columns.NONE)
    low, mean, high = (float(value or 0) for value in found)
    return columns.Value(found, f'{mean:.2f} ({low:.2f}–{high:.2f})', mean)


def resident(one: dict[str, Any]) -> str:
    """Return the slowdown of a resident before and after."""
    name = one.get('name') or one['vm']
    before, after = one['slowdown']
    if before is None or after is None:
        return f'{name}: {columns.NONE}'
    return f'{name}: {before:.2f} → {after:.2f}'
