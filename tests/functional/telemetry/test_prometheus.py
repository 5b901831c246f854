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

"""The reader against a real Prometheus that scrapes what Ceilometer's own exporter exports."""

import contextlib
import http.server
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.parse
import urllib.request
import uuid

import numpy as np

from tests.functional import ports
from tracon_watcher.contention import intervals

METERS = ('tracon.clock', 'tracon.cpu.guest', 'tracon.cpu.delay')
_CONFIGURATION = '''global:
  scrape_interval: 500ms
  scrape_timeout: 500ms
scrape_configs:
- job_name: ceilometer
  static_configs:
  - targets: ['127.0.0.1:{first}', '127.0.0.1:{second}']
'''
POLLS, WAIT = 6, 2.0


def reason_to_skip():
    """Why there can be no Prometheus here; empty when there can."""
    if importlib.util.find_spec('ceilometer') is None:
        return 'needs ceilometer (the extra "telemetry")'
    return '' if shutil.which('prometheus') else 'needs prometheus (a package of that name)'


class OtherHost:
    """The exporter of another compute host, which has one text for all times."""

    def __init__(self):
        outer = self
        self.text = b''

        class Handler(http.server.BaseHTTPRequestHandler):

            def do_GET(self):
                self.send_response(200)
                self.send_header('Content-Type', 'text/plain; version=0.0.4')
                self.end_headers()
                self.wfile.write(outer.text)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


def sample(resource, meter, value):
    """A sample as Ceilometer's polling agent hands it to its exporter."""
    return {'counter_name': meter, 'counter_volume': value, 'counter_type': 'cumulative',
            'counter_unit': 'ns', 'resource_id': resource, 'project_id': 'p', 'user_id': 'u',
            'resource_metadata': {'host': 'compute-1', 'display_name': 'it\'s "mine"',
                                  'name': 'instance-1', 'flavor': {'id': '1', 'name': 'small'}}}


class TestRealPrometheus(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        reason = reason_to_skip()
        if reason:
            raise unittest.SkipTest(reason)
        from ceilometer.polling import prom_exporter
        cls.exporter = prom_exporter
        first = ports.free()
        prom_exporter.export('127.0.0.1', first)
        cls.other = OtherHost()
        cls.addClassCleanup(cls.other.stop)
        cls.start_prometheus(first, cls.other.port)
        cls.vms = [str(uuid.uuid4()) for _vm in range(20)]
        cls.since = time.time()
        cls.poll()
        cls.until = time.time()

    @classmethod
    def start_prometheus(cls, first, second):
        path = pathlib.Path(cls.enterClassContext(
            tempfile.TemporaryDirectory(prefix='tracon-prometheus-')))
        (path / 'prometheus.yml').write_text(_CONFIGURATION.format(first=first, second=second))
        port = ports.free()
        cls.endpoint = f'http://127.0.0.1:{port}'
        with open(path / 'log', 'wb') as log:
            process = subprocess.Popen(
                ['prometheus', f'--config.file={path / "prometheus.yml"}',
                 f'--storage.tsdb.path={path / "data"}', f'--web.listen-address=127.0.0.1:{port}'],
                stdout=log, stderr=log, env={**os.environ, 'GOMAXPROCS': '1'})
        cls.addClassCleanup(process.wait)
        cls.addClassCleanup(process.terminate)
        # It finds its targets some seconds after it is ready.
        query = urllib.parse.urlencode({'query': 'sum(up)'})
        for _attempt in range(600):
            with contextlib.suppress(OSError):
                with urllib.request.urlopen(f'{cls.endpoint}/api/v1/query?{query}',
                                            timeout=5) as answer:
                    result = json.load(answer)['data']['result']
                    if result and result[0]['value'][1] == '2':
                        return
            time.sleep(0.1)
        raise AssertionError((path / 'log').read_text())

    @classmethod
    def poll(cls):
        """Poll several times, as the agent does: the values of the last poll go, others come."""
        begin = time.monotonic_ns()
        # The first VM has just left this host, which goes on to show its last values.
        left = cls.vms[0]
        cls.other.text = ''.join(
            f'ceilometer_{meter.replace(".", "_")}{{resource="{left}",counter="x"}} {value}\n'
            for meter, value in zip(METERS, (4e16, 9e15, 8e15))).encode()
        for _poll in range(POLLS):
            now = time.monotonic_ns()
            for meter in METERS:
                cls.exporter.purge_stale_metrics(meter)
            cls.exporter.collect_metrics([
                sample(vm, meter, value) for index, vm in enumerate(cls.vms)
                for meter, value in zip(METERS, (
                    now, 10**12 + (now - begin) * index // 10, (now - begin) * 2))])
            time.sleep(WAIT)

    def reader(self, **settings):
        from tracon_watcher.telemetry import prometheus
        from tracon_watcher.telemetry import rest
        service = rest.Service(rest.plain(self.endpoint), 'Prometheus')
        return prometheus.PrometheusReader(service, prometheus.Settings(
            scrape_seconds=0.5, **settings))

    def read(self, reader=None, meters=METERS):
        return (reader or self.reader()).read(self.since, self.until, meters)

    def test_scrapes_of_polls_become_rates(self):
        reader = self.reader()
        found = self.read(reader)
        self.assertEqual(set(self.vms), set(found.resources))
        self.assertGreater(len(found.row), 20 * POLLS)
        self.assertTrue(((found.at >= self.since) & (found.at < self.until)).all())
        # Polls are near to each other here, and the machine may be busy: the times may disagree.
        rates = intervals.between(found.row, found.at, found.values, 0,
                                  intervals.Rules(resolution=5.0))
        known = rates.known()
        index = np.array([self.vms.index(name) for name in found.resources])[rates.row]
        for vm in range(len(self.vms)):
            self.assertGreaterEqual((known & (index == vm)).sum(), POLLS - 3, vm)
        np.testing.assert_allclose(rates.rates[known, 1], 0.1e9 * index[known], rtol=1e-6,
                                   atol=1.0)
        np.testing.assert_allclose(rates.rates[known, 2], 2e9, rtol=1e-6)
        # The one that is still shown elsewhere loses what touches that one sample.
        self.assertGreater((~known & (index == 0)).sum(), 0)

    def test_parts_are_the_same_as_the_whole(self):
        whole = self.read()
        for series, parts in ((19, 17), (1, 259)):
            reader = self.reader(series=series)
            found = self.read(reader)
            self.assertEqual(parts, reader.last.parts)
            self.assertEqual(sorted(whole.resources), sorted(found.resources))
            place = [whole.resources.index(name) for name in found.resources]
            order = np.lexsort((found.at, np.array(place)[found.row]))
            before = np.lexsort((whole.at, whole.row))
            np.testing.assert_array_equal(whole.at[before], found.at[order])
            np.testing.assert_array_equal(whole.values[before], found.values[order])

    def test_conditions(self):
        reader = self.reader(only={'vm_instance': 'compute-1', 'resource_name':
                                   'it\'s "mine":instance-1'})
        self.assertEqual(set(self.vms), set(self.read(reader).resources))
        self.assertEqual((), self.read(self.reader(only={'vm_instance': 'nowhere'})).resources)

    def test_what_is_not_exported_is_unknown(self):
        found = self.read(meters=('tracon.clock', 'tracon.perf.cycles'))
        self.assertTrue(np.isnan(found.values[:, 1]).all())
        self.assertEqual((), self.read(meters=('tracon.perf.cycles',)).resources)
