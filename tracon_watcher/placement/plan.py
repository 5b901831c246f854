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

"""Plan of moves, and the result of an audit as a document."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Mapping

import numpy as np

from tracon_watcher.characteristics import BoolArray
from tracon_watcher import document
from tracon_watcher import errors
from tracon_watcher.placement import assessment
from tracon_watcher.placement import placement_constraints


@dataclasses.dataclass(frozen=True)
class Parameters:
    """How bold a plan may be. Gains and costs are log responses: sums over VMs of log slowdown and
    −log IOPS ratio; 0.05 is one VM becoming 5 % faster.

    The default cost is what a live migration itself does: about two minutes in which the VM and
    two neighbours run at half their speed, 3 × log 2 × 120 s ≈ 250 log response seconds, spread
    over the hour that the default cooldown makes a VM stay where it was put.

    :param max_migrations: moves in one plan at most
    :param min_gain: what a move must bring beyond its cost
    :param migration_cost: what a move costs
    :param destinations: destinations that are judged exactly for each VM
    :param candidates: VMs after which the search for one move ends, found or not
    :param noise: by which share profiles may be off when nothing has changed. A move that ends no
        breach must bring more than what this could feign; 0 where profiles are exact
    :param explained: hosts of which it is told what the plan leaves, and why
    :param standstill: why nothing may move now; the plan then has no move. Empty: it may
    """

    max_migrations: int = 5
    min_gain: float = 0.05
    migration_cost: float = 0.07
    destinations: int = 3
    candidates: int = 800
    noise: float = 0.0
    explained: int = 0
    standstill: str = ''

    def __post_init__(self) -> None:
        for name in ('max_migrations', 'destinations', 'candidates'):
            if getattr(self, name) < 1:
                raise errors.InvalidOption(name, getattr(self, name), 'expected 1 or more')
        for name in ('min_gain', 'migration_cost', 'noise'):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise errors.InvalidOption(name, value, 'expected a number not below 0')


@dataclasses.dataclass(frozen=True)
class PredictedEffect:
    """What a move is predicted to do to one VM. An IOPS ratio is NaN where it is undefined.

    :param bounds_before: one-sided confidence bounds of its slowdown, the lower one first
    """

    uuid: str
    slowdown_before: float
    slowdown_after: float
    iops_ratio_before: float
    iops_ratio_after: float
    breach_before: bool
    breach_after: bool
    bounds_before: tuple[float, float]
    bounds_after: tuple[float, float]

    @property
    def relief(self) -> float:
        """By how many log responses its slowdown and IOPS ratio get better."""
        relief = math.log(self.slowdown_before / self.slowdown_after)
        ratio = math.log(self.iops_ratio_after / self.iops_ratio_before)
        return relief if math.isnan(ratio) else relief + ratio


@dataclasses.dataclass(frozen=True)
class Move:
    """One live migration.

    :param gain: log responses by which the predicted harm of all VMs falls together; the cost is
        not taken off yet
    :param cost: of the migration itself
    :param ended: breaches that it ends
    :param relieves: uuids of the VMs whose breach it ends; if none, of the VM it helps most
    :param changes: the VM and its co-residents on both hosts
    :param after: places, in the plan, of earlier moves that must have ended before this one starts
    """

    uuid: str
    source: str
    destination: str
    gain: float
    cost: float
    ended: int
    relieves: tuple[str, ...]
    changes: tuple[PredictedEffect, ...]
    after: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True)
class Breach:
    """A VM whose limit is crossed.

    :param response: ``slowdown`` or ``IOPS ratio``
    :param value: that is predicted
    """

    uuid: str
    response: str
    value: float
    limit: float


@dataclasses.dataclass(frozen=True)
class Option:
    """A move that was considered and is not made.

    :param uuid: the VM that would leave its host
    :param ends: uuids of those whose breach would end
    :param destination: where it would go; None for anywhere
    :param hosts: how many hosts this is said of, the one that is named among them
    :param obstacle: what stands against it
    """

    uuid: str
    ends: tuple[str, ...]
    destination: str | None
    hosts: int
    obstacle: placement_constraints.Obstacle


@dataclasses.dataclass(frozen=True)
class Remainder:
    """What is left on a host when a plan ends.

    :param harm: of its VMs, in log responses
    :param options: to lessen it; empty where too little is known of the host
    """

    host: str
    harm: float
    breaches: tuple[Breach, ...]
    options: tuple[Option, ...]


@dataclasses.dataclass(frozen=True)
class Outlook:
    """A cluster's predicted interference, over the VMs of which something is known."""

    vms: int
    in_breach: int
    mean_slowdown: float
    worst_slowdown: float
    harm: float


