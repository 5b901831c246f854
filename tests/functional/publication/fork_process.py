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

"""A process that listens to the engine and forks, as services that have workers do."""

import os
import sys
import time

from oslo_config import cfg

from tests.unit.messaging import base
from tracon_watcher.messaging import protocol


def wait_beyond(listener, version):
    """Wait for a snapshot that is newer."""
    end = time.monotonic() + 60
    while listener.current is None or listener.current.version <= version:
        if time.monotonic() > end:
            raise RuntimeError(f'nothing newer than {version} has come: {listener.reports}')
        time.sleep(0.05)
    return listener.current.version


def main(url):
    """Listen, fork twice with all that is open, and see that all three go on."""
    listener = base.Listener(protocol.connector(cfg.CONF, url), period=2.0)
    listener.start()
    before = wait_beyond(listener, 0)
    children = []
    for name in ('first', 'second'):
        child = os.fork()
        if not child:
            try:
                if listener.current is None:
                    raise RuntimeError('the snapshot is gone')
                listener.start()
                listener.post(protocol.SETTLED, {'child': name})
                wait_beyond(listener, wait_beyond(listener, before))
                while listener.outbox:
                    time.sleep(0.05)
                print('child', name, flush=True)
                os._exit(0)
            finally:
                os._exit(1)
        children.append(child)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    wait_beyond(listener, wait_beyond(listener, listener.current.version))
    print('codes', codes, 'reports', listener.reports, flush=True)


if __name__ == '__main__':
    main(sys.argv[1])
