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

"""Audits: what each has left undone, and why."""

from __future__ import annotations

import re
from typing import Any

from tracon_watcher.api import authority
from tracon_watcher.api import explanations
from tracon_watcher.api import faults
from tracon_watcher.api import policies
from tracon_watcher.api import state as states

#: Stands for the audit that told last.
LATEST = 'latest'
_UUID = re.compile('[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}')

Document = dict[str, Any]


def show(caller: authority.Caller, known: states.States, records: explanations.Records,
         name: str) -> Document:
    """Return what an audit told last.

    :param name: Watcher's uuid, or :data:`LATEST`
    """
    caller.require(policies.AUDITS_SHOW, 'audits')
    found = records.audit(None if name == LATEST else name)
    if found is None:
        raise faults.NotFound(
            'No audit has told of anything.' if name == LATEST else f'Audit {name} has told of '
            'nothing.', 'Audits of the strategy tracon_interference tell when they have run; '
            'what they tell is kept for a time.')
    state = known.present()
    names = {} if state is None else state.view.vms

    def call(vm: str) -> Document:
        return {'uuid': vm, 'name': names[vm].name if vm in names else None}

    def named(why: str) -> str:
        return _UUID.sub(lambda found: names[found[0]].name if found[0] in names else found[0],
                         why)

    return {'audit': {
        **found, 'at': states.iso(found['at']),
        'moves': [{**one, 'vm': call(one['vm'])} for one in found['moves']],
        'hosts': [{
            **host, 'breaches': [{**one, 'vm': call(one['vm'])} for one in host['breaches']],
            'options': [{**one, 'vm': call(one['vm']), 'ends': list(map(call, one['ends'])),
                         'why': named(one['why'])}
                        for one in host['options']]} for host in found['hosts']]}}
