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

"""What the engine makes of the counters of hosts. All samples are synthetic."""

import math
import unittest

import numpy as np

from tests.unit.engine import engines
from tracon_watcher.engine import idle_shares
from tracon_watcher.telemetry import meters
from tracon_watcher.telemetry import samples

HOUR = 3600.0
BEGIN = 480_000
POLLING = 60.0
#: Of a host with two cores and two disks: what rises in a second.
RATES = {meters.HOST_CLOCK: 1e9, meters.HOST_BUSY: 0.2e9, meters.HOST_IDLE: 1.7e9,
         meters.HOST_IOWAIT: 0.1e9, meters.HOST_STEAL: 0.0, meters.HOST_DISK_BUSY: 0.5e9}
GAUGES = {meters.HOST_DISKS: 2.0, meters.HOST_MEMORY: 100.0, meters.HOST_MEMORY_AVAILABLE: 40.0}


class Reader:
    """Telemetry of hosts whose counters rise at stated rates since a boot."""

    resolution = ahead = 0.0

    def __init__(self):
        self.hosts = {}
        self.asked = []
        self.fails = False

    def host(self, name, boots=(0.0,), **changes):
        """Add a host.

        :param boots: at which its counters begin again, seconds since the epoch
        :param changes: of meters by their Python name; None: it lacks this one
        """
        values = {**RATES, **GAUGES, **{getattr(meters, key): value
                                        for key, value in changes.items()}}
        self.hosts[name] = boots, {one.name: (value, one in GAUGES)
                                   for one, value in values.items() if value is not None}

    def read(self, since, until, names):
        self.asked.append(since)
        if self.fails:
            raise samples.TelemetryUnavailable('the source is broken')
        times = [at for at in (since + 7.0, since + 67.0) if at < until]
        rows = [(place, at, [self._value(of, name, at) for name in names])
                for place, of in enumerate(self.hosts.values()) for at in times
                if at >= of[0][0]]
        return samples.Readings(
            tuple(self.hosts), tuple(names), np.array([row[0] for row in rows], dtype=np.intp),
            np.array([row[1] for row in rows]),
            np.array([row[2] for row in rows]).reshape(-1, len(names)))

    @staticmethod
    def _value(of, name, at):
        boots, values = of
        if name not in values:
            return math.nan
        value, gauge = values[name]
        return value if gauge else value * (at - max(boot for boot in boots if boot <= at))


class IdleShares(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.reader = Reader()
        self.history = idle_shares.IdleShareHistory(self.reader, POLLING)

    def collect(self, hours=0, minutes=10):
        self.history.collect((BEGIN + hours) * HOUR + minutes * 60.0)
        return self.history.shares

    def of(self, name):
        """Return the latest idle shares of a host."""
        shares = self.history.shares
        return shares.values[-1, shares.hosts.index(name)].tolist()

    def test_shares_of_each_hour_of_a_day(self):
        self.reader.host('a')
        shares = self.collect()
        self.assertEqual(tuple(range(BEGIN - 24, BEGIN)), shares.hours)
        self.assertEqual((24, 1, 3), shares.values.shape)
        # Of two cores 1.8 have nothing to do or wait; of two disks half of one is busy.
        np.testing.assert_allclose(shares.values, np.broadcast_to([0.9, 0.4, 0.75], (24, 1, 3)))

    def test_what_is_not_counted_is_unknown_and_not_zero(self):
        self.reader.host('no disks', HOST_DISK_BUSY=None, HOST_DISKS=None)
        self.reader.host('old agent', HOST_MEMORY=None, HOST_MEMORY_AVAILABLE=None,
                         HOST_DISK_BUSY=None, HOST_DISKS=None)
        self.reader.host('clock only', HOST_BUSY=None)
        self.reader.host('no clock', HOST_CLOCK=None)
        self.collect()
        np.testing.assert_allclose(self.of('no disks'), [0.9, 0.4, np.nan])
        np.testing.assert_allclose(self.of('old agent'), [0.9, np.nan, np.nan])
        np.testing.assert_allclose(self.of('clock only'), [np.nan, 0.4, 0.75])
        self.assertNotIn('no clock', self.history.shares.hosts)

    def test_an_hour_with_a_boot_is_unknown(self):
        self.reader.host('late', (0.0, (BEGIN - 0.4) * HOUR))
        # Its counters are higher after the hour than before it, though they began again.
        self.reader.host('twice', (0.0, (BEGIN - 1.1) * HOUR, (BEGIN - 0.7) * HOUR))
        self.reader.host('new', ((BEGIN - 0.4) * HOUR,))
        shares = self.collect()
        for name in ('late', 'twice', 'new'):
            cpu, _memory, disk = self.of(name)
            self.assertTrue(math.isnan(cpu) and math.isnan(disk), name)
        before = shares.values[-3, shares.hosts.index('late')]
        np.testing.assert_allclose(before, [0.9, 0.4, 0.75])

    def test_another_number_of_disks_is_unknown(self):
        first = np.array([[0.0, 0, 0, 0, 0, 0, 0, 2, 100, 50]])
        second = np.array([[3600.0, 3600e9, 0, 3600e9, 0, 0, 1800e9, 3, 100, 30]])
        np.testing.assert_allclose(idle_shares._between(first, second), [[1.0, 0.4, np.nan]])
        second[0, 7] = 2
        np.testing.assert_allclose(idle_shares._between(first, second), [[1.0, 0.4, 0.75]])

    def test_only_new_hours_are_read(self):
        self.reader.host('a')
        self.collect()
        self.assertEqual([(BEGIN - 24 + hour) * HOUR for hour in range(25)], self.reader.asked)
        self.reader.asked.clear()
        self.collect(minutes=50)
        # Samples of the next hour's beginning may still be late.
        self.collect(hours=1, minutes=6)
        self.assertEqual([], self.reader.asked)
        self.assertEqual(25, len(self.collect(hours=1, minutes=8).hours))
        self.assertEqual([(BEGIN + 1) * HOUR], self.reader.asked)

    def test_a_week_is_kept(self):
        self.reader.host('a')
        self.collect()
        shares = self.collect(hours=160)
        self.assertEqual(168, len(shares.hours))
        self.assertEqual(BEGIN + 159, shares.hours[-1])

    def test_what_cannot_be_read_is_read_later(self):
        self.reader.host('a')
        self.collect()
        self.reader.fails = True
        self.assertRaises(samples.TelemetryUnavailable, self.collect, 2)
        self.assertEqual(24, len(self.history.shares.hours))
        self.reader.fails = False
        self.assertEqual(26, len(self.collect(2).hours))

    def test_without_counters_nothing_is_known(self):
        shares = self.collect()
        self.assertEqual(((), (24, 0, 3)), (shares.hosts, shares.values.shape))


class InTheEngine(engines.EngineCase):

    def test_the_view_has_them(self):
        reader = Reader()
        reader.host('h1')
        self.engine = self.make(idle=idle_shares.IdleShareHistory(reader, POLLING))
        self.engine.read_idle_shares()
        self.assertEqual([], reader.asked)
        self.lead()
        self.engine.read_idle_shares()
        self.engine.collect()
        self.assertEqual(('h1',), self.engine.view.idle.hosts)
        self.assertEqual(24, len(self.engine.view.idle.hours))
