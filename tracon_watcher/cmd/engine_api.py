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

"""Serves what the engine knows: the API and the metrics."""

from __future__ import annotations

import logging
from typing import Any, Mapping, Sequence

from oslo_config import cfg
import prometheus_client

from tracon_watcher.api import application
from tracon_watcher.api import faults
from tracon_watcher.api import server
from tracon_watcher.engine import aftermath
from tracon_watcher.engine import engine as engines
from tracon_watcher.engine import metrics
from tracon_watcher.engine.storage import breaches
from tracon_watcher.engine.storage import errors as storage_errors
from tracon_watcher.engine.storage import moves
from tracon_watcher.engine.storage import outcomes
from tracon_watcher.engine.storage import storage as storages

LOG = logging.getLogger(__name__)
_LATEST = 10
# Polling intervals without a view of which it is not known what VMs suffered.
_GAP = 3


class Records:
    """Finds recorded decisions, and what audits told and recommended, for the API."""

    def __init__(self, storage: storages.Storage) -> None:
        self._storage = storage

    def find(self, request_or_vm: str) -> Sequence[Mapping[str, Any]]:
        """Return those of a request, or else of a VM, the latest first.

        :raises tracon_watcher.api.faults.Unavailable: while the database cannot be asked
        """
        decisions = self._storage.decisions
        try:
            found = (decisions.find(request=request_or_vm, limit=_LATEST)
                     or decisions.find(vm=request_or_vm, limit=_LATEST))
        except storage_errors.StorageFailed as error:
            LOG.warning('Decisions on %s were asked for and cannot be read: %s', request_or_vm,
                        error)
            raise faults.Unavailable('The database of decisions cannot be read now.') from None
        return [{**one.document, 'chosen': one.chosen} for one in found]

    def moves(self, wanted: Mapping[str, str | None], marker: str | None,
              limit: int) -> Sequence[Mapping[str, Any]] | None:
        """Return moves that audits recommended, with their outcomes, the latest first.

        :raises tracon_watcher.api.faults.Unavailable: while the database cannot be asked
        """
        try:
            before = None if marker is None else self._storage.moves.get(marker)
            if marker is not None and before is None:
                return None
            found = self._storage.moves.find(**wanted, before=before, limit=limit)
            measured = self._storage.outcomes.of_moves([one.id for one in found])
        except storage_errors.StorageFailed as error:
            LOG.warning('Moves were asked for and cannot be read: %s', error)
            raise faults.Unavailable('The database of moves cannot be read now.') from None
        return [_document(one, measured.get(one.id, ())) for one in found]

    def breaches(self, vms: Sequence[str], now: float) -> Mapping[str, float] | None:
        """Return for how many seconds of this month VMs were in breach; None: not known."""
        try:
            return self._storage.breaches.seconds(vms, now)
        except storage_errors.StorageFailed as error:
            LOG.warning('For how long VMs were in breach cannot be read: %s', error)
            return None

    def audit(self, uuid: str | None) -> Mapping[str, Any] | None:
        """Return what an audit told last, or the latest one; None: nothing.

        :raises tracon_watcher.api.faults.Unavailable: while the database cannot be asked
        """
        try:
            return self._storage.audits.get(uuid)
        except storage_errors.StorageFailed as error:
            LOG.warning('What audits told was asked for and cannot be read: %s', error)
            raise faults.Unavailable('The database of audits cannot be read now.') from None


def _document(move: moves.Move, measured: Sequence[outcomes.Outcome]) -> dict[str, Any]:
    relieved = {one.vm for one in move.relieved}
    return {
        'id': move.id, 'vm': move.own.vm, 'audit': move.audit,
        **{name: getattr(move, name) for name in (
            'source', 'destination', 'state', 'reason', 'decided_at', 'started_at', 'ended_at')},
        'changes': [{**one, 'relieved': one['vm'] in relieved} for one in move.changes],
        'outcomes': [{name: getattr(one, name) for name in (
            'delay', 'due_at', 'measured_at', 'verdict', 'predicted', 'measured', 'slowdowns')}
            for one in measured]}


def servers(conf: cfg.ConfigOpts, engine: engines.Engine,
            storage: storages.Storage, after: aftermath.Aftermath) -> list[server.Server]:
    """Return what is to be started beside the engine."""
    registry = prometheus_client.CollectorRegistry()
    registry.register(metrics.EngineCollector(engine, after, lambda: _published(engine)))
    built = application.build(
        lambda: engine.view, Records(storage), conf,
        {name: one.works for name, one in engine.activities.items()},
        registry, conf.api.max_limit)
    counting = breaches.Clock(storage.breaches, _GAP * conf.engine.polling_interval_seconds)

    def after_view() -> None:
        # What every list needs is worked out before anybody waits for it.
        state = built.state.prepare()
        if state is not None:
            counting.take(state.view.epoch, state.in_breach(), state.now)

    engine.after_view = after_view
    found = [server.Server(built.application, conf.api.host, conf.api.port, conf.api.threads,
                           certificate=conf.api.certificate_file, key=conf.api.key_file)]
    if conf.api.metrics_port:
        found.append(server.Server(built.metrics, conf.api.metrics_host, conf.api.metrics_port, 2))
    return found


def _published(engine: engines.Engine) -> Mapping[str, int]:
    publisher = engine.publisher
    return {} if publisher is None else publisher.statistics()
