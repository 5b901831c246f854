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

"""``tracon-engine``: builds the engine, its API and its telemetry from the configuration."""

from __future__ import annotations

import contextlib
import logging as standard_logging
import math
import signal
import socket
import sys
import threading
import time
from typing import Any, Iterator, Mapping, Sequence
from urllib import parse
import uuid

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from keystoneauth1 import loading
from openstack import connection
from oslo_config import cfg
from oslo_log import log as logging
import prometheus_client

from tracon_watcher.api import application
from tracon_watcher.api import faults
from tracon_watcher.api import server
from tracon_watcher.cmd import database
from tracon_watcher.cmd import services
from tracon_watcher.conf import api as api_options
from tracon_watcher.conf import engine as options
from tracon_watcher.conf import telemetry as telemetry_options
from tracon_watcher.contention import calibration
from tracon_watcher.contention import profile_tracker
from tracon_watcher.engine import collector
from tracon_watcher.engine import engine as engines
from tracon_watcher.engine import idle_shares
from tracon_watcher.engine import inventory_cache
from tracon_watcher.engine import leadership
from tracon_watcher.engine import listener
from tracon_watcher.engine import metrics
from tracon_watcher.engine import migration_tracker
from tracon_watcher.engine import periodic_task
from tracon_watcher.engine import probes
from tracon_watcher.engine import state
from tracon_watcher.engine.storage import decisions
from tracon_watcher.engine.storage import errors as storage_errors
from tracon_watcher.engine.storage import moves
from tracon_watcher.engine.storage import outcomes
from tracon_watcher.engine.storage import records
from tracon_watcher.engine.storage import repository as storages
from tracon_watcher import errors
from tracon_watcher.inventory import cloud
from tracon_watcher.inventory import listing
from tracon_watcher.inventory import volume_limits
from tracon_watcher.messaging import nova
from tracon_watcher.messaging import protocol
from tracon_watcher.messaging import publisher
from tracon_watcher.messaging import subscriber
from tracon_watcher.placement import assessment
from tracon_watcher.placement import limits

LOG = logging.getLogger(__name__)
_LATEST = 10
# Polling intervals without a view of which it is not known what VMs suffered.
_GAP = 3


@contextlib.contextmanager
def _reading(what: str) -> Iterator[None]:
    """Have the API say that what it was asked for cannot be read.

    :raises tracon_watcher.api.faults.Unavailable: while the database cannot be asked
    """
    try:
        yield
    except storage_errors.StorageFailed as error:
        LOG.warning('%s were asked for and cannot be read: %s', what, error)
        raise faults.Unavailable(f'{what} cannot be read now from the database.') from None


class Records:
    """Finds recorded decisions, and what audits told and recommended, for the API.

    All methods but ``breaches`` raise :class:`tracon_watcher.api.faults.Unavailable` while the
    database cannot be asked.
    """

    def __init__(self, storage: storages.Storage) -> None:
        self._storage = storage

    def find(self, request_or_vm: str) -> Sequence[Mapping[str, Any]]:
        """Return those of a request, or else of a VM, the latest first."""
        decisions = self._storage.decisions
        with _reading('Decisions'):
            found = (decisions.find(request=request_or_vm, limit=_LATEST)
                     or decisions.find(vm=request_or_vm, limit=_LATEST))
        return [{**one.document, 'chosen': one.chosen} for one in found]

    def moves(self, wanted: Mapping[str, str | None], marker: str | None,
              limit: int) -> Sequence[Mapping[str, Any]] | None:
        """Return moves that audits recommended, with their outcomes, the latest first."""
        with _reading('Moves'):
            before = None if marker is None else self._storage.moves.get(marker)
            if marker is not None and before is None:
                return None
            found = self._storage.moves.find(**wanted, before=before, limit=limit)
            measured = self._storage.outcomes.of_moves([one.id for one in found])
        return [_document(one, measured.get(one.id, ())) for one in found]

    def told(self, vm: str, host: str | None) -> Sequence[Sequence[Mapping[str, Any]]]:
        """Return decisions that name a VM, what each audit told last, and episodes for the VM."""
        with _reading('Remedies'):
            return ([one.document for one in self._storage.decisions.find(
                limit=decisions.PAGE, naming=vm)], self._storage.audits.all(),
                self._storage.episodes.of_vm(vm, host))

    def breaches(self, vms: Sequence[str], now: float) -> Mapping[str, float] | None:
        """Return for how many seconds of this month VMs were in breach; None: not known."""
        try:
            return self._storage.breaches.seconds(vms, now)
        except storage_errors.StorageFailed as error:
            LOG.warning('For how long VMs were in breach cannot be read: %s', error)
            return None

    def audit(self, uuid: str | None) -> Mapping[str, Any] | None:
        """Return what an audit told last, or the latest one; None: nothing."""
        with _reading('Audits'):
            return self._storage.audits.get(uuid)


