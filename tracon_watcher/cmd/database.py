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

"""Builds the engine's storage from its configuration."""

from __future__ import annotations

from typing import Any, Sequence

from oslo_config import cfg
from oslo_db import options as oslo_options

from tracon_watcher.conf import database as options
from tracon_watcher.engine.storage import database as databases
from tracon_watcher.engine.storage import repository
from tracon_watcher.engine.storage import schema
from tracon_watcher import errors

#: Of the file (``/etc/tracon/tracon.conf``) and of the folder beside it.
PROJECT = 'tracon'
# Not used: one database answers all, and nothing here is asynchronous.
_UNUSED = ('connection', 'slave_connection', 'asyncio_connection', 'asyncio_slave_connection',
           'synchronous_reader')


def read_configuration(files: Sequence[str] = ()) -> cfg.ConfigOpts:
    """Return the options of group ``[database]`` as a file states them.

    :param files: instead of ``tracon.conf`` where oslo.config looks for it
    :raises tracon_watcher.errors.InvalidOption: when a file or a value cannot be used
    """
    conf = cfg.ConfigOpts()
    register_opts(conf)
    try:
        conf([], project=PROJECT, default_config_files=list(files) or None)
        look_at(conf, 'database')
    except cfg.Error as error:
        raise errors.InvalidOption('--config-file', ', '.join(files) or f'{PROJECT}.conf',
                                   ' '.join(str(error).split())) from None
    return conf


def look_at(conf: cfg.ConfigOpts, *groups: str) -> None:
    """Read every option of these groups, so that a value that is not allowed is an error now.

    oslo.config itself looks at a value when it is asked for, which may be hours later.

    :raises oslo_config.cfg.Error: naming the option and the value
    """
    for group in groups:
        for name in conf[group]:
            conf[group][name]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register oslo.db's options, with SQLite as default, and ours."""
    oslo_options.set_defaults(conf, connection=options.CONNECTION)
    options.register_opts(conf)


def connect(conf: cfg.ConfigOpts) -> databases.Database:
    """Return the database that is configured.

    :raises tracon_watcher.errors.InvalidOption: when its address is not one
    """
    return databases.Database(conf.database.connection, **engine_options(conf))


def inspect(database: databases.Database) -> None:
    """See that a database answers and is as this release needs it.

    :raises tracon_watcher.errors.TraconError: when it is not
    """
    schema.check(database)
    wrong = schema.faults(database)
    if wrong:
        raise errors.InvalidDocument(database.where, 'the schema', '; '.join(wrong),
                                     'restore a backup, or undo what was changed by hand')


def engine_options(conf: cfg.ConfigOpts) -> dict[str, Any]:
    """Return oslo.db's options as :class:`Storage` takes them."""
    return {one.dest: conf.database[one.dest] for one in oslo_options.database_opts
            if one.dest not in _UNUSED}


def keep(conf: cfg.ConfigOpts) -> repository.Retention:
    """Return for how long records are kept."""
    return repository.Retention(conf.database.decisions_kept_days, conf.database.moves_kept_days)
