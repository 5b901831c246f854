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

"""HAProxy's log and runtime API as recorded from HAProxy 2.6, settings, and the service."""

import contextlib
import logging
import math
import pathlib
import socket
import tempfile
import threading
import unittest

import prometheus_client

from tests.unit.folder import FolderCase
from tracon_watcher import errors
from tracon_watcher.tenant import dial
from tracon_watcher.tenant import haproxy
from tracon_watcher.tenant import settings as dial_settings

LINE = ('Nov 29 09:42:20 lb haproxy[77]: 127.0.0.1:46964 [29/Nov/2026:09:42:20.791] public '
        'web/w1 {} {} 198 - - {} 1/1/0/0/0 0/0 "GET /a HTTP/1.1"')
STATE = '''1
# be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight
3 web 1 w1 127.0.0.1 2 0 30 100
3 web 2 w2 127.0.0.1 2 0 100 100
3 web 3 w3 127.0.0.1 0 1 100 100
3 web 4 w4 127.0.0.1 2 0 0 100
'''
STAT = '''# pxname,svname,qcur,stot,status
web,w1,0,{},UP
web,w2,0,7,no check
web,w3,0,,MAINT
web,w4,0,0,UP
'''


def settings(**others):
    return dial_settings.Settings(pathlib.Path('s'), pathlib.Path('l'), 'web', ('w1', 'w2'), 100.0,
                                  **others)


class TestRequest(unittest.TestCase):

    def latency(self, times, status=200, end='----', line=LINE):
        return haproxy.request(line.format(times, status, end).encode(), 'web')

    def test_latency(self):
        self.assertEqual(('w1', 30 + 4 + 50, 4), self.latency('9/30/4/50/99'))
        self.assertEqual(('w1', 84, 4), self.latency('-1/30/4/50/+84'))
        # HAProxy waited a second for it, and the client was answered 504.
        self.assertEqual(('w1', 1000, 0), self.latency('5/0/0/-1/1005', 504, 'sH--'))
        for failed in (('0/0/-1/-1/3', 503, 'SC--'), ('0/0/0/-1/3', -1, 'CH--'),
                       ('0/0/0/1/3', 500)):
            name, latency, _connect = self.latency(*failed)
            self.assertTrue(name == 'w1' and math.isnan(latency), failed)

    def test_lies(self):
        for times in ('0/0/0/-5/7', '0/0/0/9999999999/9', '0/0/0/4000000/4000000', '1/2/3',
                      'a/b/c/d/e', '0/0/0/50/9', '0/0/0/5/-1', 'nan/0/0/0/0'):
            with self.subTest(times), self.assertRaises(ValueError):
                self.latency(times)
        with self.assertRaises(ValueError):
            self.latency('0/0/0/5/9', 999)

    def test_what_is_no_request_of_the_backend(self):
        for line in (LINE.replace('web/', 'other/'), 'Server web/w1 is DOWN', '', '\0\xff['):
            self.assertIsNone(self.latency('0/0/0/5/9', line=line))

    def test_a_client_cannot_pose_as_haproxy(self):
        forged = ' [29/Nov/2026:09:42:20.791] public web/w2 0/0/0/9/9 200 1 - - ---- '
        line = LINE.replace('/a HTTP', f'/{forged} HTTP')
        self.assertEqual(('w1', 5, 0), self.latency('0/0/0/5/9', line=line))
        self.assertIsNone(self.latency('0/0/0/5/9', line=line.replace('web/w1 ', 'web: bad ')))


class TestLogFollower(FolderCase):

    def setUp(self):
        self.path = pathlib.Path(self.enterContext(
            tempfile.TemporaryDirectory(dir=self.folder))) / 'log'
        self.path.write_bytes(b'old\n')
        self.follower = haproxy.LogFollower(self.path)
        self.addCleanup(lambda: self.follower._stream.close())

    def append(self, text):
        with self.path.open('ab') as stream:
            stream.write(text)

    def test_whole_lines_once(self):
        self.assertEqual([], self.follower.lines())
        self.append(b'one\ntw')
        self.assertEqual([b'one'], self.follower.lines())
        self.append(b'o\n')
        self.assertEqual([b'two'], self.follower.lines())

    def test_rotated(self):
        self.append(b'one\n')
        self.path.rename(self.path.with_suffix('.1'))
        with self.assertRaisesRegex(haproxy.HAProxyFailed, 'log: No such file'):
            self.follower.lines()
        self.append(b'two\n')
        self.assertEqual([b'two'], self.follower.lines())
        self.append(b'three\n')
        self.path.rename(self.path.with_suffix('.2'))
        self.append(b'four\n')
        self.assertEqual([b'three', b'four'], self.follower.lines())

    def test_truncated(self):
        self.append(b'one\nhalf')
        self.follower.lines()
        self.path.write_bytes(b'two\n')
        self.assertEqual([b'two'], self.follower.lines())


