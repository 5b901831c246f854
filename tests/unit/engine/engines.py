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

"""Engines on a real database, with synthetic telemetry."""

import logging
import threading
import time
import uuid

from oslo_config import cfg

from tests import synthetic
from tests.unit import brokers
from tests.unit.engine import counting
from tests.unit.engine.storage import base
from tracon_watcher.contention import calibration
from tracon_watcher.contention import profile_tracker
from tracon_watcher.engine import collector
from tracon_watcher.engine import engine
from tracon_watcher.engine import inventory_cache
from tracon_watcher.engine import leadership
from tracon_watcher.engine import state
from tracon_watcher.engine.storage import repository
from tracon_watcher.inventory import cloud
from tracon_watcher.messaging import protocol
from tracon_watcher.messaging import publisher
from tracon_watcher.placement import assessment

LEASE = 30.0


class Listener:
    """Only knows whether it listens; where the broker does not answer, it never does."""

    listening = 0
    broker = threading.Event()

    def start(self):
        Listener.broker.wait()
        Listener.listening += 1

    def stop(self):
        Listener.listening -= 1

    def check(self):
        pass


class EngineCase(base.StorageCase):
    """Engines on a real database whose activities are called by hand."""

    def setUp(self):
        super().setUp()
        broker = brokers.of_its_own()
        broker.start()
        self.addCleanup(broker.stop)
        Listener.listening = 0
        Listener.broker.set()
        self.monotonic = 0.0
        self.source = counting.Source(60.0)
        self.servers = {'a': 'h1', 'b': 'h1', 'c': 'h2'}
        self.published = []
        self.engine = self.make()

    def make(self, make_standby=None, probes=None, idle=None):
        parts = engine.Components(
            leadership.Leadership(self.storage.lease, str(uuid.uuid4()), LEASE,
                                  lambda: self.monotonic),
            repository.Storage(self.database).lease, self.storage.learnt, self.inventory,
            inventory_cache.InventoryCache(),
            lambda: collector.Collector(
                self.source, profile_tracker.ProfileTracker(calibration.packaged()), 60.0, 1800.0),
            self.make_publisher, Listener, make_standby=make_standby, probes=probes,
            idle=idle)
        return engine.Engine(parts, engine.Settings(
            judging=assessment.Settings(maximum_age=900.0),
            defaults=state.Defaults(synthetic.HOST_TYPE)), lambda: self.source.now)

    def make_publisher(self):
        conf = cfg.ConfigOpts()
        conf([])
        made = publisher.Publisher(protocol.connector(conf, 'fake://'), 'one', list, list,
                                   logging.getLogger(__name__))
        publish = made.publish
        made.publish = lambda content: (publish(content), self.published.append(content))
        return made

    def inventory(self):
        return cloud.Inventory(
            {name: cloud.Server(name, f'vm {name}', 'p', host, 'm1', {}, 'image', 'active')
             for name, host in self.servers.items()},
            {host: cloud.Hypervisor(host, True, True, cores=2) for host in ('h1', 'h2')}, (), {},
            self.source.now)

    def lead(self, one=None):
        one = one or self.engine
        one.lead()
        self.addCleanup(one.stop)
        one.repair()

    def assert_one_listens(self):
        """Wait for it: listeners begin and end in threads of their own."""
        deadline = time.monotonic() + 120.0
        while Listener.listening != 1 and time.monotonic() < deadline:
            time.sleep(0.01)
        self.assertEqual(1, Listener.listening)