def _document(move: moves.MoveRecord, measured: Sequence[outcomes.Outcome]) -> dict[str, Any]:
    relieved = {one.vm for one in move.relieved}
    return {
        'id': move.id, 'vm': move.own.vm, 'audit': move.audit,
        **{name: getattr(move, name) for name in (
            'source', 'destination', 'state', 'reason', 'decided_at', 'started_at', 'ended_at')},
        'changes': [{**one, 'relieved': one['vm'] in relieved} for one in move.changes],
        'outcomes': [{name: getattr(one, name) for name in (
            'delay', 'due_at', 'measured_at', 'verdict', 'predicted', 'measured', 'slowdowns')}
            for one in measured]}


def api_servers(conf: cfg.ConfigOpts, engine: engines.Engine,
                storage: storages.Storage,
                after: migration_tracker.MigrationTracker) -> list[server.HTTPServer]:
    """Return what is to be started beside the engine."""
    registry = prometheus_client.CollectorRegistry()
    registry.register(metrics.EngineCollector(engine, after, lambda: _published(engine)))
    built = application.build(
        lambda: engine.view, Records(storage), conf,
        {name: one.works for name, one in engine.activities.items()},
        registry, conf.api.max_limit)
    counting = records.Clock(storage.breaches, _GAP * conf.engine.polling_interval_seconds)

    def after_view() -> None:
        # What every list needs is worked out before anybody waits for it.
        state = built.state.prepare()
        if state is not None:
            counting.take(state.view.epoch, state.in_breach(), state.now)

    engine.after_view = after_view
    found = [server.HTTPServer(built.application, conf.api.host, conf.api.port, conf.api.threads,
                               certificate=conf.api.certificate_file, key=conf.api.key_file)]
    if conf.api.metrics_port:
        found.append(server.HTTPServer(built.metrics, conf.api.metrics_host, conf.api.metrics_port,
                                       2))
    return found


def _published(engine: engines.Engine) -> Mapping[str, int]:
    publisher = engine.publisher
    return {} if publisher is None else publisher.statistics()


#: The user whom the engine asks Nova, Cinder and Gnocchi as.
AUTH = 'service_auth'
#: Seconds that Nova, Cinder and Gnocchi have to answer; keystoneauth would wait for good. Nova
#: itself waits 60 seconds for a cell that hangs, before it lists what the others have.
_TIMEOUT = 180
_MINUTE, _HOUR = 60.0, 3600.0
#: Seconds between two audits that the engine triggers.
_PAUSE = 10.0


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register every option that the engine reads."""
    logging.register_options(conf)
    # It tells of each look at a schema.
    logging.set_defaults(default_log_levels=logging.get_default_log_levels() + ['alembic=WARN'])
    database.register_opts(conf)
    options.register_opts(conf)
    telemetry_options.register_opts(conf)
    api_options.register_opts(conf)
    loading.register_auth_conf_options(conf, AUTH)
    loading.register_session_conf_options(conf, AUTH)
    loading.register_adapter_conf_options(conf, AUTH)
    conf.set_default('timeout', _TIMEOUT, AUTH)


def list_opts() -> list[tuple[str, list[Any]]]:
    """Return (group, options) of what other projects' libraries read for the engine."""
    session = loading.get_session_conf_options()
    cfg.set_defaults(session, timeout=_TIMEOUT)
    return [(AUTH, [
        *loading.get_auth_common_conf_options(),
        # Those of the plugin that a service authenticates with as a rule.
        *loading.get_auth_plugin_conf_options('password'),
        *session, *loading.get_adapter_conf_options()])]


