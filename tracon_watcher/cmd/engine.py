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

"""``tracon-engine``: puts the engine together from its configuration, and runs it."""

from __future__ import annotations

import logging as standard_logging
import math
import signal
import socket
import sys
import threading
import time
from typing import Any
import uuid

from keystoneauth1 import loading
from openstack import connection
from oslo_config import cfg
from oslo_log import log as logging

from tracon_watcher.cmd import database as databases
from tracon_watcher.cmd import engine_api
from tracon_watcher.cmd import engine_telemetry
from tracon_watcher.conf import api as api_options
from tracon_watcher.conf import engine as options
from tracon_watcher.conf import telemetry as telemetry_options
from tracon_watcher.contention import calibration_document
from tracon_watcher.contention import demands
from tracon_watcher.engine import activity
from tracon_watcher.engine import aftermath
from tracon_watcher.engine import collector
from tracon_watcher.engine import engine as engines
from tracon_watcher.engine import leadership
from tracon_watcher.engine import notifications
from tracon_watcher.engine import probes
from tracon_watcher.engine import residency
from tracon_watcher.engine import state
from tracon_watcher.engine.storage import decisions
from tracon_watcher.engine.storage import storage as storages
from tracon_watcher import errors
from tracon_watcher.inventory import cloud
from tracon_watcher.inventory import volume_limits
from tracon_watcher.messaging import nova
from tracon_watcher.messaging import protocol
from tracon_watcher.messaging import publisher
from tracon_watcher.messaging import standby
from tracon_watcher.placement import assessment
from tracon_watcher.placement import limits

LOG = logging.getLogger(__name__)
#: The user whom the engine asks Nova, Cinder and Gnocchi as.
AUTH = 'service_auth'
#: Seconds that Nova, Cinder and Gnocchi have to answer; keystoneauth would wait for good. Nova
#: itself waits 60 seconds for a cell that hangs, before it lists what the others have.
_TIMEOUT = 180
_MINUTE, _HOUR = 60.0, 3600.0


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register every option that the engine reads."""
    logging.register_options(conf)
    # It tells of each look at a schema.
    logging.set_defaults(default_log_levels=logging.get_default_log_levels() + ['alembic=WARN'])
    databases.register_opts(conf)
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
        conf(sys.argv[1:] if argv is None else argv, project=databases.PROJECT)
        logging.setup(conf, 'tracon')
        databases.look_at(conf, 'database', *(group.name for group in (
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
    storage = storages.Storage.open(conf.database.connection, **databases.engine_options(conf))
    engine, after = build(conf, storage)
    servers = engine_api.servers(conf, engine, storage, after)
    for one in servers:
        one.start()
    cleaning = activity.Activity(
        'Deleting old records', lambda: storage.purge(databases.keep(conf), time.time()), _HOUR)
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
          storage: storages.Storage) -> tuple[engines.Engine, aftermath.Aftermath]:
    """Return the engine that is configured, and who looks after the moves."""
    wanted = conf[options.GROUP.name]
    name = wanted.host or socket.gethostname()
    session = make_session(conf)
    asked = conf[AUTH]
    interface = (asked.valid_interfaces or ['internal'])[0]
    sdk = connection.Connection(session=session, region_name=asked.region_name,
                                interface=interface)
    reader = engine_telemetry.reader(conf, session, asked.region_name, interface)
    engine: engines.Engine
    lead = leadership.Leadership(
        # A process is not to be taken for an earlier one of the same name.
        storage.lease, f'{name}-{uuid.uuid4()}', wanted.lease_seconds)
    after = aftermath.Aftermath(storage, lambda: engine.view, lead.term)
    residents = residency.Residency(after.moved)

    # An engine with a file that cannot be used ends here rather than when it takes the lead.
    calibrated = (calibration_document.packaged() if wanted.calibration_file is None
                  else calibration_document.load(wanted.calibration_file))

    def make_collector() -> collector.Collector:
        learnt = demands.Demands(calibrated, wanted.window_seconds,
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

    def make_listener() -> Any:
        return nova.Listener(
            conf, notifications.Endpoint(residents, lambda event, error: LOG.warning(
                'Notification %s cannot be read (%s); the cloud is listed instead', event,
                error)), wanted.nova_exchange)

    of_volumes = volume_limits.VolumeLimits()
    parts = engines.Parts(
        lead, storage.lease, storage.learnt,
        lambda: cloud.collect(sdk, volume_limits=of_volumes), residents, make_collector,
        make_publisher,
        make_listener if wanted.notifications else None,
        lambda: standby.Standby(protocol.connector(conf), name),
        lambda uuid, known: cloud.volumes_of(sdk, uuid, known),
        probes.Probes(reader, wanted.maximum_age_seconds) if wanted.probes else None)
    engine = engines.Engine(parts, engines.Settings(
        wanted.collection_interval_seconds or max(wanted.polling_interval_seconds / 2, 1.0),
        wanted.polling_interval_seconds, wanted.repair_interval_seconds,
        assessment.Settings(wanted.confidence, maximum_age=wanted.maximum_age_seconds),
        state.Defaults(wanted.default_host_type, wanted.default_storage, limits.Limits(
            math.inf if wanted.max_slowdown is None else wanted.max_slowdown,
            0.0 if wanted.min_iops_ratio is None else wanted.min_iops_ratio))))
    engine.activities['measure'] = activity.Activity(
        'Measuring what moves have brought', after.measure, _MINUTE)
    return engine, after


def _decision(document: dict[str, Any]) -> decisions.Decision | None:
    """Return a decision; None when it is none, which must not cost the others."""
    try:
        return decisions.Decision.of(document)
    except errors.InvalidDocument as error:
        LOG.warning('A scheduler told of a decision, and it is left out: %s', error)
        return None


def make_session(conf: cfg.ConfigOpts) -> Any:
    """Return the session of the engine's user.

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
    return loading.load_session_from_conf_options(conf, AUTH, auth=auth)


if __name__ == '__main__':
    sys.exit(main())
