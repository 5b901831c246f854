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

"""What an audit tells of itself, as a document: its moves are others, this is what it left."""

from __future__ import annotations

from typing import Any, Mapping

from tracon_watcher import document
from tracon_watcher.placement import constraints
from tracon_watcher.placement import plan

SCHEMA = 'tracon-audit/1'
_OUTLOOK = ('vms', 'in_breach', 'mean_slowdown', 'worst_slowdown', 'harm')


def to_document(made: plan.Plan, audit: str, now: float) -> dict[str, Any]:
    """Return the document.

    :param audit: Watcher's uuid
    :param now: seconds since the epoch
    """
    return {
        'schema': SCHEMA, 'audit': audit, 'at': now, 'reason': made.reason,
        'moves': [{'vm': one.uuid, 'source': one.source, 'destination': one.destination}
                  for one in made.moves],
        **{name: {field: getattr(outlook, field) for field in _OUTLOOK}
           for name, outlook in (('before', made.before), ('after', made.after))},
        'hosts': [_host(one) for one in made.remainders]}


def _host(left: plan.Remainder) -> dict[str, Any]:
    return {
        'host': left.host, 'harm': left.harm,
        'breaches': [{'vm': one.uuid, 'response': one.response, 'value': one.value,
                      'limit': one.limit} for one in left.breaches],
        'options': [{'vm': one.uuid, 'ends': list(one.ends), 'destination': one.destination,
                     'hosts': one.hosts, 'against': one.obstacle.against.value,
                     'why': one.obstacle.why} for one in left.options]}


def read(content: Any) -> Mapping[str, Any]:
    """Return a document that is whole, without what is not known here.

    :raises tracon_watcher.errors.InvalidDocument: naming the field
    """
    fields = document.Fields('an audit', content)
    return {
        'schema': fields.string('schema', (SCHEMA,)), 'audit': fields.string('audit'),
        'at': fields.number('at', 0), 'reason': fields.string('reason'),
        'moves': [{name: one.string(name) for name in ('vm', 'source', 'destination')}
                  for one in fields.sections('moves')],
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
        'against': fields.string('against', [one.value for one in constraints.Against]),
        'why': fields.string('why')}
