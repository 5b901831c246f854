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

"""An engine in place of the snapshot file, through RabbitMQ."""

import logging

from nova import conf

from tests.functional import messaging
from tracon_watcher.messaging import protocol
from tracon_watcher.messaging import publisher
from tracon_watcher.placement import snapshot


class EngineCase:
    """Publishes snapshots rather than write them."""

    epoch = 3

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.rabbit = messaging.of_class(cls)

    def setUp(self):
        self.engine = None
        self.decisions, self.settled = [], []
        self.options = {**self.options, 'snapshot_source': 'engine',
                        'transport_url': self.rabbit.url, 'engine_check_seconds': 1.0}
        super().setUp()

    def tearDown(self):
        # Nova's fixtures look for listeners that are left before anything is cleaned up.
        for judge in self.judges():
            judge.close()
        if self.engine is not None:
            self.engine.stop()
        super().tearDown()

    def publish(self, state):
        if self.engine is None:
            self.engine = publisher.Publisher(
                protocol.connector(conf.CONF, self.rabbit.url), f'engine{self.epoch}',
                self.decisions.extend, self.settled.extend, logging.getLogger('engine'))
            self.engine.start()
            self.wait_for(lambda: self.engine._transport is not None)
        self.engine.publish(snapshot.Snapshot(state, 900.0, self.epoch))