@dataclasses.dataclass(frozen=True)
class Removal:
    """A background VM that is to leave its host and come to no other one.

    :param ends: uuids of the VMs whose breach ends when all removals from this host are made
    :param request: uuid of the VM that found no host and fits here then; '' for none
    :param slowdowns: of those whose breach ends, before and after all removals from this host
    """

    uuid: str
    host: str
    ends: tuple[str, ...] = ()
    request: str = ''
    slowdowns: tuple[tuple[float, float], ...] = ()


@dataclasses.dataclass(frozen=True)
class Plan:
    """Moves in the order in which they were assessed.

    :param reason: why there are no more moves than these, or none
    :param remainders: of the hosts with most breaches, then most harm, what is left and why
    :param removals: of background VMs, which end breaches that the moves leave, or make room
    """

    moves: tuple[Move, ...]
    reason: str
    before: Outlook
    after: Outlook
    remainders: tuple[Remainder, ...] = ()
    removals: tuple[Removal, ...] = ()


def outlook(assessor: assessment.Assessor, known: BoolArray) -> Outlook:
    """Sum up the residents of the hosts (h,) that are ``known``."""
    slow = assessor.log_responses()[0]
    chosen = known[assessor.cluster.host] & ~np.isnan(slow)
    slowdowns = np.exp(slow[chosen])
    return Outlook(
        int(chosen.sum()), int((assessor.breaches() & chosen).sum()),
        float(slowdowns.mean()) if len(slowdowns) else 1.0,
        float(slowdowns.max(initial=1.0)),
        float(assessor.harm()[:, chosen].sum()))


SCHEMA = 'tracon-audit/1'
_OUTLOOK = ('vms', 'in_breach', 'mean_slowdown', 'worst_slowdown', 'harm')


def audit_document(made: Plan, audit: str, now: float) -> dict[str, Any]:
    """Return the document.

    :param audit: Watcher's uuid
    :param now: seconds since the epoch
    """
    return {
        'schema': SCHEMA, 'audit': audit, 'at': now, 'reason': made.reason,
        'moves': [{'vm': one.uuid, 'source': one.source, 'destination': one.destination}
                  for one in made.moves],
        'removals': [{'vm': one.uuid, 'host': one.host, 'ends': list(one.ends),
                      'effects': [{'vm': vm, 'before': before, 'after': after}
                                  for vm, (before, after) in zip(one.ends, one.slowdowns)],
                      **({'request': one.request} if one.request else {})}
                     for one in made.removals],
        **{name: {field: getattr(outlook, field) for field in _OUTLOOK}
           for name, outlook in (('before', made.before), ('after', made.after))},
        'hosts': [_host(one) for one in made.remainders]}


def _host(left: Remainder) -> dict[str, Any]:
    return {
        'host': left.host, 'harm': left.harm,
        'breaches': [{'vm': one.uuid, 'response': one.response, 'value': one.value,
                      'limit': one.limit} for one in left.breaches],
        'options': [{'vm': one.uuid, 'ends': list(one.ends), 'destination': one.destination,
                     'hosts': one.hosts, 'against': one.obstacle.against.value,
                     'why': one.obstacle.why} for one in left.options]}


def read_audit(content: Any) -> Mapping[str, Any]:
    """Return a document that is whole, without what is not known here.

    :raises tracon_watcher.errors.InvalidDocument: naming the field
    """
    fields = document.Fields('an audit', content)
    return {
        'schema': fields.string('schema', (SCHEMA,)), 'audit': fields.string('audit'),
        'at': fields.number('at', 0), 'reason': fields.string('reason'),
        'moves': [{name: one.string(name) for name in ('vm', 'source', 'destination')}
                  for one in fields.sections('moves')],
        # Audits of earlier releases have none.
        'removals': [{'vm': one.string('vm'), 'host': one.string('host'),
                      'ends': one.strings('ends'),
                      'effects': [{'vm': effect.string('vm'),
                                   **{name: effect.number(name, 0)
                                      for name in ('before', 'after')}}
                                  for effect in (one.sections('effects')
                                                 if one.has('effects') else ())],
                      **({'request': one.string('request')} if one.has('request') else {})}
                     for one in (
                         fields.sections('removals') if fields.has('removals') else ())],
        **{name: {field: fields.section(name).number(field) for field in _OUTLOOK}
           for name in ('before', 'after')},
        'hosts': [{
            'host': one.string('host'), 'harm': one.number('harm'),
            'breaches': [{
                'vm': breach.string('vm'), 'response': breach.string('response'),
                'value': breach.number('value'), 'limit': breach.number('limit')}
                for breach in one.sections('breaches')],
            'options': [_option(option) for option in one.sections('options')]}
            for one in fields.sections('hosts')]}


def _option(fields: document.Fields) -> dict[str, Any]:
    return {
        'vm': fields.string('vm'), 'ends': fields.strings('ends'),
        'destination': fields.string('destination') if fields.has('destination') else None,
        'hosts': int(fields.number('hosts', 0)),
        'against': fields.string('against', [one.value for one in placement_constraints.Against]),
        'why': fields.string('why')}
