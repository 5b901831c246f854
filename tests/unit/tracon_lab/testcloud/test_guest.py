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

"""The tenant's program is found by its serial line and asked over it."""

import socketserver
import threading
import unittest
from unittest import mock

from tracon_lab.testbed import channel
from tracon_lab.testbed import programs
from tracon_lab.testcloud import errors
from tracon_lab.testcloud import guest

LINE = '''<serial type='{kind}'><source mode='bind' host='127.0.1.1' service='{service}'/>
  <target type='isa-serial' port='{port}'/></serial>'''


def definition(*lines):
    return '<domain><devices>%s</devices></domain>' % ''.join(
        LINE.format(kind=kind, service=service, port=port) for kind, service, port in lines)


class Program(socketserver.StreamRequestHandler):

    def handle(self):
        for line in self.rfile:
            self.server.heard.append(line.decode().strip())
            answer = {'calibrate': '500000000', 'read': '9000000000 3 6000000000 4 5 6 7'}.get(
                line.decode().split()[0], 'ok')
            self.wfile.write(answer.encode() + b'\n')


class TestGuest(unittest.TestCase):

    def test_it_is_the_second_serial_line(self):
        text = definition(('tcp', 10000, 0), ('tcp', 10001, 1))
        self.assertEqual(('127.0.1.1', 10001), guest.serial_address(text, 'vm'))
        for wrong in (definition(('tcp', 10000, 0)), definition(('pty', 1, 1)), definition()):
            with self.assertRaisesRegex(errors.CloudError, 'vm has no second serial line'):
                guest.serial_address(wrong, 'vm')

    def test_it_starts_programs_by_its_own_speed(self):
        server = socketserver.ThreadingTCPServer(('127.0.0.1', 0), Program)
        server.daemon_threads = True
        server.heard = []
        self.addCleanup(server.server_close)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.shutdown)
        # Within that time it answers each question, so that none is asked twice.
        self.enterContext(mock.patch.object(channel, 'TURN', 120.0))
        found = guest.Guest(server.server_address, 'vm')
        self.addCleanup(found.close)
        found.wait_for_boot(120)
        # 5 million iterations in half a second
        self.assertEqual(1e7, found.iterations_per_second)
        found.begin(programs.Unit(cpu_seconds=0.01), seed=7)
        self.assertEqual(3, found.read().units)
        self.assertEqual(2.0, found.read().time_per_unit)
        found.end()
        started, = (line for line in server.heard if line.startswith('run'))
        self.assertIn('cpu=100000 ', started)
        self.assertIn('seed=7', started)
        self.assertEqual('stop', server.heard[-1])
        self.assertEqual(1, sum(line.startswith('calibrate') for line in server.heard))