def main(argv: list[str] | None = None) -> int:
    """Run the engine until it is told to end; return the exit code."""
    conf = cfg.CONF
    register_opts(conf)
    try:
        conf(sys.argv[1:] if argv is None else argv, project=database.PROJECT)
        logging.setup(conf, 'tracon')
        database.look_at(conf, 'database', *(group.name for group in (
            options.GROUP, telemetry_options.GNOCCHI, telemetry_options.PROMETHEUS,
            api_options.GROUP)))
        return run(conf)
    except (errors.TraconError, cfg.Error) as error:
        # Before logging is set up there is nowhere else to say it.
        print(f'tracon-engine: {error}', file=sys.stderr)
        return 2


def run(conf: cfg.ConfigOpts) -> int:
    """Run the engine until SIGTERM or SIGINT."""
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_unused: ended.set())
    storage = storages.Storage.open(conf.database.connection, **database.engine_options(conf))
    engine, after = build(conf, storage)
    servers = api_servers(conf, engine, storage, after)
    for one in servers:
        one.start()
    cleaning = periodic_task.PeriodicTask(
        'Deleting old records', lambda: storage.purge(database.keep(conf), time.time()), _HOUR)
    engine.start()
    cleaning.start()
    LOG.info('The engine has started')
    # A wait without end would keep signals from being heard.
    while not ended.wait(3600.0):
        pass
    LOG.info('The engine ends')
    cleaning.stop()
    for one in servers:
        one.stop()
    engine.stop()
    storage.close()
    return 0


