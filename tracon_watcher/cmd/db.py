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

"""``tracon db``: the engine's database."""

from __future__ import annotations

import argparse
import dataclasses
import logging
import time
from typing import Any

from cliff import command
from cliff import show

from tracon_watcher import numerals


class DatabaseCommand(command.Command):
    """Base of the commands, with the engine's configuration."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument(
            '--config-file', action='append', default=[], metavar='FILE',
            help='configuration file of the engine; may be repeated (default: the first '
                 'tracon.conf in ~/.tracon, ~, /etc/tracon or /etc)')
        return parser

    def run(self, parsed_args: argparse.Namespace) -> Any:
        if not self.app.options.debug:
            # What alembic looks at, from its import on, is no news here, and what oslo.db tells at
            # length comes again as the error that ends the command.
            logging.getLogger('alembic').setLevel(logging.WARNING)
            logging.getLogger('oslo_db').setLevel(logging.CRITICAL)
        return super().run(parsed_args)

    def configuration(self, parsed_args: argparse.Namespace) -> Any:
        """Return the options."""
        from tracon_watcher.cmd import database as configured
        return configured.read_configuration(parsed_args.config_file)

    def database(self, parsed_args: argparse.Namespace) -> Any:
        """Return the database that is configured."""
        from tracon_watcher.cmd import database as configured
        return configured.connect(self.configuration(parsed_args))


class Upgrade(DatabaseCommand):
    """Create the tables of the engine's database, or upgrade them to this release.

    Make a backup and stop all engines first. Run it as the engine's user: SQLite's file belongs to
    the user who creates it.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        from tracon_watcher.engine.storage import schema
        database = self.database(parsed_args)
        before, after = schema.upgrade(database)
        self.app.stdout.write(
            f'{database.where}: revision {after}' + (
                ', as before\n' if before == after else f'; before: {before or "no tables"}\n'))


class Version(DatabaseCommand, show.ShowOne):
    """Show the revision of the engine's database, and the revision that this release needs."""

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        from tracon_watcher.engine.storage import schema
        database = self.database(parsed_args)
        found = schema.current(database)
        return (('database', 'revision', 'needed', 'up_to_date'),
                [database.where, found, schema.expected(), found == schema.expected()])


class Check(DatabaseCommand, show.ShowOne):
    """Check the engine's database, and show which engine leads.

    It fails if the database does not answer, its schema is out of date, tables differ from their
    definition, or a file of SQLite's is damaged.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        from tracon_watcher.cmd import database as configured
        from tracon_watcher.engine.storage import repository
        from tracon_watcher.engine.storage import schema
        database = self.database(parsed_args)
        configured.inspect(database)
        sight = repository.Storage(database).lease.look()
        return (('database', 'revision', 'leader', 'epoch', 'snapshot_version'),
                [database.where, schema.expected(), sight.holder, sight.epoch, sight.version])


class Restored(DatabaseCommand):
    """Adapt the engine's database after a restore from a backup; stop all engines first.

    The numbers of snapshots only rise. Without this command the engine would use numbers again
    that nova-scheduler and Watcher have already seen, and they would take new snapshots for old
    ones.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        from tracon_watcher.engine.storage import repository
        from tracon_watcher.engine.storage import schema
        database = self.database(parsed_args)
        schema.check(database)
        epoch = repository.Storage(database).lease.restored(time.time())
        self.app.stdout.write(f'{database.where}: the next epoch is {epoch}\n')


class Purge(DatabaseCommand, show.ShowOne):
    """Delete old records of the engine's database now; the engine itself does so every hour.

    The defaults are [database] decisions_kept_days and moves_kept_days. The engine may run
    meanwhile.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        for name, what in (('decisions', 'decisions of nova-scheduler'),
                           ('moves', 'live migrations that were recommended')):
            parser.add_argument(f'--{name}', type=numerals.number(0, 36500), metavar='DAYS',
                                help=f'age up to which {what} are kept')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        from tracon_watcher.cmd import database as configured
        from tracon_watcher.engine.storage import repository
        from tracon_watcher.engine.storage import schema
        conf = self.configuration(parsed_args)
        stated = {name: getattr(parsed_args, name) for name in ('decisions', 'moves')
                  if getattr(parsed_args, name) is not None}
        database = configured.connect(conf)
        schema.check(database)
        gone = repository.Storage(database).purge(
            dataclasses.replace(configured.keep(conf), **stated), time.time(), trusted=True)
        return tuple(gone), list(gone.values())
