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

"""An engine that publishes a snapshot after the other, until it is killed."""

import itertools
import os
import sys
import time

from oslo_config import cfg

from tests.unit.messaging import base
from tests.unit.messaging import test_exchange
from tracon_watcher.messaging import chunked_payload
from tracon_watcher.messaging import protocol
from tracon_watcher.messaging import publisher


def main(url, epoch, kind):
    """Publish.

    :param kind: ``small``, ``large``, or ``dying`` for one that ends in the middle of a fetch
    """
    engine = publisher.Publisher(
        protocol.connector(cfg.CONF, url), f'engine{epoch}',
        lambda documents: print('decisions', len(documents), flush=True),
        lambda documents: print('settled', len(documents), flush=True), base.LOG)
    if kind == 'dying':
        real = chunked_payload.ChunkedPayload.chunk

        def chunk(self, index):
            if self.label.chunks > 1 and index == self.label.chunks - 1:
                print('dies', flush=True)
                os._exit(9)
            return real(self, index)

        chunked_payload.ChunkedPayload.chunk = chunk
    engine.start()
    for version in itertools.count(1):
        engine.publish((test_exchange.state if kind == 'small' else test_exchange.large)(
            (epoch, version), *([] if kind == 'small' else [version])))
        print('published', version, flush=True)
        time.sleep(0.3 if kind == 'small' else 600.0)


if __name__ == '__main__':
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
