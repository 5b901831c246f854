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

"""All checks, and the facts that they take."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping

from tracon_watcher.doctor import answers
from tracon_watcher.doctor import configuration
from tracon_watcher.doctor.findings import Check
from tracon_watcher.doctor.findings import Unread

Documents = tuple[Mapping[str, Any], ...]


@dataclasses.dataclass(frozen=True)
class Facts:
    """What was read of an installation; see the check that takes it.

    :param engine_there: whether there is a tracon.conf
    :param watcher: None where there is no Watcher
    :param broker: None where it is as tracon.conf wants it, as is ``database``
    """

    nova: configuration.Nova | Unread
    watcher: configuration.Plugin | Unread | None
    engine: configuration.Engine | Unread
    engine_there: bool
    unfit_packages: tuple[str, ...] | Unread
    database: Unread | None
    broker: Unread | None
    queues: Mapping[str, answers.Queue | None] | Unread
    services: tuple[answers.Answer, ...] | Unread
    roles: frozenset[str] | Unread
    microversion: tuple[int, ...] | Unread
    servers: Documents | Unread
    hosts: frozenset[str] | Unread
    aggregates: Documents | Unread
    extra_specs_validated: bool | Unread
    samples: answers.Samples | Unread
    health: Mapping[str, Any] | Unread
    judged: Documents | Unread
    host_types: Documents | Unread
    audits: Documents | Unread | None


CHECKS = (
    Check('filter', ('nova',), configuration.filters),
    Check('weigher', ('nova',), configuration.weigher),
    Check('mode', ('nova', 'aggregates'), configuration.mode),
    Check('snapshot', ('nova', 'watcher', 'engine_there'), configuration.snapshots),
    Check('notifications', ('nova', 'engine'), configuration.notifications),
    Check('broker', ('nova', 'engine', 'watcher'), configuration.brokers),
    Check('engine', ('engine',), configuration.intervals),
    Check('versions', ('unfit_packages',), answers.packages),
    Check('database', ('database',), answers.nothing),
    Check('broker', ('broker',), answers.nothing),
    Check('notifications', ('queues', 'engine'), answers.queues),
    Check('services', ('services',), answers.services),
    Check('clocks', ('services',), answers.clocks),
    Check('clocks', ('samples',), answers.sample_clocks),
    Check('permissions', ('roles', 'servers'), answers.permissions),
    Check('versions', ('microversion',), answers.versions),
    Check('extra specs', ('extra_specs_validated',), answers.extra_specs),
    Check('telemetry', ('samples', 'hosts', 'engine'), answers.telemetry),
    Check('engine', ('health', 'engine'), answers.health),
    Check('hosts', ('judged', 'hosts'), answers.hosts_judged),
    Check('host types', ('host_types',), answers.host_types),
    Check('aggregates', ('aggregates',), answers.aggregates),
    Check('audits', ('audits',), answers.audits),
)
