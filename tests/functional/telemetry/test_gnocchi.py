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

"""The reader against a real Gnocchi: its API, its database, its aggregation, without Keystone."""

import datetime
import importlib.util
import pathlib
import tempfile
import time
import unittest
import uuid

import numpy as np

from tracon_watcher.contention import intervals

METERS = ('tracon.clock', 'tracon.cpu.guest', 'tracon.disk.read.requests')
HOST_METERS = ('tracon.host.clock', 'tracon.host.cpu.busy')
#: The first of five buckets.
START = int(time.time()) // 60 * 60 - 600


def reason_to_skip():
    """Why there can be no Gnocchi here; empty when there can."""
    if importlib.util.find_spec('gnocchi') is None:
        return 'needs gnocchi (the extra "gnocchi")'
    from tracon_lab.cmd import bench_gnocchi_server
    missing = bench_gnocchi_server.missing()
    return f'needs {missing}' if missing else ''


class TestRealGnocchi(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        reason = reason_to_skip()
        if reason:
            raise unittest.SkipTest(reason)
        from tracon_lab.cmd import bench_gnocchi_server
        from tracon_watcher.telemetry import rest
        cls.server = bench_gnocchi_server.Server(pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory(prefix='tracon-gnocchi-'))), processes=1)
        cls.addClassCleanup(cls.server.stop)
        cls.server.start()
        cls.service = rest.Service(rest.plain(cls.server.endpoint, 'admin', ''), 'Gnocchi')
        cls.adapter = rest.plain(cls.server.endpoint, 'admin', '')
        for name, methods in (('tracon', ['last']), ('other', ['mean'])):
            cls.post('archive_policy', {'name': name, 'aggregation_methods': methods,
                                        'definition': [{'granularity': 60, 'points': 1440},
                                                       {'granularity': 300, 'points': 1440}]})
        for name in ('instance', 'nova_compute'):
            cls.post('resource_type', {'name': name})

    @classmethod
    def post(cls, path, body):
        return cls.adapter.post(f'v1/{path}', json=body)

    def setUp(self):
        super().setUp()
        # Each test has a cloud of its own.
        for name in ('instance', 'nova_compute'):
            self.adapter.delete(f'v1/resource/{name}', json={'>=': {
                'started_at': '2000-01-01T00:00:00+00:00'}}, raise_exc=False)

    def create(self, name=None, resource_type='instance'):
        name = name or str(uuid.uuid4())
        self.post(f'resource/{resource_type}', {'id': name})
        return name

    def measure(self, resource, series, policy='tracon'):
        """Hand measures {meter: [(seconds after the start, value)]} in, and have them aggregated.
        """
        self.post('batch/resources/metrics/measures?create_metrics=true', {resource: {
            meter: {'archive_policy_name': policy, 'measures': [
                {'timestamp': START + at, 'value': value} for at, value in points]}
            for meter, points in series.items()}})

    def reader(self, **settings):
        from tracon_watcher.telemetry import gnocchi
        return gnocchi.GnocchiReader(self.service, gnocchi.Settings(**settings))

    def read(self, reader, meters=METERS):
        return reader.read(START, START + 600, meters)

    def test_what_ceilometer_publishes_becomes_rates(self):
        vms = [self.create() for _vm in range(7)]
        for index, vm in enumerate(vms):
            # A poll each 60 seconds, 17 seconds into the bucket, and a little late now and then.
            polls = [(60 * poll + 17 + poll % 2 * 3, 1e15 + (60 * poll + poll % 2 * 3) * 1e9)
                     for poll in range(5)]
            self.measure(vm, {METERS[0]: polls,
                              METERS[1]: [(at, 7e9 + 0.1 * index * (clock - 1e15))
                                          for at, clock in polls],
                              METERS[2]: [(at, 2.0**53 - 9e9 + (at - 17) * index * 10)
                                          for at, clock in polls]})
        self.server.fill('--aggregate')
        reader = self.reader(page=3)
        found = self.read(reader)
        self.assertEqual(set(vms), set(found.resources))
        self.assertEqual((7, 3, 0, None), (reader.last.resources, reader.last.pages,
                                           reader.last.failed, reader.last.first))
        self.assertEqual(35, len(found.row))
        self.assertEqual(set(START + 60.0 * np.arange(5)), set(found.at))
        rates = intervals.between(found.row, found.at, found.values, 0,
                                  intervals.Rules(resolution=reader.resolution))
        self.assertEqual(28, rates.known().sum())
        index = np.array([vms.index(name) for name in found.resources])[rates.row]
        np.testing.assert_allclose(rates.rates[:, 1], 0.1e9 * index, rtol=1e-7)
        np.testing.assert_allclose(rates.rates[:, 2], 10.0 * index, rtol=1e-7)

    def test_several_samples_of_a_bucket_give_the_last(self):
        vm = self.create()
        self.measure(vm, {METERS[0]: [(5, 1.0), (50, 3.0), (30, 2.0), (61, 4.0)]})
        self.server.fill('--aggregate')
        found = self.read(self.reader())
        np.testing.assert_array_equal([3.0, 4.0], found.values[:, 0])
        self.assertTrue(np.isnan(found.values[:, 1:]).all())

    def test_a_day_of_cpu_use_by_ceilometers_own_meter(self):
        from tracon_watcher.cmd import export
        vm, before, begin = str(uuid.uuid4()), str(uuid.uuid4()), START // 300 * 300 - 86400
        # It has been deleted meanwhile, another one the day before.
        for name, at in ((vm, START), (before, begin - 3600)):
            self.post('resource/instance', {
                'id': name, 'started_at': '2020-01-01T00:00:00+00:00', 'ended_at': (
                    datetime.datetime.fromtimestamp(at, datetime.timezone.utc).isoformat())})
        # A quarter of a core, polled each five minutes for the last two hours of the day.
        polls = [(begin - START + at, 0.25e9 * at) for at in range(86400 - 7187, 86400 + 900, 300)]
        self.measure(vm, {'cpu': polls}, policy='other')
        self.server.fill('--aggregate')
        reader = self.reader(granularity=300, aggregation='mean')
        reader.lists['vm'].ended_since = begin
        found, _asked = export._day(reader, 'cpu', begin, lambda share: None)
        self.assertEqual({vm}, set(reader.lists['vm'].names.values()))
        self.assertEqual([vm], list(found))
        self.assertTrue(np.isnan(found[vm][:264]).all())
        np.testing.assert_allclose(0.25, found[vm][264:])

    def test_hosts_are_known_by_their_names(self):
        vm, host = self.create(), self.create('compute-1.example', 'nova_compute')
        self.measure(vm, {METERS[0]: [(0, 5.0)]})
        self.measure(host, {HOST_METERS[1]: [(0, 6.0)]})
        self.server.fill('--aggregate')
        found = self.read(self.reader(), METERS + HOST_METERS)
        self.assertEqual({vm, host}, set(found.resources))
        at = found.resources.index(host)
        np.testing.assert_array_equal(
            [[np.nan, np.nan, np.nan, np.nan, 6.0]], found.values[found.row == at])

    def test_vms_come_end_and_are_deleted(self):
        first, second, third = (self.create() for _vm in range(3))
        for vm in (first, second, third):
            self.measure(vm, {METERS[0]: [(0, 5.0)]})
        self.server.fill('--aggregate')
        reader = self.reader()
        self.assertEqual({first, second, third}, set(self.read(reader).resources))
        fourth = self.create()
        self.measure(fourth, {METERS[0]: [(0, 5.0)]})
        self.server.fill('--aggregate')
        self.adapter.patch(f'v1/resource/instance/{first}', json={
            'ended_at': datetime.datetime.now(datetime.UTC).isoformat()})
        self.adapter.delete(f'v1/resource/instance/{second}')
        self.assertEqual({third, fourth}, set(self.read(reader).resources))
        self.assertIsNone(reader.last.first)

    def test_vms_without_our_meters_are_none(self):
        self.create()
        vm = self.create()
        self.measure(vm, {'memory': [(0, 5.0)]})
        self.server.fill('--aggregate')
        reader = self.reader()
        self.assertEqual((), self.read(reader).resources)
        self.assertIsNone(reader.last.first)
        self.assertEqual((), self.read(reader, ()).resources)

    def test_a_vm_under_another_policy_is_left_out_at_last(self):
        from tracon_watcher.telemetry import gnocchi
        vms = [self.create() for _vm in range(12)]
        for vm in vms:
            self.measure(vm, {METERS[0]: [(0, 5.0)]}, 'other' if vm == vms[5] else 'tracon')
        self.server.fill('--aggregate')
        reader = self.reader(page=4)
        with self.assertLogs(gnocchi.LOG, 'WARNING') as logs:
            self.assertEqual(8, len(self.read(reader).resources))
            for _round in range(3):
                self.assertEqual(11, len(self.read(reader).resources))
        self.assertIn('unknown aggregation', logs.output[0])
        self.assertEqual(set(vms) - {vms[5]}, set(self.read(reader).resources))
        self.assertEqual((0, 1), (reader.last.failed, reader.last.unread))

    def test_a_policy_without_what_is_asked_for_is_an_error_that_says_so(self):
        from tracon_watcher.telemetry import samples
        self.measure(self.create(), {METERS[0]: [(0, 5.0)]})
        for settings, said in (({'aggregation': 'max'}, 'unknown aggregation'),
                               ({'granularity': 61.0}, 'Granularities are missing'),
                               ({'resource_types': {'vm': 'nonesuch'}}, 'nonesuch')):
            with self.assertRaisesRegex(samples.TelemetryUnavailable, said):
                self.read(self.reader(**settings))

    def test_more_resources_than_a_page_of_the_listing(self):
        vms = {self.create() for _vm in range(9)}
        reader = self.reader(listing_page=2)
        self.read(reader)
        self.assertEqual(vms, set(reader.lists['vm'].names.values()))


class TestBenchmark(unittest.TestCase):

    def test_every_way_reads_everything(self):
        reason = reason_to_skip()
        if reason:
            self.skipTest(reason)
        import argparse
        import io

        from tracon_lab.cmd import bench_gnocchi
        from tracon_lab.cmd import bench_gnocchi_server
        from tracon_watcher import progress
        arguments = argparse.Namespace(vms=30, sample=10, window=5, points=20, other_metrics=2,
                                       page=10, pages=[4], at_once=2, processes=1)
        with tempfile.TemporaryDirectory(prefix='tracon-gnocchi-') as folder:
            with bench_gnocchi_server.running(pathlib.Path(folder), 1) as server:
                shown = progress.Progress(1.0, io.StringIO())
                end = bench_gnocchi.fill(arguments, server, shown)
                rows = bench_gnocchi.measure(arguments, server, end, shown)
        requests = {row[0]: row[2] for row in rows}
        self.assertEqual(4, requests['one cycle, in pages of 10'])
        self.assertEqual(9, requests['pages of 4'])
        self.assertEqual(30 * 8, requests['a request for each VM and meter'])
        for row in rows:
            self.assertGreater(row[3], 0.0)
