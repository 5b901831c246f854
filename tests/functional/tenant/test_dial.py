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

"""``tracon dial run`` beside a real HAProxy with three workers, one slowed on purpose."""

import concurrent.futures
import http.client
import http.server
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

import numpy as np

from tests.functional import ports
from tracon_watcher.tenant import haproxy

ROOT = pathlib.Path(__file__).resolve().parents[3]
WORKERS = ('w1', 'w2', 'w3')
#: Requests a second, seconds that one takes on average, and how many times that when slowed.
RATE, SERVICE, SLOWED = 120, 0.01, 9.0
#: Ends only what hangs.
PATIENCE = 120.0
_CONFIGURATION = '''global
    log {folder}/syslog local0
    stats socket {folder}/admin.sock mode 600 level {level}
defaults
    mode http
    log global
    option httplog
    timeout connect 2s
    timeout client 5s
    timeout server 5s
frontend public
    bind 127.0.0.1:{port}
    default_backend web
backend web
    balance roundrobin
    default-server weight 100
'''


class Worker:
    """A Web server that takes an exponential time for each request."""

    def __init__(self):
        outer, times = self, random.Random(1)
        self.slowed = 1.0

        class Handler(http.server.BaseHTTPRequestHandler):

            def do_GET(self):
                time.sleep(outer.slowed * times.expovariate(1 / SERVICE))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Site:
    """HAProxy, its workers, clients, and a syslog that can fall silent and lie."""

    def __init__(self, folder):
        self.folder, self.port = folder, ports.free()
        self.log = folder / 'haproxy.log'
        self.log.touch()
        self.workers = {name: Worker() for name in WORKERS}
        self.api = haproxy.RuntimeAPI(folder / 'admin.sock')
        self.process = None
        self.silent, self.ended = False, threading.Event()
        self.times = []
        self.syslog = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.syslog.bind(str(folder / 'syslog'))
        self.syslog.settimeout(0.2)
        self.threads = [threading.Thread(target=target) for target in (self._store, self._load)]
        for thread in self.threads:
            thread.start()

    def start(self, names=WORKERS, level='admin'):
        """Start HAProxy, and wait until it answers."""
        path = self.folder / 'haproxy.cfg'
        path.write_text(
            _CONFIGURATION.format(folder=self.folder, port=self.port, level=level)
            + ''.join(f'    server {name} 127.0.0.1:{self.workers[name].port}\n'
                      for name in names), encoding='utf-8')
        self.process = subprocess.Popen(['haproxy', '-db', '-f', str(path)],
                                        stderr=subprocess.DEVNULL)
        until(lambda: self.weights() is not None)

    def stop(self):
        """Stop HAProxy at once."""
        if self.process:
            self.process.kill()
            self.process.wait()

    def close(self):
        self.ended.set()
        self.stop()
        for thread in self.threads:
            thread.join()
        for worker in self.workers.values():
            worker.stop()
        self.syslog.close()

    def weights(self):
        """Return the weights in use, or nothing while HAProxy is away."""
        try:
            return [one.weight for one in self.api.servers('web').values()]
        except haproxy.HAProxyFailed:
            return None

    def tail(self, seconds=6.0):
        """Return T90 of what clients measure from now on, in seconds."""
        first = len(self.times)
        time.sleep(seconds)
        return np.percentile(self.times[first:], 90)

    def _store(self):
        while not self.ended.is_set():
            try:
                line = self.syslog.recv(1 << 16)
            except TimeoutError:
                continue
            if not self.silent:
                with self.log.open('ab') as stream:
                    stream.write(re.sub(rb'^<\d+>', b'', line).rstrip() + b'\n')

    def _load(self):
        """Send requests at random times that do not wait for answers."""
        gaps = random.Random(2)
        due = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            while not self.ended.wait(max(due - time.monotonic(), 0)):
                due += gaps.expovariate(RATE)
                pool.submit(self._ask)

    def _ask(self):
        started = time.monotonic()
        client = http.client.HTTPConnection('127.0.0.1', self.port, timeout=10)
        try:
            client.request('GET', '/')
            client.getresponse().read()
            self.times.append(time.monotonic() - started)
        except (OSError, http.client.HTTPException):
            pass
        finally:
            client.close()


def until(condition):
    """Wait until a condition holds.

    :raises AssertionError: when it never does
    """
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError('waited in vain')
        time.sleep(0.1)