def build(conf: cfg.ConfigOpts,
          storage: storages.Storage) -> tuple[engines.Engine, migration_tracker.MigrationTracker]:
    """Return the engine that is configured, and who looks after the moves."""
    wanted = conf[options.GROUP.name]
    name = wanted.host or socket.gethostname()
    sdk = connect(conf)
    reader = services.telemetry_reader(conf, sdk)
    engine: engines.Engine
    lead = leadership.Leadership(
        # A process is not to be taken for an earlier one of the same name.
        storage.lease, f'{name}-{uuid.uuid4()}', wanted.lease_seconds)
    after = migration_tracker.MigrationTracker(storage, lambda: engine.view, lead.term)
    residents = inventory_cache.InventoryCache(after.moved)

    # An engine with a file that cannot be used ends here rather than when it takes the lead.
    calibrated = (calibration.packaged() if wanted.calibration_file is None
                  else calibration.load(wanted.calibration_file))

    def make_collector() -> collector.Collector:
        learnt = profile_tracker.ProfileTracker(calibrated, wanted.window_seconds,
                                                expiry=wanted.maximum_age_seconds)
        return collector.Collector(reader, learnt, wanted.polling_interval_seconds,
                                   wanted.window_seconds, wanted.maximum_age_seconds)

    def record(documents: list[dict[str, Any]]) -> None:
        storage.decisions.add([one for one in map(_decision, documents) if one is not None])

    def settle(documents: list[dict[str, Any]]) -> None:
        storage.decisions.settle_all(documents, lambda error: LOG.warning(
            'A scheduler told where a VM went, and it is left out: %s', error))

    def make_publisher() -> publisher.Publisher:
        return publisher.Publisher(protocol.connector(conf), name, record, settle,
                                   standard_logging.getLogger('tracon_watcher.messaging'),
                                   on_moves=after.recommended, standing=after.standing)

    trigger = listener.AuditTrigger(lambda: _trigger_audit(
        services.adapter_of(sdk, 'infra-optim'), wanted.request_audit)
    ) if wanted.request_audit else None

    def make_listener() -> Any:
        return nova.Listener(
            conf, listener.Endpoint(residents, lambda event, error: LOG.warning(
                'Notification %s cannot be read (%s); the cloud is listed instead', event,
                error), trigger=trigger), wanted.nova_exchange)

    of_volumes = volume_limits.VolumeLimits()
    parts = engines.Components(
        lead, storage.lease, storage.learnt,
        lambda: cloud.collect(sdk, volume_limits=of_volumes), residents, make_collector,
        make_publisher,
        make_listener if wanted.notifications else None,
        lambda: subscriber.Standby(protocol.connector(conf), name),
        lambda uuid, known: cloud.volumes_of(sdk, uuid, known),
        probes.Probes(reader, wanted.maximum_age_seconds) if wanted.probes else None,
        # Another thread reads, and a reader is of one thread.
        idle_shares.IdleShareHistory(services.telemetry_reader(conf, sdk),
                                     wanted.polling_interval_seconds))
    engine = engines.Engine(parts, engines.Settings(
        wanted.collection_interval_seconds or max(wanted.polling_interval_seconds / 2, 1.0),
        wanted.polling_interval_seconds, wanted.repair_interval_seconds,
        assessment.Settings(wanted.confidence, maximum_age=wanted.maximum_age_seconds),
        state.Defaults(wanted.default_host_type, wanted.default_storage, limits.Limits(
            math.inf if wanted.max_slowdown is None else wanted.max_slowdown,
            0.0 if wanted.min_iops_ratio is None else wanted.min_iops_ratio))))
    engine.activities['measure'] = periodic_task.PeriodicTask(
        'Measuring what moves have brought', after.measure, _MINUTE)
    if trigger is not None:
        engine.activities['trigger'] = periodic_task.PeriodicTask(
            'Triggering an audit', trigger.trigger, _MINUTE, trigger.wanted, shortest=_PAUSE)
    return engine, after


def _trigger_audit(watcher: adapter.Adapter, audit: str) -> None:
    """Have an audit of the type EVENT run.

    :raises tracon_watcher.inventory.listing.CloudUnavailable: when Watcher does not
    """
    path = f'/v1/webhooks/{parse.quote(audit, safe="")}'
    try:
        watcher.post(path, json={}, headers={'OpenStack-API-Version': 'infra-optim 1.4'})
    except exceptions.ClientException as error:
        raise listing.CloudUnavailable(
            f'Watcher: POST {path}: {error}: see whether Watcher\'s API runs, and [engine] '
            'request_audit names an audit of the type EVENT') from None


def _decision(document: dict[str, Any]) -> decisions.Decision | None:
    """Return a decision; None when it is none, which must not cost the others."""
    try:
        return decisions.Decision.of(document)
    except errors.InvalidDocument as error:
        LOG.warning('A scheduler told of a decision, and it is left out: %s', error)
        return None


def connect(conf: cfg.ConfigOpts) -> connection.Connection:
    """Return a connection of the engine's user.

    :raises tracon_watcher.errors.InvalidOption: when options of ``[service_auth]`` cannot be used
    """
    try:
        auth = loading.load_auth_from_conf_options(conf, AUTH)
    except Exception as error:
        # keystoneauth has no common root for what may be wrong with a plugin's options.
        raise errors.InvalidOption(f'[{AUTH}]', type(error).__name__, str(error)) from None
    if auth is None:
        raise errors.InvalidOption(
            f'[{AUTH}] auth_type', None, 'state how the engine\'s user authenticates, such as '
            'password, with auth_url, username, password, project_name')
    asked = conf[AUTH]
    return connection.Connection(
        session=loading.load_session_from_conf_options(conf, AUTH, auth=auth),
        region_name=asked.region_name,
        interface=(asked.valid_interfaces or ['internal'])[0])


if __name__ == '__main__':
    sys.exit(main())
