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

"""A RabbitMQ of the tests' own: private ports, data in a temporary directory."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

import fixtures
import kombu

from tests.functional import ports
from tracon_watcher.messaging import protocol

_SERVER = pathlib.Path('/usr/lib/rabbitmq/bin/rabbitmq-server')
_LONGEST_START = 120.0


def missing():
    """Return why there can be no RabbitMQ here; '' when there can."""
    if not _SERVER.exists():
        return f'{_SERVER} is not there: install rabbitmq-server'
    if shutil.which('epmd') is None:
        return 'epmd is not there: install erlang-base'
    return ''


class RabbitMQ(fixtures.Fixture):
    """Runs while the fixture is in use; it can be stopped and started in between.

    :attr:`url` is for ``transport_url``; :attr:`tls_url` is that with TLS, where there are
    certificates, and clients have to have one too.

    :param largest: bytes that a message has at most
    :param authority: :class:`tests.functional.authority.Authority`; None: no TLS
    :param settings: further lines of its configuration file
    :param first: another one, which runs already when this one begins, and whose cluster this one
        joins if the settings say so; None: it is alone, or the first one
    """

    def __init__(self, largest=protocol.LARGEST_MESSAGE, authority=None, settings='',
                 first=None):
        super().__init__()
        self._largest = largest
        self._settings = settings
        self._authority = authority
        self._first = first
        self.port = ports.free()
        self.node = f'tests{os.getpid()}{self.port}@localhost'

    def _setUp(self):
        if missing():
            raise RuntimeError(missing())
        self._directory = pathlib.Path(tempfile.mkdtemp(prefix='tracon-rabbit-'))
        self.addCleanup(shutil.rmtree, self._directory, ignore_errors=True)
        self.url = f'rabbit://tests:secret@127.0.0.1:{self.port}/'
        self._server = None
        (self._directory / 'rabbitmq.conf').write_text(
            f'listeners.tcp.1 = 127.0.0.1:{self.port}\n'
            'default_user = tests\ndefault_pass = secret\nloopback_users = none\n'
            'vm_memory_high_watermark.relative = 0.3\n'
            # What is larger shall fail here rather than trouble somebody's broker.
            f'max_message_size = {self._largest}\n' + self._tls() + self._settings)
        self._names = ports.free() if self._first is None else self._first._names
        # Nodes of a cluster share the secret that the first one leaves there.
        self._home = self._directory if self._first is None else self._first._home
        self._environment = {
            **os.environ, 'HOME': str(self._home), 'ERL_EPMD_ADDRESS': '127.0.0.1',
            'ERL_EPMD_PORT': str(self._names),
            'RABBITMQ_NODENAME': self.node,
            'RABBITMQ_MNESIA_BASE': str(self._directory / 'data'),
            'RABBITMQ_LOG_BASE': str(self._directory), 'RABBITMQ_CONF_ENV_FILE': '/dev/null',
            'RABBITMQ_DIST_PORT': str(ports.free()),
            'RABBITMQ_CONFIG_FILE': str(self._directory / 'rabbitmq'),
            # Nothing waits in a busy loop, and there are no more threads than cores.
            'RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS':
                '+sbwt none +sbwtdcpu none +sbwtdio none +S 2:2 '
                '-kernel inet_dist_use_interface {127,0,0,1}'}
        if self._first is None:
            # Erlang's port mapper; otherwise one would be started that outlives us.
            self.addCleanup(self._end, self._run(['epmd']), signal.SIGKILL)
        self.addCleanup(self.stop, signal.SIGKILL)
        self.start()

    def _tls(self):
        if self._authority is None:
            return ''
        port = ports.free()
        self.tls_url = f'rabbit://tests:secret@127.0.0.1:{port}/'
        return (f'listeners.ssl.1 = 127.0.0.1:{port}\n'
                f'ssl_options.cacertfile = {self._authority.ca}\n'
                f'ssl_options.certfile = {self._authority.certificate}\n'
                f'ssl_options.keyfile = {self._authority.key}\n'
                'ssl_options.verify = verify_peer\nssl_options.fail_if_no_peer_cert = true\n')

    def start(self):
        """Start the server and wait until it answers."""
        self._server = self._run([str(_SERVER)])
        end = time.monotonic() + _LONGEST_START
        while not self.answers():
            if self._server.poll() is not None or time.monotonic() > end:
                raise RuntimeError('RabbitMQ does not start: ' + (
                    self._directory / 'output').read_text()[-2000:])
            time.sleep(0.2)

    def stop(self, number=signal.SIGTERM):
        """End the server by a signal, and wait until it has ended."""
        server, self._server = self._server, None
        if server is not None:
            self._end(server, number)

    def answers(self):
        """Return whether somebody could log in."""
        with kombu.Connection(self.url.replace('rabbit', 'amqp', 1) + '/',
                              connect_timeout=2) as one:
            try:
                one.connect()
            except (*one.connection_errors, *one.channel_errors):
                return False
        return True

    def control(self, *arguments):
        """Have rabbitmqctl do something; return what it says."""
        return subprocess.run(
            [str(_SERVER.with_name('rabbitmqctl')), *arguments], env=self._environment, check=True,
            capture_output=True, text=True, timeout=120).stdout

    @property
    def running(self):
        """Whether it was started, and not stopped since."""
        return self._server is not None

    def _run(self, command):
        with open(self._directory / 'output', 'ab') as output:
            return subprocess.Popen(command, env=self._environment, stdin=subprocess.DEVNULL,
                                    stdout=output, stderr=output, start_new_session=True,
                                    cwd=self._directory)

    @staticmethod
    def _end(process, number):
        # Its session is its own, so no other process is in its group.
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            pass
        process.wait(60)


class RabbitCluster(fixtures.Fixture):
    """Several brokers that are one, while the fixture is in use.

    :attr:`nodes` are those of :class:`RabbitMQ`; :attr:`url`, for ``transport_url``, names all.
    """

    def __init__(self, count=3):
        super().__init__()
        self._count = count

    def _setUp(self):
        self.nodes = []
        for _number in range(self._count):
            first = self.nodes[0] if self.nodes else None
            self.nodes.append(RabbitMQ(first=first, settings='' if first is None else (
                'cluster_formation.peer_discovery_backend = classic_config\n'
                f'cluster_formation.classic_config.nodes.1 = {first.node}\n')))
            self.useFixture(self.nodes[-1])
        self.url = 'rabbit://' + ','.join(
            f'tests:secret@127.0.0.1:{one.port}' for one in self.nodes) + '/'

    def control(self, *arguments):
        """Have rabbitmqctl do something on a node that runs; return what it says."""
        return next(one for one in self.nodes if one.running).control(*arguments)


def of_class(case, kind=RabbitMQ):
    """Return a broker, or several, that run as long as the tests of a class do.

    :param kind: :class:`RabbitMQ` or :class:`RabbitCluster`
    :raises unittest.SkipTest: where RabbitMQ is not installed
    """
    if missing():
        raise unittest.SkipTest(missing())
    made = kind()
    made.setUp()
    case.addClassCleanup(made.cleanUp)
    return made
