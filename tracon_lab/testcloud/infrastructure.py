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

"""MariaDB, RabbitMQ and memcached, each with data and ports of this cloud alone."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

from tracon_lab.testcloud import errors
from tracon_lab.testcloud import service
from tracon_lab.testcloud import settings as settings_module

_RABBITMQ = '/usr/lib/rabbitmq/bin/rabbitmq-server'
_NODE = 'tracon@localhost'


def services(settings: settings_module.Settings) -> list[service.Service]:
    """Return what all others need."""
    return [mariadb(settings), epmd(settings), rabbitmq(settings), memcached(settings)]


def database_socket(settings: settings_module.Settings) -> pathlib.Path:
    """Return the UNIX socket on which root needs no password."""
    return settings.data / 'mariadb' / 'socket'


def prepare(settings: settings_module.Settings) -> None:
    """Make the data directories, and MariaDB's system tables.

    :raises CloudError: when MariaDB cannot be set up
    """
    for path in (settings.directory, settings.data, settings.logs, settings.run):
        path.mkdir(parents=True, exist_ok=True)
    files = settings.data / 'mariadb'
    if not (files / 'mysql').is_dir():
        files.mkdir(exist_ok=True)
        # The socket in it lets root in without a password.
        files.chmod(0o700)
        shutil.chown(files, 'mysql')
        for above in (settings.data, settings.directory):
            above.chmod(0o711)
        _run([service.system_program('mariadb-install-db', 'mariadb-server'), '--no-defaults',
              '--user=mysql', f'--datadir={files}', '--auth-root-authentication-method=normal',
              '--skip-test-db'], settings.logs / 'mariadb-install.log')
    rabbit = settings.data / 'rabbitmq'
    rabbit.mkdir(exist_ok=True)
    (rabbit / 'rabbitmq.conf').write_text('\n'.join((
        f'listeners.tcp.1 = {settings_module.ADDRESS}:{settings.port("rabbitmq")}',
        'default_user = stack',
        f'default_pass = {settings.password}',
        'loopback_users = none',
        'vm_memory_high_watermark.relative = 0.3',
        'disk_free_limit.absolute = 50MB',
        'collect_statistics_interval = 30000', '')), encoding='utf-8')


def mariadb(settings: settings_module.Settings) -> service.Service:
    """Return MariaDB; what a crash of the machine would lose of a test is no loss."""
    files = settings.data / 'mariadb'
    return service.Service('mariadb', (
        service.system_program('mariadbd', 'mariadb-server'), '--no-defaults', '--user=mysql',
        f'--datadir={files}', f'--socket={database_socket(settings)}',
        f'--pid-file={files / "pid"}', f'--bind-address={settings_module.ADDRESS}',
        f'--port={settings.port("mariadb")}', '--max-connections=1000',
        '--innodb-flush-log-at-trx-commit=0', '--innodb-buffer-pool-size=256M',
        '--innodb-doublewrite=OFF', '--skip-log-bin', '--performance-schema=OFF',
        '--skip-name-resolve', '--character-set-server=utf8mb3'),
        ready=service.listens(settings.port('mariadb')), stop_patience=30.0)


def epmd(settings: settings_module.Settings) -> service.Service:
    """Return Erlang's port mapper, which RabbitMQ would otherwise start beyond our reach."""
    return service.Service('epmd', (
        service.system_program('epmd', 'rabbitmq-server'), '-address', settings_module.ADDRESS,
        '-port', str(settings.port('epmd'))), ready=service.listens(settings.port('epmd')))


def rabbitmq(settings: settings_module.Settings) -> service.Service:
    """Return RabbitMQ in the foreground, whose schedulers do not spin while they wait."""
    files = settings.data / 'rabbitmq'
    if not os.path.exists(_RABBITMQ):
        raise errors.CloudError(f'{_RABBITMQ} is not there: apt install rabbitmq-server')
    return service.Service('rabbitmq', (_RABBITMQ,), {
        'HOME': str(files),
        # The script becomes the server, so that signals reach it.
        'RUNNING_UNDER_SYSTEMD': 'true',
        'RABBITMQ_NODENAME': _NODE,
        'RABBITMQ_NODE_IP_ADDRESS': settings_module.ADDRESS,
        'RABBITMQ_NODE_PORT': str(settings.port('rabbitmq')),
        'RABBITMQ_DIST_PORT': str(settings.port('rabbitmq-peers')),
        'RABBITMQ_MNESIA_BASE': str(files / 'mnesia'),
        'RABBITMQ_LOG_BASE': str(settings.logs),
        'RABBITMQ_LOGS': '-',
        'RABBITMQ_CONF_ENV_FILE': os.devnull,
        'RABBITMQ_CONFIG_FILE': str(files / 'rabbitmq'),
        'RABBITMQ_ENABLED_PLUGINS_FILE': str(files / 'plugins'),
        'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS':
            '+sbwt none +sbwtdcpu none +sbwtdio none +S 2:2 '
            '-kernel inet_dist_use_interface {127,0,0,1}',
        'ERL_EPMD_ADDRESS': settings_module.ADDRESS,
        'ERL_EPMD_PORT': str(settings.port('epmd')),
    }, ready=service.listens(settings.port('rabbitmq')), reads=(files / 'rabbitmq.conf',),
        patience=120.0, stop_patience=30.0)


def memcached(settings: settings_module.Settings) -> service.Service:
    """Return memcached, in which tokens are kept."""
    return service.Service('memcached', (
        service.system_program('memcached', 'memcached'), '-u', 'nobody', '-m', '64', '-t', '1',
        '-l', settings_module.ADDRESS, '-p', str(settings.port('memcached'))),
        ready=service.listens(settings.port('memcached')))


def _run(command: list[str], log: pathlib.Path) -> None:
    with log.open('ab') as out:
        code = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                              check=False).returncode
    if code:
        raise errors.ServiceFailed(command[0], f'has ended with code {code}', log)
