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

"""``tracon doctor``: faults of an installation, each with its remedy."""

from __future__ import annotations

import argparse
import logging
import os
import socket
from typing import Any, Callable, Sequence
import warnings

from cliff import lister
from oslo_config import cfg
import oslo_messaging
from oslo_messaging import opts as messaging_options

from tracon_watcher.cmd import engine as engines
from tracon_watcher.conf import decision_engine as watcher_options
from tracon_watcher.conf import nova_filters as nova_options
from tracon_watcher.contention import calibration
from tracon_watcher.doctor import configuration
from tracon_watcher.doctor.findings import Severity
from tracon_watcher.doctor.findings import Unread
from tracon_watcher import errors

_RABBIT, _NOTIFICATIONS = 'oslo_messaging_rabbit', 'oslo_messaging_notifications'
_PORT = 5672
#: Those that decide what exchanges and queues are like, and how the broker is reached.
_SHARED = ('rabbit_quorum_queue', 'rabbit_transient_quorum_queue', 'amqp_durable_queues',
           'amqp_auto_delete', 'rabbit_stream_fanout', 'ssl')


def _multiplier(name: str, default: float) -> cfg.FloatOpt:
    return cfg.FloatOpt(f'{name}_weight_multiplier', default=default)


MULTIPLIERS = [_multiplier(name, default) for name, default in (
    ('ram', 1.0), ('cpu', 1.0), ('disk', 1.0), ('hypervisor_version', 1.0),
    ('num_instances', 0.0), ('io_ops', -1.0), ('image_props', 0.0), ('pci', 1.0),
    ('soft_affinity', 1.0), ('soft_anti_affinity', 1.0))]
PENALTIES = [_multiplier(name, 1000000.0) for name in ('build_failure', 'cross_cell_move')]
#: By group, options of Nova's that are read here. Nova need not be installed beside this command;
#: where it is, a unit test compares them with its own.
NOVA = {
    'filter_scheduler': [
        cfg.MultiStrOpt('available_filters', default=[configuration.ALL_FILTERS]),
        cfg.ListOpt('enabled_filters', default=[
            'ComputeFilter', 'ComputeCapabilitiesFilter', 'ImagePropertiesFilter',
            'ServerGroupAntiAffinityFilter', 'ServerGroupAffinityFilter']),
        cfg.ListOpt('weight_classes', default=[configuration.ALL_WEIGHERS]),
        *MULTIPLIERS, *PENALTIES],
    'notifications': [
        cfg.StrOpt('notification_format', default='unversioned', deprecated_group='DEFAULT',
                   choices=['both', 'versioned', 'unversioned']),
        cfg.ListOpt('versioned_notifications_topics', default=[configuration.TOPIC])]}


def read_nova(files: Sequence[str]) -> configuration.Nova | Unread:
    """Return what nova-scheduler reads, by default where it finds its files."""
    conf = cfg.ConfigOpts()
    for group, options in NOVA.items():
        conf.register_opts(options, group=group)
    nova_options.register_opts(conf)
    _register_messaging(conf)
    conf.set_default('control_exchange', 'nova')
    return _read(conf, 'nova', 'nova-scheduler', files, '--nova-config', _nova)


def read_watcher(files: Sequence[str]) -> configuration.Plugin | Unread:
    """Return what watcher-decision-engine reads, by default where it finds its files."""
    conf = cfg.ConfigOpts()
    watcher_options.register_opts(conf)
    _register_messaging(conf)
    return _read(conf, 'watcher', 'watcher-decision-engine', files, '--watcher-config', _plugin)


def read_engine(files: Sequence[str]) -> tuple[configuration.Engine | Unread, cfg.ConfigOpts]:
    """Return what tracon-engine reads, by default where it finds its files, and all its options.
    """
    conf = cfg.ConfigOpts()
    engines.register_opts(conf)
    _register_messaging(conf)
    return _read(conf, 'tracon', 'tracon-engine', files, '--config-file', _engine), conf


def there(files: Sequence[str]) -> bool:
    """Return whether there is a tracon.conf, readable or not."""
    return bool(files or cfg.find_config_files(project='tracon', prog='tracon-engine'))


def _register_messaging(conf: cfg.ConfigOpts) -> None:
    for group, options in messaging_options.list_opts():
        conf.register_opts(options, group=group)


def _read(conf: cfg.ConfigOpts, project: str, program: str, files: Sequence[str], option: str,
          build: Callable[[cfg.ConfigOpts], Any]) -> Any:
    named = ', '.join(files) or f'{project}.conf'
    try:
        conf([], project=project, prog=program, default_config_files=list(files) or None)
        if not conf.config_file:
            return Unread(f'there is no {project}.conf in ~/.{project}, ~, /etc/{project} or /etc',
                          f'run this where {program} runs, or name the file with {option}')
        return build(conf)
    except (cfg.ConfigFilesPermissionDeniedError, cfg.ConfigFilesNotFoundError) as error:
        return Unread(f'{named} cannot be read: {_line(error)}',
                      f'run this as root, or name the file with {option}')
    except (cfg.Error, ValueError, errors.TraconError) as error:
        return Unread(f'{named}: {_line(error)}: {program} does not start with it, or ignores it',
                      'correct the value that is named', Severity.ERROR)