@unittest.skipUnless(shutil.which('haproxy'), 'needs haproxy (a package of that name)')
class TestDial(unittest.TestCase):

    def setUp(self):
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.site = Site(self.folder)
        self.addCleanup(self.site.close)
        self.metrics_port = ports.free()
        self.said = self.folder / 'dial.log'
        (self.folder / 'dial.yaml').write_text(f'''
            socket: {self.folder}/admin.sock
            log: {self.site.log}
            backend: web
            workers: [w1, w2, w3]
            peak_rate: 100
            interval_seconds: 1
            quiet_readings: 20
            metrics_port: {self.metrics_port}
            ''', encoding='utf-8')

    def run_dial(self):
        with self.said.open('ab') as stream:
            return subprocess.Popen(
                [sys.executable, '-m', 'tracon_watcher.cmd.app', 'dial', 'run', '--config',
                 str(self.folder / 'dial.yaml')], stderr=stream, cwd=ROOT)

    def metric(self, name):
        """Return a metric, NaN while there is none."""
        try:
            with urllib.request.urlopen(f'http://127.0.0.1:{self.metrics_port}/') as answer:
                found = re.search(rf'^tracon_dial_{re.escape(name)} (.+)$',
                                  answer.read().decode(), re.MULTILINE)
        except OSError:
            return np.nan
        return float(found[1]) if found else np.nan

    def until_said(self, words, times=1):
        """Wait until the program has logged words, and see that it did not do so more often."""
        until(lambda: len(re.findall(words, self.said.read_text())) >= times)
        self.assertEqual(times, len(re.findall(words, self.said.read_text())), words)

    def contended(self):
        weights = self.site.weights()
        return bool(weights) and 3 * weights[0] < min(weights[1:])

    def equal(self):
        return self.site.weights() == [100] * 3

    def test_contention_and_faults(self):
        site = self.site
        site.start()
        process = self.run_dial()
        self.addCleanup(process.kill)
        until(lambda: self.metric('learning') == 0)
        self.assertEqual([100] * 3, site.weights())

        with self.subTest('one worker is slowed: load shifts, and the tail gets shorter'):
            site.workers['w1'].slowed = SLOWED
            unaware = site.tail(2.0)
            until(self.contended)
            self.until_said(r'w1 is contended: T90')
            self.assertLess(site.tail(), 0.8 * unaware)
            self.assertGreater(self.metric('background_load{worker="w1"}'), 0.3)

        with self.subTest('HAProxy is restarted: it gets the weights again'):
            site.stop()
            site.start()
            until(self.contended)
            self.until_said('HAProxy had other weights')

        with self.subTest('contention ends: equal weights'):
            site.workers['w1'].slowed = 1.0
            until(self.equal)
            self.until_said('w1 is contended no more')

        with self.subTest('the log is rotated: nothing happens'):
            site.log.rename(self.folder / 'haproxy.log.1')
            site.log.touch()
            before = self.said.read_text()
            site.tail(4.0)
            self.assertEqual((0, before), (self.metric('blind'), self.said.read_text()))

        with self.subTest('the log falls silent: equal weights, said once'):
            site.workers['w1'].slowed = SLOWED
            until(self.contended)
            site.silent = True
            until(self.equal)
            site.tail(4.0)
            self.until_said(r'blind, so weights are equal: \S+ tells of \d+ of \d+ requests')
            site.silent = False
            self.until_said('sees again')
            until(self.contended)

        with self.subTest('HAProxy and its socket are gone: equal weights when they are back'):
            site.stop()
            self.until_said(r'blind, so weights are equal: \S+admin.sock')
            site.start()
            self.until_said('sees again', 2)

        with self.subTest('a worker is removed: the others go on'):
            site.stop()
            site.start(('w1', 'w2'))
            self.until_said('w3 is not available')
            until(lambda: self.metric('share{worker="w3"}') != self.metric('share{worker="w3"}'))
            site.stop()
            site.start()
            self.until_said('w3 is available')

        with self.subTest('SIGTERM: equal weights'):
            until(self.contended)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(0, process.wait(PATIENCE))
            self.assertTrue(self.equal())

    def test_what_it_cannot_work_with(self):
        for options, words in (({'level': 'operator'}, 'Permission denied; the stats socket'),
                               ({'names': ('w1', 'w2')}, "workers='w3': backend web has no such")):
            with self.subTest(words):
                self.site.start(**options)
                self.assertEqual(2, self.run_dial().wait(PATIENCE))
                self.assertIn(words, self.said.read_text())
                self.site.stop()