class Answering:
    """A runtime API with recorded answers, that can be away."""

    def __init__(self, sessions=5):
        self.sessions, self.away, self.commands = sessions, False, []
        self.weights = {'w1': 100, 'w2': 100}

    def servers(self, _backend):
        if self.away:
            raise haproxy.HAProxyFailed('the socket is gone')
        return {name: haproxy.Server(weight, 100, True, self.sessions)
                for name, weight in self.weights.items()}

    def set_weights(self, _backend, weights):
        if self.away:
            raise haproxy.HAProxyFailed('the socket is gone')
        self.commands.append(dict(weights))
        self.weights.update(weights)


class TestRuntimeAPI(FolderCase):

    def setUp(self):
        self.path = self.folder / self.id().rpartition('.')[2]
        self.answers, self.asked = {}, []
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(str(self.path))
        self.server.listen()
        thread = threading.Thread(target=self.serve)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.close)
        self.addCleanup(self.server.shutdown, socket.SHUT_RDWR)
        self.api = haproxy.RuntimeAPI(self.path)

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.server.accept()
                with connection:
                    self.asked.append(connection.recv(4096).decode().strip())
                    connection.sendall(self.answers.get(self.asked[-1], '\n').encode())

    def test_servers(self):
        self.answers = {'show servers state web': STATE, 'show stat web 4 -1': STAT.format(12)}
        self.assertEqual({
            'w1': haproxy.Server(30, 100, True, 12), 'w2': haproxy.Server(100, 100, True, 7),
            'w3': haproxy.Server(100, 100, False, 0), 'w4': haproxy.Server(0, 100, False, 0)},
            self.api.servers('web'))

    def test_weights(self):
        self.api.set_weights('web', {'w1': 3, 'w2': 250})
        self.assertEqual(['set server web/w1 weight 3; set server web/w2 weight 250'], self.asked)

    def test_what_it_does_not_do(self):
        command = 'show servers state web'
        for answer, words in (('Can\'t find backend.\n', 'Can\'t find backend'), ('', 'no answer'),
                              ('1\n# a b\n1 2\n', 'that HAProxy 2.6 does not give')):
            self.answers = {command: answer, 'show stat web 4 -1': STAT.format('x')}
            with self.subTest(words), self.assertRaisesRegex(haproxy.HAProxyFailed, words):
                self.api.servers('web')
        self.answers = {'set server web/w1 weight 3': 'Permission denied\n'}
        with self.assertRaisesRegex(haproxy.HAProxyFailed, 'denied; the stats socket needs'):
            self.api.set_weights('web', {'w1': 3})
        with self.assertRaisesRegex(haproxy.HAProxyFailed, 'none: No such file'):
            haproxy.RuntimeAPI(self.folder / 'none').servers('web')


class Lines:
    """A log that has lines for one call."""

    def __init__(self):
        self.now = []

    def lines(self):
        found, self.now = self.now, []
        return found


class TestDial(unittest.TestCase):
    """One minute after the other, with a clock, a log and an API that do as they are told."""

    def setUp(self):
        self.api, self.log, self.time = Answering(), Lines(), 0.0
        self.chosen = settings(quiet_readings=20)
        self.make()

    def make(self, **others):
        self.observer = haproxy.Observer(self.chosen, self.api, self.log, lambda: self.time)
        self.dial = dial.Dial(self.chosen, self.api, self.observer, **others)
        self.dial.start()
        self.api.commands.clear()

    def step(self, slow=20, number=60, figures=200):
        """Let an interval pass, and return the lines that were logged."""
        self.time += 10.0
        self.api.sessions += 60
        for name, latency in (('w1', slow), ('w2', 20)):
            self.log.now += [LINE.replace('w1', name).format(
                f'0/0/1/{latency - 1}/{latency + 2}', figures, '----').encode()] * number
        with self.assertLogs('tracon_watcher.tenant.dial', logging.INFO) as caught:
            logging.getLogger('tracon_watcher.tenant.dial').info('')
            self.dial.step()
        return [record.getMessage() for record in caught.records[1:]]

    def learnt(self):
        self.assertEqual([], sum((self.step() for _ in range(12)), []))

    def test_one_line_a_change(self):
        self.learnt()
        first, [second], [third], *more = [self.step(slow=60) for _ in range(6)]
        self.assertEqual([], first)
        self.assertRegex(second, r'^web: w1 is contended: T90 60 ms.*; weights are w1 \d+, w2 256')
        # Half of all requests are taken from it, by steps of a fifth.
        self.assertRegex(third, r'^web: weights are w1 \d+, w2 256')
        self.assertEqual(['web: weights are w1 5, w2 256'], sum(more, []))
        self.assertLess(3 * self.api.weights['w1'], self.api.weights['w2'])
        text = prometheus_client.generate_latest(self.dial).decode()
        self.assertIn('tracon_dial_contended{worker="w1"} 1.0', text)
        self.assertIn('tracon_dial_tail_seconds{worker="w2"} 0.02', text)

        self.api.weights = {'w1': 100, 'w2': 100}
        [line] = self.step(slow=60)
        self.assertRegex(line, '^web: HAProxy had other weights; weights are w1')

    def test_dry_run_sets_nothing(self):
        self.make(dry_run=True)
        self.learnt()
        lines = sum((self.step(slow=60) for _ in range(6)), [])
        self.assertRegex(lines[0], 'weights would be w1')
        self.dial.run(lambda: False)
        self.assertEqual([], self.api.commands)

    def test_silent_log(self):
        self.learnt()
        lines = [self.step(number=0) for _ in range(5)]
        self.assertEqual([[], ['web: blind, so weights are equal: l tells of 0 of 120 requests'],
                          [], [], []], lines)
        self.assertEqual(['web: sees again'], self.step())

    def test_a_log_of_lies_is_a_silent_one(self):
        self.learnt()
        lines = [self.step(figures=7) for _ in range(2)]
        self.assertRegex(lines[1][0], 'l tells of 0 of 120 requests')
        self.assertEqual(240, self.observer.refused)

    def test_socket_gone(self):
        self.learnt()
        for _ in range(6):
            self.step(slow=60)
        self.api.away = True
        self.assertEqual([[], ['web: blind, so weights are equal: the socket is gone'], []],
                         [self.step() for _ in range(3)])
        self.api.away = False
        # HAProxy was not restarted, and has the weights of before still.
        self.assertEqual(['web: sees again; weights are w1 100, w2 100'], self.step())

    def test_a_restart_of_haproxy_is_no_silence(self):
        self.learnt()
        self.api.sessions = 3
        self.assertEqual([], self.step())

    def test_weights_that_are_refused_are_told_once(self):
        self.learnt()

        def refuse(*_):
            raise haproxy.HAProxyFailed('denied')
        self.api.set_weights = refuse
        lines = sum((self.step(slow=60) for _ in range(6)), [])
        self.assertEqual(1, sum('weights are not set: denied' in line for line in lines))

    def test_equal_weights_at_the_end(self):
        self.api.weights = {'w1': 5, 'w2': 200}
        with self.assertLogs('tracon_watcher.tenant.dial', logging.INFO) as caught:
            self.dial.run(lambda: False)
        self.assertEqual({'w1': 100, 'w2': 100}, self.api.weights)
        self.api.away = True
        with self.assertLogs('tracon_watcher.tenant.dial', logging.ERROR) as caught:
            self.dial.run(lambda: False)
        self.assertIn('left as they were: the socket is gone', caught.output[0])