def _line(error: Exception) -> str:
    return ' '.join(str(error).split())


def _nova(conf: cfg.ConfigOpts) -> configuration.Nova:
    scheduler = conf.filter_scheduler

    def values(options: Sequence[cfg.Opt]) -> dict[str, float]:
        return {one.dest: scheduler[one.dest] for one in options}

    return configuration.Nova(
        tuple(scheduler.enabled_filters), tuple(scheduler.available_filters),
        tuple(scheduler.weight_classes), values(MULTIPLIERS), values(PENALTIES),
        conf.tracon.mode, conf.tracon.on_all_refused, conf.tracon.weight_multiplier,
        _plugin(conf), conf.notifications.notification_format,
        tuple(conf[_NOTIFICATIONS].driver),
        tuple(conf.notifications.versioned_notifications_topics), conf.control_exchange,
        _broker_options(conf, conf[_NOTIFICATIONS].transport_url))


def _plugin(conf: cfg.ConfigOpts) -> configuration.Plugin:
    stated = conf.tracon
    return configuration.Plugin(
        stated.snapshot_source, stated.snapshot_file, _broker_options(conf, stated.transport_url),
        os.path.exists(stated.snapshot_file) if stated.snapshot_source == 'file' else None,
        _shared(conf))


def _engine(conf: cfg.ConfigOpts) -> configuration.Engine:
    stated, wrong = conf.engine, None
    if stated.calibration_file is not None:
        try:
            calibration.load(stated.calibration_file)
        except errors.TraconError as error:
            wrong = str(error)
    return configuration.Engine(
        stated.polling_interval_seconds, stated.maximum_age_seconds,
        conf.gnocchi.granularity_seconds if stated.telemetry == 'gnocchi' else None, wrong,
        stated.notifications, stated.nova_exchange, _broker_options(conf, None),
        _broker_options(conf, conf[_NOTIFICATIONS].transport_url), _shared(conf))


def _shared(conf: cfg.ConfigOpts) -> dict[str, Any]:
    return {name: conf[_RABBIT][name] for name in _SHARED}


def _broker_options(conf: cfg.ConfigOpts, url: str | None) -> configuration.Broker:
    """Return the broker of a URL, None for ``transport_url`` of ``[DEFAULT]``."""
    try:
        parsed = oslo_messaging.TransportURL.parse(conf, url)
    except (oslo_messaging.InvalidTransportURL, ValueError):
        # It holds a password, so neither it nor the text of the error is shown.
        raise errors.InvalidOption('transport_url', '(not shown)', 'expected a URL such as '
                                   'rabbit://user:password@host:5672/') from None
    pairs = [(one.hostname or 'localhost', one.port or _PORT) for one in parsed.hosts] or [
        ('localhost', _PORT)]
    virtual_host = parsed.virtual_host or '/'
    return configuration.Broker(
        parsed.transport, ','.join(f'{host}:{port}' for host, port in pairs) + f' {virtual_host}',
        frozenset(f'{address}:{port}' for host, port in pairs for address in _addresses(host)),
        virtual_host)


