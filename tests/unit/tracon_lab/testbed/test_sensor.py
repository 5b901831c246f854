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

"""The sensor's program, run on this machine, and what a sensor boots."""

import gzip
import hashlib
import hmac
import http.client
import json
import pathlib
import shutil
import socket
import subprocess
import unittest
from unittest import mock

from tests.unit import folder
from tracon_lab.testbed import errors
from tracon_lab.testbed import sensor_guest
from tracon_watcher.probe import images

SECRET = bytes(range(7, 39))
NONCE = 0xfedcba9876543210
SOURCE = images.SOURCE


def signature(text):
    return hmac.new(SECRET, text, hashlib.sha256).hexdigest()


def target(kind, **counts):
    return f'/{kind}?nonce={NONCE:016x}' + ''.join(
        f'&{name}={value}' for name, value in counts.items())


def generated(steps):
    """What the generator of /connection ends with."""
    x = NONCE
    for _step in range(steps):
        x = (x * 6364136223846793005 + 1442695040888963407) % (1 << 64)
    return x


class Sensor:
    """A sensor that serves this machine.

    :param disk: path of its disk, if it has one
    """

    def __init__(self, program, settings, disk=None):
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            self.port = free.getsockname()[1]
        settings.write_text(f'# of a test\n\nsecret={SECRET.hex()}\nport={self.port}\nother=1\n')
        self._process = subprocess.Popen([program, '--serve', settings, *([disk] * bool(disk))],
                                         stdout=subprocess.PIPE, text=True)
        self.said = self._process.stdout.readline()

    def stop(self):
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()

    def ask(self, asked, method='GET', **headers):
        """The status and the body of a signed answer."""
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=5)
        headers = headers or {'Tracon-Signature': signature(asked.encode())}
        connection.request(method, asked, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        assert answer.getheader('Tracon-Signature') == signature(body)
        assert answer.getheader('Connection') == 'close'
        assert answer.getheader('Content-Type') == (
            'application/json' if answer.status == 200 else 'text/plain')
        return answer.status, body.decode()

    def send(self, request):
        """A connection on which these bytes were sent."""
        connection = socket.create_connection(('127.0.0.1', self.port), timeout=5)
        connection.sendall(request)
        return connection


@unittest.skipUnless(shutil.which('gcc'), 'needs gcc')
class TestSensor(folder.FolderCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.program = cls.folder / 'sensor'
        images.compile_c(SOURCE, cls.program, '-static', '-Werror')
        cls.disk = cls.folder / 'disk'
        with open(cls.disk, 'wb') as disk:
            disk.truncate(1 << 20)
        cls.sensor = Sensor(cls.program, cls.folder / 'settings', cls.disk)
        cls.addClassCleanup(cls.sensor.stop)

    def result(self, kind, **counts):
        asked = target(kind, **counts)
        status, body = self.sensor.ask(asked)
        self.assertEqual(200, status, body)
        answer = json.loads(body)
        self.assertEqual({'schema', 'target', 'seconds', 'result'}, set(answer))
        self.assertEqual(('tracon-sensor/1', asked), (answer['schema'], answer['target']))
        self.assertRegex(body, r'"seconds": \d\.\d{9},')
        self.assertLess(answer['seconds'], 5)
        return int(answer['result'])

    def refused(self, status, pattern, asked, **more):
        found, body = self.sensor.ask(asked, **more)
        self.assertEqual(status, found, body)
        self.assertRegex(body, rf'^{status}: .*{pattern}')

    def test_results(self):
        self.assertEqual(0, self.result('about'))
        self.assertEqual(generated(1), self.result('connection', work=1))
        self.assertEqual(generated(20000), self.result('connection', work=20000))
        for integers in (50_000, 1024, 3517, 1_000_003):
            self.assertEqual((NONCE + sum(range(integers))) % (1 << 64),
                             self.result('memory', integers=integers))
        self.assertEqual(100, self.result('read', blocks=100))
        self.assertEqual(3, self.result('write', blocks=3))

    def test_the_first_half_of_the_disk_has_random_data_and_stays(self):
        first = self.disk.read_bytes()[:1 << 19]
        self.assertEqual(128, len({first[at:at + 4096] for at in range(0, 1 << 19, 4096)}))
        self.assertEqual(256, len(set(first)))
        self.result('write', blocks=50)
        self.assertEqual(first, self.disk.read_bytes()[:1 << 19])

    def test_only_signed_targets_are_worked_on(self):
        asked = target('connection', work=100_000_000)
        for given in ('', '0' * 64, signature(b'/'), signature(asked.encode())[:63],
                      signature(asked.encode()) + '0'):
            self.refused(403, 'Tracon-Signature', asked, **{'Tracon-Signature': given})
        self.refused(403, 'Tracon-Signature', asked, Accept='*/*')

    def test_targets_that_do_not_exist(self):
        for asked in ('/', '/about', target('about', work=1), target('connection'),
                      target('connection', blocks=1), target('memory', integers='0x400'),
                      target('read', blocks='01'), target('read', blocks='+1'),
                      target('nothing'), target('read', blocks=1) + '&more=1',
                      target('about').upper(), '/about?nonce=1', '/about?nonce=' + 'g' * 16,
                      target('connection', work=1 << 64)):
            self.refused(400, 'unknown target .*: ask for', asked)

    def test_numbers_out_of_range(self):
        for kind, name, value, least, most in (
                ('connection', 'work', 0, 1, 100_000_000),
                ('connection', 'work', 100_000_001, 1, 100_000_000),
                ('memory', 'integers', 1023, 1024, '[0-9]+'),
                ('read', 'blocks', 0, 1, 10_000), ('write', 'blocks', 10_001, 1, 10_000)):
            self.refused(400, f'{name}={value} is out of range: give {least} to {most}',
                         target(kind, **{name: value}))

    def test_more_than_it_has(self):
        self.refused(409, 'do not fit its memory: give at most',
                     target('memory', integers=10 ** 12))
        sensor = Sensor(self.program, self.folder / 'other')
        self.addCleanup(sensor.stop)
        self.assertIn('disk: none', sensor.said)
        for kind in ('read', 'write'):
            status, body = sensor.ask(target(kind, blocks=1))
            self.assertEqual(409, status)
            self.assertIn('no usable disk', body)

    def test_methods(self):
        self.refused(405, 'POST: use GET', target('about'), method='POST')

    def test_bad_clients_do_not_stop_it(self):
        first = [self.sensor.send(b'')]
        for bad in (b'GET / HTTP/1.1\r\n', b'\0' * 100, b'\r\n\r\n', b'GET %s\r\n\r\n',
                    bytes(range(256)) * 4 + b'\r\n\r\n', b'GET  HTTP/1.1\r\n\r\n',
                    b'GET /%n%s HTTP/9\r\n\r\n', b'GET / HTTP/1.1\r\n' + b'x' * 5000):
            connection = self.sensor.send(bad)
            connection.shutdown(socket.SHUT_WR)
            first.append(connection)
        self.sensor.send(b'GET /').close()
        self.assertEqual(0, self.result('about'))
        self.assertEqual(b'', first[0].recv(100))
        for connection in first[1:]:
            self.assertEqual(b'HTTP/1.1 400', connection.recv(5000)[:12])
        for connection in first:
            connection.close()

    def test_long_requests(self):
        self.refused(400, 'at most 2048 bytes', target('about'), More='x' * 3000)
        asked = target('about')
        self.refused(400, 'unknown target', asked + 'x' * 1700)
        self.assertEqual(200, self.sensor.ask(asked, **{
            'Tracon-Signature': signature(asked.encode()), 'More': 'x' * 1700})[0])

    def test_settings_that_are_wrong(self):
        settings = self.folder / 'wrong'
        for text, message in (('secret=12\n', 'secret has 2 characters: give 64'),
                              (f'secret={SECRET.hex()}\nport=70000\n', 'port=70000: give 1 to'),
                              ('', 'secret has 0 characters')):
            settings.write_text(text)
            ended = subprocess.run([self.program, '--serve', settings], timeout=5,
                                   stderr=subprocess.PIPE, text=True)
            self.assertEqual(1, ended.returncode)
            self.assertIn(message, ended.stderr)
        settings.write_text(f'secret={SECRET.hex()}\nport={self.sensor.port}\n')
        ended = subprocess.run([self.program, '--serve', settings], timeout=5,
                               stderr=subprocess.PIPE, text=True)
        self.assertRegex(ended.stderr, r'port \d+: .*in use')


def members(archive):
    """The names and the bodies in a cpio archive."""
    at, found = 0, {}
    while True:
        size, length = (int(archive[at + field:at + field + 8], 16) for field in (54, 94))
        name = archive[at + 110:at + 109 + length].decode()
        if name == 'TRAILER!!!':
            return found
        body = -(-(at + 110 + length) // 4) * 4
        found[name] = archive[body:body + size]
        at = -(-(body + size) // 4) * 4


class TestImage(folder.FolderCase):

    @unittest.skipUnless(shutil.which('gcc'), 'needs gcc')
    def test_the_program_and_modules_are_all_that_boots(self):
        boot, modules = self.folder / 'boot', self.folder / 'modules'
        (modules / '1').mkdir(parents=True)
        boot.mkdir()
        (boot / 'vmlinuz-1').touch()
        (modules / '1/modules.dep').write_text('isofs.ko: cdrom.ko\ncdrom.ko:\next4.ko:\n')
        for name in ('isofs', 'cdrom', 'ext4'):
            (modules / '1' / f'{name}.ko').write_text(name)
        built = images.build(self.folder / 'cache', boot, modules)
        self.assertEqual(built, images.build(self.folder / 'cache', boot, modules))
        archive = gzip.decompress(built.initramfs.read_bytes())
        found = members(archive)
        self.assertEqual(['dev', 'mnt', 'modules', 'proc', 'sys', 'init', 'modules/cdrom.ko',
                          'modules/isofs.ko', 'modules/order'], list(found))
        self.assertEqual(b'cdrom.ko\nisofs.ko', found['modules/order'])
        self.assertLess(len(archive), 1 << 20)
        self.assertEqual(48 << 20, built.disk.stat().st_size)
        self.assertEqual(0, built.disk.stat().st_blocks)

    def test_nothing_that_writes_a_config_drive(self):
        with mock.patch.object(shutil, 'which', autospec=True, return_value=None):
            with self.assertRaisesRegex(errors.TestbedError, 'install genisoimage'):
                sensor_guest.config_drive(pathlib.Path('/nowhere'), '')