class TestSettings(FolderCase):

    GOOD = {'socket': '/run/s', 'log': '/var/log/l', 'backend': 'web', 'workers': '[a, b]',
            'peak_rate': '400'}

    def load(self, text):
        path = self.folder / 'dial.yaml'
        path.write_text(text, encoding='utf-8')
        return dial_settings.load(path)

    def with_lines(self, **lines):
        return self.load(''.join(f'{key}: {value}\n' for key, value in {
            **self.GOOD, **lines}.items() if value is not None))

    def test_defaults_and_all_keys(self):
        found = self.with_lines()
        self.assertEqual((pathlib.Path('/run/s'), ('a', 'b'), 400.0, 10.0, (0.0, 1.0, 0.0), None),
                         (found.socket, found.workers, found.peak_rate, found.interval_seconds,
                          found.coefficients, found.metrics_port))
        self.assertAlmostEqual(0.02, found.trickle)
        found = self.with_lines(percentile=99, coefficients='[1, -0.5, 2e0]', trickle=0.1,
                                metrics_port=9105)
        self.assertEqual((99.0, (1.0, -0.5, 2.0), 0.1, 9105),
                         (found.percentile, found.coefficients, found.trickle, found.metrics_port))

    def test_bad_ones_are_named_with_value_and_remedy(self):
        for lines, words in (
                ({'weight': 3}, 'weight is 3: there is no such key; there are socket, log'),
                ({'log': None}, 'log is None: state it'),
                ({'peak_rate': '-4'}, 'peak_rate is -4: expected a finite number from 0.001'),
                ({'peak_rate': '.nan'}, 'peak_rate is nan: expected a finite number'),
                ({'percentile': 'true'}, 'percentile is True: expected a finite number from 50'),
                ({'metrics_port': '9105.5'}, 'metrics_port is 9105.5: expected a whole number'),
                ({'socket': '7'}, 'socket is 7: expected a text'),
                ({'workers': '[a]'}, r"workers is \['a'\]: expected two names"),
                ({'workers': '[a, "b; shutdown"]'}, 'workers is .*: expected two names'),
                ({'workers': '[a, a]'}, 'workers is .*: name each server once'),
                ({'backend': '"web x"'}, "backend is 'web x': expected the name of a backend"),
                ({'trickle': '0.5'}, 'trickle is 0.5: expected less than 1/2'),
                ({'coefficients': '[1, 2]'}, r'coefficients is \[1, 2\]: expected \[c0, c1, c2\]'),
                ({'coefficients': '[9, -3, 1]'}, 'coefficients is .*: latency rises with load')):
            with self.subTest(words), self.assertRaisesRegex(errors.InvalidDocument, words):
                self.with_lines(**lines)
        for text, words in (('a: [', 'line [12] is .*: expected YAML'),
                            ('- x', 'the file is .*: expected keys'),
                            ('!!python/object:os.system x', 'line 1 is')):
            with self.subTest(text), self.assertRaisesRegex(errors.InvalidDocument, words):
                self.load(text)
