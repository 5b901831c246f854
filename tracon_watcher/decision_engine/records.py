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

"""What Watcher's own database says of migrations that failed, and of plans that are under way.

Nova keeps no record of a migration that it refused. Watcher does: the action has failed.
"""

from __future__ import annotations

import dataclasses
import datetime
from typing import Any, Mapping

#: Plans in these states change the cloud now, or are about to.
_UNDER_WAY = ('PENDING', 'ONGOING', 'CANCELLING')
_ONGOING, _SUCCEEDED, _FAILED = 'ONGOING', 'SUCCEEDED', 'FAILED'
_ENDED = (_SUCCEEDED, _FAILED, 'CANCELLED', 'SKIPPED')
_MIGRATE = 'migrate'
#: Types of actions on a VM that free its room on its host; a stopped VM keeps it.
FREEING = ('shelve', 'delete')
#: Types of actions on a host as a whole.
_OF_HOSTS = ('change_nova_service_state', 'change_node_power_state')


@dataclasses.dataclass(frozen=True)
class Records:
    """What concerns an audit.

    :param failed: by uuid of a VM, when migrations of it failed, seconds since the epoch
    :param vms: by uuid of a VM, uuid of a plan under way that acts on it
    :param hosts: by name of a host, likewise
    :param preempted_at: when the latest plan was made that has freed room by removing VMs, or is
        about to, seconds since the epoch
    """

    failed: Mapping[str, tuple[float, ...]] = dataclasses.field(default_factory=dict)
    vms: Mapping[str, str] = dataclasses.field(default_factory=dict)
    hosts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    preempted_at: float = 0.0


def collect(context: Any, since: float) -> Records:
    """Read Watcher's database.

    :param context: ``watcher.common.context.RequestContext``
    :param since: seconds since the epoch; what failed, or was planned, before does not count
    """
    # Those who only need the rules, the checks of what is read among them, have no Watcher.
    from watcher import objects
    then = datetime.datetime.fromtimestamp(since, datetime.timezone.utc).replace(tzinfo=None)
    failed: dict[str, list[float]] = {}
    preempted_at = 0.0
    for action in objects.Action.list(context, filters={
            'state__in': (_ONGOING, _SUCCEEDED, _FAILED), 'updated_at__gt': then}):
        uuid = (action.input_parameters or {}).get('resource_id')
        if action.action_type in FREEING:
            preempted_at = max(preempted_at, _seconds(action.created_at))
        if action.action_type == _MIGRATE and action.state == _FAILED and uuid:
            failed.setdefault(uuid, []).append(_seconds(action.updated_at or action.created_at))
    vms: dict[str, str] = {}
    hosts: dict[str, str] = {}
    # A plan whose applier has gone for good stays under way for ever.
    for plan in objects.ActionPlan.list(context, filters={
            'state__in': _UNDER_WAY, 'created_at__gt': then}):
        for action in objects.Action.list(context, filters={'action_plan_id': plan.id}):
            if action.action_type in FREEING:
                preempted_at = max(preempted_at, _seconds(action.created_at))
            if action.state in _ENDED:
                continue
            given = action.input_parameters or {}
            concerned = hosts if action.action_type in _OF_HOSTS else vms
            for key in ('resource_id', 'resource_name'):
                if given.get(key):
                    concerned[given[key]] = plan.uuid
            for key in ('source_node', 'destination_node'):
                if given.get(key):
                    hosts[given[key]] = plan.uuid
    return Records({uuid: tuple(sorted(times)) for uuid, times in failed.items()}, vms, hosts,
                   preempted_at)


def _seconds(moment: datetime.datetime) -> float:
    # Watcher's times are UTC, whether they say so or not.
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.timezone.utc)
    return moment.timestamp()
