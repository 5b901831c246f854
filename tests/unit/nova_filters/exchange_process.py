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

"""A worker of nova-scheduler that exchanges placements, told what to do line by line.

``DIRECTORY EXPIRY``; then from standard input ``publish UUID…`` or ``collect``, which is answered
by a line of the uuids that were heard of, and ``lines``, by how many lines were no placements.
"""

import logging
import sys
import time

import numpy as np

from nova_filters import assumed_placements
from nova_filters import log_once
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles


class _Lines(logging.Handler):
    """Counts what is logged."""

    count = 0

    def emit(self, record):
        self.count += 1


def main(directory, expiry):
    lines = _Lines()
    log = logging.getLogger('exchange')
    log.addHandler(lines)
    worker = assumed_placements.PlacementExchange(directory, float(expiry), log_once.FaultLog(log))
    for line in sys.stdin:
        command, *uuids = line.split()
        if command == 'publish':
            worker.publish([assumed_placements.Placement(uuid, 'host', 'node',
                                                         newcomer_profiles.own(np.ones(4)),
                                                         limits.NONE,
                                                         time.time()) for uuid in uuids], [])
            print(flush=True)
        elif command == 'collect':
            print(*(one.uuid for one in worker.collect()[0]), flush=True)
        else:
            print(lines.count, flush=True)


if __name__ == '__main__':
    main(*sys.argv[1:])
