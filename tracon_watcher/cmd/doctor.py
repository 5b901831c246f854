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
from typing import Any
import warnings

from cliff import lister

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
        from tracon_watcher.cmd import doctor_files
        from tracon_watcher.doctor import checks
        from tracon_watcher.doctor import findings
        from tracon_watcher.doctor import services

        engine, conf = doctor_files.read_engine(parsed_args.config_file)
        watcher: Any = doctor_files.read_watcher(parsed_args.watcher_config)
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
            'nova': doctor_files.read_nova(parsed_args.nova_config),
            'engine_there': doctor_files.there(parsed_args.config_file),
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
    from tracon_watcher.cmd import engine
    from tracon_watcher.cmd import services as cloud
    from tracon_watcher.doctor import services
    from tracon_watcher.telemetry import rest

    conf.set_override('timeout', _TIMEOUT, engine.AUTH)
    sdk = engine.connect(conf)
    wanted, host = conf.prometheus, conf.api.host
    kind = 'metric' if conf.engine.telemetry == 'gnocchi' else (
        'metric-storage' if wanted.url is None else 'prometheus')
    scheme = 'https' if conf.api.certificate_file else 'http'
    return services.ask(services.Access(
        sdk, sdk.config.get_region_name(), sdk.config.get_interface(), kind,
        rest.plain(wanted.url, wanted.username, wanted.password, wanted.ca_file or True)
        if kind == 'prometheus' else None,
        cloud.telemetry_reader(conf, sdk),
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
