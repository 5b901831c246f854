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

"""``openstack interference ledger``: moves, predicted and measured."""

from __future__ import annotations

import argparse
from typing import Any, Iterator

from osc_lib.command import command

from tracon_watcher import numerals
from tracon_watcher.osc import columns

_WEEKS = ('Week', 'Moves', 'Helped', 'Did Not Help', 'Unknown', 'Predicted Gain', 'Measured Gain',
          'VM Hours Avoided')
_MOVES = ('Ended', 'VM', 'From', 'To', 'Slowdowns', 'Predicted Gain', 'Measured Gain', 'Verdict',
          'VM Hours Avoided')


_REMEDIES = ('At', 'Remedy', 'VM', 'From', 'To', 'Slowdown', 'Throttled')


class Ledger(command.Lister):
    """Show by week what live migrations of audits were predicted to gain, and the measured gain

    VM Hours Avoided is the time that VMs would have been beyond their slowdown limits without the
    migrations, less the time that they were, with bounds. The first part is a prediction: it
    cannot be measured. Gains are in log slowdown, summed over the VMs concerned. With --vm it
    shows what was done for one VM, in order of time, and the VM's slowdown before and after.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('--weeks', metavar='<number>', type=numerals.whole(1, 520), default=12,
                            help='Number of weeks up to now (default: 12)')
        what = parser.add_mutually_exclusive_group()
        what.add_argument('--moves', action='store_true',
                          help='Show each migration, not the sums by week')
        what.add_argument('--vm', metavar='<vm>',
                          help='Show the remedies for this VM, by name or uuid: background work '
                               'throttled, placements refused, background VMs removed, VMs '
                               'migrated')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Iterator[Any]]:
        client = self.app.client_manager.interference
        found = client.show(
            'ledger', weeks=parsed_args.weeks, moves='true' if parsed_args.moves else None,
            vm=None if parsed_args.vm is None else client.uuid_of(parsed_args.vm))['ledger']
        if parsed_args.vm is not None:
            return _REMEDIES, map(_remedy, found['remedies'])
        if parsed_args.moves:
            return _MOVES, (_move(one) for one in found['moves'])
        return _WEEKS, (_week(one) for one in found['weeks'])


def _week(one: dict[str, Any]) -> tuple[Any, ...]:
    return (one['week'], one['moves'], one['helped'], one['did_not_help'], one['unknown'],
            *_gains(one), _avoided(one['avoided'], one['without_limits']))


def _move(one: dict[str, Any]) -> tuple[Any, ...]:
    return (one['ended_at'], columns.vm(one['vm']), one['source'], one['destination'],
            columns.lines(one['slowdowns'], _slowdown), *_gains(one), one['verdict'],
            _avoided(one['avoided']))


def _throttled(episode: dict[str, Any] | None) -> columns.Value:
    if episode is None:
        return columns.text(None)
    limits = ' → '.join(columns.NONE if value is None else f'{value:.4g}'
                        for value in (episode['before'], episode['least']))
    told = f'{limits} {episode["unit"]}' if episode['unit'] else 'groups paused'
    return columns.Value(episode, f'{episode["resource"]}: {told}, '
                                  f'until {episode["until"] or columns.NONE}')


def _remedy(one: dict[str, Any]) -> tuple[Any, ...]:
    before, after, *measured = (columns.number(value).human_readable()
                                for value in (one['before'], one['after'], *one['measured']))
    told = columns.NONE if one['before'] is one['after'] is None else (
        f'{before} → {"would have been " if one["remedy"] == "refuse" else ""}{after}')
    if measured:
        told += f', measured {", ".join(measured)}'
    episode = one.get('episode')
    if episode and episode['reason']:
        told += f' ({episode["reason"]})'
    return (one['at'], one['remedy'],
            # Groups are throttled, not VMs.
            columns.text(None) if episode else columns.vm(one['vm']),
            columns.text(one['host']), columns.text(one['destination']),
            columns.Value({name: one[name] for name in ('before', 'after', 'measured')}, told),
            _throttled(episode))


def _gains(one: dict[str, Any]) -> tuple[columns.Value, columns.Value]:
    return columns.number(one['gain']['predicted']), columns.number(one['gain']['measured'])


def _avoided(found: dict[str, Any], unknown: int = 0) -> columns.Value:
    """Return hours with their bounds.

    :param unknown: number of moves that they leave out
    """
    hours, low, high = (found[name] for name in ('hours', 'lower', 'upper'))
    if hours is None:
        return columns.Value(found, columns.NONE)
    return columns.Value(found, f'{hours:.1f} ({low:.1f} to {high:.1f})' + (
        f', {unknown} moves unknown' if unknown else ''), hours)


def _slowdown(one: dict[str, Any]) -> str:
    measured = ', '.join(columns.number(value).human_readable() for value in one['measured'])
    return (f'{columns.name(one["vm"])}: {one["before"]:.2f} → {one["after"]:.2f}, '
            f'measured {measured or columns.NONE}')
