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

"""The pollster of probes beside an HTTP server that answers as tracon-probe does."""

import http.server
import json
import subprocess
import sys
import threading
import unittest

from ceilometer.polling import plugin_base

from tests.unit.telemetry import test_ceilometer
from tracon_watcher.probe import controller
from tracon_watcher.telemetry import ceilometer
from tracon_watcher.telemetry import meters

AT = 1795339800.5


def phase(state='quiet', ratio=1.02, low=0.9, at=AT):
    """Return a phase as tracon-probe shows it."""
    return {'state': state, 'reason': '', 'at': at, 'age': 3.0, 'ratio': ratio, 'low': low,
            'high': 1.2}


def states(**of_compute_1):
    """Return an answer of tracon-probe."""
    return {'schema': ceilometer.SCHEMA, 'at': AT, 'sensors': [
        {'host': 'compute-1', 'host_type': 'small', 'address': '192.0.2.1:8640',
         'phases': of_compute_1}]}


class Handler(http.server.BaseHTTPRequestHandler):

    def do_GET(self):
        self.server.asked.append(self.path)
        status, body = self.server.answer
        self.send_response(status)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *unused):
        pass


class ProbePollsterTest(unittest.TestCase):

    def setUp(self):
        self.server = http.server.HTTPServer(('127.0.0.1', 0), Handler)
        self.server.asked = []
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.url = f'http://127.0.0.1:{self.server.server_port}/'
        self.pollster = ceilometer.ProbePollster(test_ceilometer.configuration())

    def poll(self, content, status=200):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.server.answer = status, body
        return {one.name: one for one in self.pollster.get_samples(None, {}, [self.url])}

    def test_it_is_one_of_ceilometers(self):
        self.assertIsInstance(self.pollster, plugin_base.PollsterBase)
        self.assertIsNone(self.pollster.default_discovery)

    def test_both_sides_speak_of_the_same(self):
        self.assertEqual(controller.STATES, ceilometer.SCHEMA)

    def test_quiet_and_contended(self):
        found = self.poll(states(memory=phase('contended', 1.8, 1.5), storage=phase()))
        self.assertEqual(['/v1/states'], self.server.asked)
        self.assertEqual({'tracon.probe.memory': 1.8, 'tracon.probe.memory.low': 1.5,
                          'tracon.probe.storage': 1.02, 'tracon.probe.storage.low': 1.0},
                         {name: one.volume for name, one in found.items()})
        for name, one in found.items():
            self.assertEqual(
                ('compute-1', 'gauge', 'ratio', '2026-11-22T09:30:00.500000+00:00',
                 {'host': 'compute-1'}),
                (one.resource_id, one.type, one.unit, one.timestamp, one.resource_metadata))
            self.assertIn(meters.BY_NAME[name], meters.PROBE_METERS)

    def test_unknown_is_no_sample(self):
        self.assertEqual({}, self.poll(states(memory=phase('unknown', None, None, None))))
        self.assertEqual({}, self.poll(states()))
        # One reading is known, and does not make a state.
        self.assertEqual({'tracon.probe.memory'}, set(self.poll(states(memory=phase('unknown')))))

    def test_what_does_not_answer_is_said_once(self):
        for content, status in (
                (b'', 200), (b'{', 200), (b'[]', 200), (b'{}', 200), (states(), 500),
                ({'schema': 'tracon-probe-states/2', 'sensors': []}, 200),
                (states(memory={'ratio': 1.0, 'at': 1.0}), 200),
                (states(memory=phase(ratio='x')), 200),
                (states(memory=phase('contended', low=None)), 200)):
            with self.subTest(content):
                self.pollster = ceilometer.ProbePollster(test_ceilometer.configuration())
                with self.assertLogs(ceilometer.LOG.logger, 'WARNING') as logs:
                    self.assertEqual({}, self.poll(content, status))
                    self.poll(content, status)
                self.assertEqual(1, len(logs.output))
        with self.assertLogs(ceilometer.LOG.logger, 'INFO') as logs:
            self.poll(states(memory=phase()))
        self.assertIn('answers again', logs.output[0])

    def test_one_service_does_not_cost_the_other(self):
        self.server.answer = 200, json.dumps(states(memory=phase())).encode()
        found = list(self.pollster.get_samples(None, {}, ['http://127.0.0.1:1', self.url]))
        self.assertEqual(2, len(found))

    def test_an_agent_gets_no_numpy_from_it(self):
        script = ('import sys\nfrom tracon_watcher.telemetry import ceilometer\n'
                  'assert "numpy" not in sys.modules')
        subprocess.run([sys.executable, '-c', script], check=True)
