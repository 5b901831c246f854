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

"""The parameters of an audit: their JSON schema, their defaults, and what they mean."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping

from tracon_watcher.decision_engine import blackout
from tracon_watcher.decision_engine import rules
from tracon_watcher.placement import cooldown
from tracon_watcher.placement import plan

_DEFAULT = plan.Parameters()
#: Hosts of which an audit tells what it left.
_EXPLAINED = 20

# Python's json module reads NaN, which passes every "minimum" and "maximum". Only NaN passes two
# that contradict each other.
_FINITE: dict[str, Any] = {'type': 'number', 'not': {
    'description': 'NaN, which is no number: state a finite one, or leave the parameter out',
    'minimum': 1, 'maximum': 0}}

#: Draft 4, as Watcher validates it. Watcher itself refuses parameters that are not named here.
SCHEMA: dict[str, Any] = {
    'properties': {
        'max_migrations': {
            'description': 'Live migrations in one action plan at most.',
            'type': 'integer', 'minimum': 1, 'maximum': 1000,
            'default': _DEFAULT.max_migrations},
        'min_gain': {
            'description': 'What a migration must bring beyond its cost: the sum over all VMs of '
                           'log slowdown and -log IOPS ratio must fall by more. 0.05 is one VM '
                           'becoming 5 % faster.',
            **_FINITE, 'minimum': 0, 'maximum': 100, 'default': _DEFAULT.min_gain},
        'migration_cost': {
            'description': 'What a live migration costs, in the same unit. The default is two '
                           'minutes at half speed for the VM and two neighbours, spread over '
                           'an hour.',
            **_FINITE, 'minimum': 0, 'maximum': 100, 'default': _DEFAULT.migration_cost},
        'noise': {
            'description': 'By which share profiles may be off though no VM has changed: a '
                           'migration that ends no breach must bring more than this could '
                           'feign. Larger where telemetry is coarse; 0 where it is exact.',
            **_FINITE, 'minimum': 0, 'maximum': 1, 'default': 0.1},
        'cooldown_seconds': {
            'description': 'Seconds for which a VM stays where it is after a migration, '
                           'regardless of who ordered it, and after a migration of '
                           'Watcher\'s that failed. Each further migration within a day '
                           'doubles them, up to six hours.',
            **_FINITE, 'minimum': 0, 'maximum': 2592000, 'default': cooldown.FIRST},
        'excluded_projects': {
            'description': 'Ids of projects whose VMs stay where they are.',
            'type': 'array', 'items': {'type': 'string', 'minLength': 1}, 'default': []},
        blackout.NAME: {
            'description': 'Hours in which nothing moves: audits still judge and tell what they '
                           'find. UTC, unless a window names a time zone.',
            'type': 'array', 'items': {
                'description': blackout.REMEDY, 'type': 'string', 'pattern': blackout.PATTERN},
            'default': []},
        'opt_out_key': {
            'description': 'A VM with this key in its metadata stays where it is, unless the '
                           'value says no (false, no, off, 0).',
            'type': 'string', 'minLength': 1, 'default': 'tracon:exclude'},
        'confidence': {
            'description': 'Probability of the one-sided bound that must cross a limit before '
                           'this counts as a breach.',
            **_FINITE, 'minimum': 0.5, 'maximum': 0.975, 'default': 0.8},
        'snapshot_file': {
            'description': 'A file with the snapshot to judge by. Empty: what the options of '
                           'group [tracon] in watcher.conf say.',
            'type': 'string', 'default': ''},
    },
}


@dataclasses.dataclass(frozen=True)
class Audit:
    """The parameters, each where it belongs."""

    planning: plan.Parameters
    wishes: rules.Wishes
    confidence: float
    snapshot_file: str

    @classmethod
    def of(cls, given: Mapping[str, Any], now: float) -> Audit:
        """Sort validated and completed parameters.

        :param now: seconds since the epoch
        :raises tracon_watcher.errors.InvalidOption: for a blackout window that the schema passes
        """
        windows = [blackout.Window.parse(text) for text in given[blackout.NAME]]
        return cls(
            plan.Parameters(given['max_migrations'], given['min_gain'], given['migration_cost'],
                            noise=given['noise'], explained=_EXPLAINED,
                            standstill=blackout.standstill(windows, now)),
            rules.Wishes(frozenset(given['excluded_projects']), given['opt_out_key'],
                         given['cooldown_seconds']),
            given['confidence'], given['snapshot_file'])
