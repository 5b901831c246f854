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

"""A Galera cluster of the tests' own: nodes of MariaDB that replicate, on this machine."""

import glob
import os
import re
import shutil
import subprocess
import time

import pymysql
import sqlalchemy as sa

from tests.functional import databases
from tests.functional import ports

_PROVIDER = 'lib*/galera/libgalera_smm.so'
_PATIENCE = 60
_NODES = 3
_RECOVERED = re.compile(r'Recovered position: (\S+)')


def missing():
    """Return why there can be no cluster here; '' when there can."""
    if databases.missing(databases.MariaDB):
        return databases.missing(databases.MariaDB)
    # With these a node gets its first data from another one.
    lacking = [name for name in ('rsync', 'ss') if not shutil.which(name)]
    lacking += [] if _provider() else [f'/usr/{_PROVIDER}']
    return f'Galera cannot run here: no {", ".join(lacking)}' if lacking else ''


class Node(databases.MariaDB):
    """A node of a cluster; once it was killed, it catches up with the others at its restart."""

    def __init__(self, number):
        super().__init__()
        self.number = number
        if not os.getuid():
            # Where rsync runs as root it gives up root, and may write nothing.
            self.user = 'mysql'
            shutil.chown(self.folder, self.user, self.user)
        self.replicating, self.catching_up, self.receiving = (ports.free() for _port in range(3))
        self.members = [self]
        self._more = []

    def command(self):
        members = ','.join(f'127.0.0.1:{one.replicating}' for one in self.members)
        return [*super().command(), '--innodb-log-file-size=16M', '--binlog-format=ROW',
                '--innodb-autoinc-lock-mode=2', '--wsrep-on=ON', f'--wsrep-provider={_provider()}',
                f'--wsrep-cluster-address=gcomm://{members}', '--wsrep-cluster-name=tests',
                '--wsrep-node-address=127.0.0.1', f'--wsrep-node-name=node-{self.number}',
                '--wsrep-sst-method=rsync',
                f'--wsrep-sst-receive-address=127.0.0.1:{self.receiving}',
                '--wsrep-provider-options=' + ';'.join((
                    f'gmcast.listen_addr=tcp://127.0.0.1:{self.replicating}',
                    f'ist.recv_addr=127.0.0.1:{self.catching_up}', 'gcache.size=16M',
                    # Who does not answer is left out after two seconds rather than five.
                    'evs.suspect_timeout=PT2S', 'evs.inactive_timeout=PT4S',
                    'evs.keepalive_period=PT0.5S', 'evs.inactive_check_period=PT0.5S')),
                *self._more]

    def begin(self):
        """Start it as the first of a cluster that has no other yet."""
        self._more = ['--wsrep-new-cluster']
        self.start()
        self._more = []

    def join(self):
        """Start it without data, which it gets from one that runs."""
        (self.folder / 'data').mkdir()
        if not os.getuid():
            shutil.chown(self.folder / 'data', self.user, self.user)
        self.restart()

    def recover(self):
        """Start it after it was killed: how far it had come is in its data alone."""
        found = subprocess.run([*self.command(), '--wsrep-recover'], cwd=self.folder, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, check=False).stdout
        self._more = [f'--wsrep-start-position={_RECOVERED.search(found)[1]}']
        self.restart()

    def status(self, name):
        """Return one of the variables of its status; None while it says nothing."""
        try:
            # Without a majority it refuses what SQLAlchemy says first.
            with pymysql.connect(unix_socket=f'{self.folder}/socket', user='root',
                                 autocommit=None) as connection:
                with connection.cursor() as cursor:
                    cursor.execute('SHOW STATUS LIKE %s', (name,))
                    row = cursor.fetchone()
        except pymysql.Error:
            return None
        return row and row[1]


class Cluster:
    """Three nodes with the same data.

    :ivar nodes: those of them that run, and those that do not
    """

    def __init__(self):
        self.nodes = [Node(number) for number in range(1, 1 + _NODES)]
        for one in self.nodes:
            one.members = self.nodes

    def start(self):
        """Start one after the other, and wait until all of them replicate."""
        first, *others = self.nodes
        first.begin()
        for one in others:
            one.join()
        self.wait()

    def stop(self):
        """End all nodes at once."""
        for one in self.nodes:
            one.stop()

    def wait(self):
        """Wait until each node that runs has caught up with the others."""
        running = [one for one in self.nodes if one.running]
        until = time.monotonic() + _PATIENCE
        while any(one.status('wsrep_local_state_comment') != 'Synced'
                  or one.status('wsrep_cluster_size') != str(len(running)) for one in running):
            if time.monotonic() > until:
                raise AssertionError('the nodes of Galera do not find each other: ' + '\n'.join(
                    (one.folder / 'log').read_text(errors='replace')[-1500:] for one in running))
            time.sleep(0.1)

    def create(self):
        """Make an empty database; return its address on each node."""
        address = sa.make_url(self.nodes[0].create())
        return [address.set(port=one.port).render_as_string(hide_password=False)
                for one in self.nodes]


def _provider():
    found = sorted(glob.glob(f'/usr/{_PROVIDER}'))
    return found[0] if found else None