def _addresses(host: str) -> set[str]:
    try:
        return {str(found[4][0]) for found in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return {host}


_COLUMNS = ('Severity', 'Subject', 'Finding', 'Remedy')
# Extras of what runs on a controller; '' is what every host needs.
_EXTRAS = ('', 'engine', 'nova', 'watcher', 'osc')
#: Seconds that a service has to answer.
_TIMEOUT = 20
# Their warnings come as findings, or are no news to those who look for faults.
_QUIET = ('alembic', 'keystoneauth', 'openstack', 'oslo_config', 'oslo_db', 'oslo_messaging',
          'oslo_service', 'tracon_watcher.telemetry')


class Doctor(lister.Lister):
    """Check an installation, and report each fault with its remedy.

    Run it as root on a controller, where nova.conf, watcher.conf and tracon.conf are. It changes
    nothing. Severity is "error" if the product or a part of it is switched off, "warning", or
    "unknown" if a check could not run. Exit status 0: no findings; 1: warnings or unknown; 2:
    errors.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        for option, service, project in (
                ('--nova-config', 'nova-scheduler', 'nova'),
                ('--watcher-config', 'watcher-decision-engine', 'watcher'),
                ('--config-file', 'tracon-engine', 'tracon')):
            parser.add_argument(
                option, action='append', default=[], metavar='FILE',
                help=f'configuration file of {service}; may be repeated (default: {project}.conf '
                     f'in ~/.{project}, ~, /etc/{project} or /etc, as for the service)')
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        """Return the exit status."""
        if not self.app.options.debug:
            for name in _QUIET:
                logging.getLogger(name).setLevel(logging.CRITICAL)
            warnings.filterwarnings('ignore', r'\s*Eventlet is deprecated')
        self._status = 0
        super().run(parsed_args)
        return self._status

    def take_action(self, parsed_args: argparse.Namespace
                    ) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        from tracon_watcher.doctor import checks
        from tracon_watcher.doctor import findings

        found = findings.examine(checks.CHECKS, self._facts(parsed_args))
        self._status = findings.exit_status(found)
        count = {severity: sum(one.severity == severity for one in found)
                 for severity in findings.Severity}
        self.app.stderr.write(f'{len(checks.CHECKS)} checks: ' + ', '.join(
            f'{count[severity]} {severity.name.lower()}' for severity in reversed(count)) + '\n')
        return _COLUMNS, [(one.severity.name.lower(), one.subject, one.what, one.remedy)
                          for one in found]

    def _facts(self, parsed_args: argparse.Namespace) -> Any:
        from tracon_watcher.doctor import checks
        from tracon_watcher.doctor import findings
        from tracon_watcher.doctor import services

        engine, conf = read_engine(parsed_args.config_file)
        watcher: Any = read_watcher(parsed_args.watcher_config)
        asked: dict[str, Any]
        if isinstance(engine, findings.Unread):
            asked = {**services.unasked(engine),
                     **dict.fromkeys(('database', 'broker', 'queues'), engine)}
        else:
            error = findings.Severity.ERROR
            told = services.tried(lambda: _asked(conf), error)
            asked = {'database': services.tried(lambda: _database(conf), error),
                     'broker': services.tried(lambda: _broker(conf), error),
                     'queues': services.tried(lambda: _queues(conf), error),
                     **(services.unasked(told) if isinstance(told, findings.Unread) else told)}
        if asked['audits'] is None and not parsed_args.watcher_config and isinstance(
                watcher, findings.Unread) and not watcher.severity:
            watcher = None
        return checks.Facts(**{
            **asked, 'engine': engine, 'watcher': watcher,
            'nova': read_nova(parsed_args.nova_config),
            'engine_there': there(parsed_args.config_file),
            'unfit_packages': services.tried(unfit_packages)})


def unfit_packages() -> tuple[str, ...]:
    """Return the installed packages that are older than this package says, with both versions."""
    import importlib.metadata

    from packaging import requirements

    found = set()
    for text in importlib.metadata.requires('tracon-watcher') or ():
        wanted = requirements.Requirement(text)
        if wanted.marker is None or any(wanted.marker.evaluate({'extra': extra})
                                        for extra in _EXTRAS):
            try:
                version = importlib.metadata.version(wanted.name)
            except importlib.metadata.PackageNotFoundError:
                # Each service may have an environment of its own.
                continue
            if not wanted.specifier.contains(version, prereleases=True):
                found.add(f'{wanted.name} {version} is installed, {wanted.specifier} is supported')
    return tuple(sorted(found))


def _asked(conf: Any) -> dict[str, Any]:
    """Return what services tell the engine's user."""
    from openstack import connection

    from tracon_watcher.cmd import engine as engines
    from tracon_watcher.cmd import engine
    from tracon_watcher.doctor import services
    from tracon_watcher.telemetry import rest

    conf.set_override('timeout', _TIMEOUT, engines.AUTH)
    made = conf[engines.AUTH]
    interface = (made.valid_interfaces or ['internal'])[0]
    session = engines.make_session(conf)
    wanted, host = conf.prometheus, conf.api.host
    kind = 'metric' if conf.engine.telemetry == 'gnocchi' else (
        'metric-storage' if wanted.url is None else 'prometheus')
    scheme = 'https' if conf.api.certificate_file else 'http'
    return services.ask(services.Access(
        connection.Connection(session=session, region_name=made.region_name, interface=interface),
        made.region_name, interface, kind,
        rest.plain(wanted.url, wanted.username, wanted.password, wanted.ca_file or True)
        if kind == 'prometheus' else None,
        engine.telemetry_reader(conf, session, made.region_name, interface),
        f'{scheme}://{"127.0.0.1" if host == "0.0.0.0" else host}:{conf.api.port}',
        conf.engine.polling_interval_seconds))


def _database(conf: Any) -> None:
    from tracon_watcher.cmd import database

    database.inspect(database.connect(conf))


def _broker(conf: Any) -> None:
    from tracon_watcher.messaging import protocol

    protocol.connector(conf).compare()


def _queues(conf: Any) -> dict[str, Any]:
    from tracon_watcher.doctor import answers
    from tracon_watcher.messaging import broker
    from tracon_watcher.messaging import nova

    found = broker.Broker.of(conf, conf.oslo_messaging_notifications.transport_url)
    if found is None:
        return {}
    try:
        sizes = {name: found.size(name) for name in (nova.POOL, answers.SPARE_QUEUE)}
    finally:
        found.close()
    return {name: size and answers.Queue(*size) for name, size in sizes.items()}
