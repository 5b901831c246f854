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

"""The address of a database, with what safe operation needs and few would think to write."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy import exc

from tracon_watcher import errors

#: Seconds in which a database must answer at all, and must have answered a statement. Without
#: them an engine would wait for a database that is gone for as long as TCP does.
_CONNECT, _STATEMENT = 10, 60
#: Seconds after which the database takes back a transaction whose engine was stopped in the middle
#: of it. Until then the lease stays locked, and no engine can take over.
_IDLE = 15
_EXPECTED = ('expected sqlite:////PATH, mysql+pymysql://USER:PASSWORD@HOST/NAME or '
             'postgresql+psycopg2://USER:PASSWORD@HOST/NAME')
_DRIVERS = {
    'mysql+pymysql': {
        'charset': 'utf8mb4', 'connect_timeout': _CONNECT, 'read_timeout': _STATEMENT,
        'write_timeout': _STATEMENT,
        # What stands in the comment MariaDB reads, and MySQL, which has nothing of the kind, not.
        'init_command': 'SET SESSION wait_timeout = 600, innodb_lock_wait_timeout = 20 '
                        f'/*M! , idle_write_transaction_timeout = {_IDLE} */'},
    'postgresql+psycopg2': {
        'connect_timeout': _CONNECT, 'tcp_user_timeout': _STATEMENT * 1000,
        'options': f'-c statement_timeout={_STATEMENT}s '
                   f'-c idle_in_transaction_session_timeout={_IDLE}s'}}


def complete(connection: str) -> sa.URL:
    """Return an address with time limits and character set, where it does not state them.

    :param connection: as SQLAlchemy writes it
    :raises tracon_watcher.errors.InvalidOption: when it is none, or of another database
    """
    try:
        url = sa.make_url(connection)
    except exc.ArgumentError:
        # The text may contain a password.
        raise errors.InvalidOption('[database] connection', '…', _EXPECTED) from None
    name = url.drivername.replace('mariadb', 'mysql')
    name = {'mysql': 'mysql+pymysql', 'postgresql': 'postgresql+psycopg2'}.get(name, name)
    if name not in _DRIVERS and url.get_backend_name() != 'sqlite':
        raise errors.InvalidOption('[database] connection', shown(url), _EXPECTED)
    return url.set(drivername=name, query={
        **{key: str(value) for key, value in _DRIVERS.get(name, {}).items()}, **url.query})


def shown(url: sa.URL) -> str:
    """Return the address as it may be logged: without the password and the parameters."""
    return url.set(query={}).render_as_string(hide_password=True)
