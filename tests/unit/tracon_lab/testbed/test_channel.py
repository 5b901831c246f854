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
import os
import pathlib
import socket
import tempfile
import threading
import unittest
from unittest import mock

from tracon_lab.testbed import channel
from tracon_lab.testbed import errors

#: What a guest answered to two `read` commands two seconds apart.
FIRST = '95318466102 1153 2204821101 4612 1972344031 0 0'
SECOND = '97320466102 2201 4203917731 8804 3760401201 0 0'


class TestProgress(unittest.TestCase):

    def test_difference(self):
        done = channel.parse_progress(SECOND).since(channel.parse_progress(FIRST))
        self.assertEqual(1048, done.units)
        self.assertEqual(4192, done.reads)
        self.assertAlmostEqual(2.002, done.clock)
        self.assertAlmostEqual(1.99909663 / 1048, done.time_per_unit)

    def test_nothing_done(self):
        first = channel.parse_progress(FIRST)
        self.assertIsNone(first.since(first).time_per_unit)

    def test_garbage(self):
        with self.assertRaisesRegex(errors.GuestError, "'ok'"):
            channel.parse_progress('ok')


class Scripted:
    """A socket whose other end does not hear the first `lost` lines; it answers others at once."""

    def __init__(self, answers, asked, lost):
        self.answers, self.asked, self.lost = answers, asked, lost
        self.said = b''

    def settimeout(self, seconds):
        pass

    def sendall(self, line):
        self.asked.append(line.decode().strip())
        if len(self.asked) > self.lost:
            answer = self.answers.get(self.asked[-1].split()[0], 'error unknown')
            self.said += answer.encode() + b'\n'

    def recv(self, most):
        if not self.said:
            raise TimeoutError
        found, self.said = self.said[:most], self.said[most:]
        return found

    def close(self):
        pass


class TestChannel(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / 'port.sock'
        self.listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(self.listener.close)
        self.listener.bind(str(self.path))
        self.listener.listen()
        self.asked = []
        self.channel = channel.Channel(self.path, 'target')
        self.addCleanup(self.channel.close)

    def script(self, answers, lost):
        """A guest of which the first `lost` questions come before it listens; no time passes."""
        self.enterContext(mock.patch.object(channel.Channel, '_connect', lambda _self: Scripted(
            answers, self.asked, lost)))
        self.enterContext(mock.patch.object(channel, 'time', autospec=True))

    def serve(self, answers):
        """A guest's end of the port, which answers each question within its turn."""
        self.enterContext(mock.patch.object(channel, 'TURN', 120.0))

        def work():
            end, _address = self.listener.accept()
            with end, end.makefile('rw') as stream:
                for line in stream:
                    stream.write(answers.get(line.split()[0], 'error unknown') + '\n')
                    stream.flush()
        thread = threading.Thread(target=work, daemon=True)
        thread.start()

    def test_boot_is_waited_for(self):
        self.script({'read': FIRST, 'stop': 'ok'}, lost=1)
        self.channel.wait_for_boot(10)
        self.assertEqual(['read', 'read'], self.asked)
        self.assertEqual('ok', self.channel.ask('stop'))
        self.assertEqual(1153, self.channel.read().units)

    def test_no_guest(self):
        os.unlink(self.path)
        self.enterContext(mock.patch.object(channel, 'time', autospec=True))
        with self.assertRaisesRegex(errors.GuestError, 'target did not answer within'):
            self.channel.wait_for_boot(0.3)

    def test_error_answer(self):
        self.serve({'read': FIRST})
        self.channel.wait_for_boot(120)
        with self.assertRaisesRegex(errors.GuestError, 'error unknown'):
            self.channel.ask('dance')

    def test_silence(self):
        self.script({}, lost=100)
        with self.assertRaisesRegex(errors.GuestError, 'did not answer'):
            self.channel.wait_for_boot(1.5)
