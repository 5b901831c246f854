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

"""``tracon lab measure --cloud``, as far as it comes without a cloud."""

import os
import types
from unittest import mock

from tests.unit import command_line
from tests.unit import folder
from tests.unit.tracon_lab.profiling import synthetic
from tests.unit.tracon_lab.profiling import test_hosts
from tracon_lab.cmd import lab_cloud
from tracon_lab.profiling import plan
from tracon_lab.testbed import image
from tracon_lab.testbed import interruption
from tracon_watcher.cmd import probe


class TestMeasure(folder.OwnFolderCase):

    def setUp(self):
        super().setUp()
        self.enterContext(mock.patch.object(interruption.signals, 'install', autospec=True))

    def run_it(self, *arguments):
        return command_line.run('lab', 'measure', '--output', str(self.folder / 'out'), *arguments)

    def test_options(self):
        for arguments, text in (
                ((), '--host-type=None'),
                (('--host', 'a'), "--host='a': hosts of a cloud are measured with --cloud"),
                (('--cloud', '--points', '151'), '--points=151: expected 150 at most'),
                (('--cloud', '--window-polls', '2'), "--window-polls: '2': expected a whole"),
                (('--cloud', '--polling-interval', '0'), "--polling-interval: '0': expected"),
                (('--cloud', '--config-file', '/nowhere.conf'), 'nowhere.conf')):
            with self.subTest(arguments):
                code, _out, err = self.run_it(*arguments)
                self.assertEqual(2, code, err)
                self.assertIn(text, err.replace('\n', ' '))

    def test_no_cloud(self):
        with mock.patch.dict(os.environ, clear=True):
            code, _out, err = self.run_it('--cloud', '--os-cloud', 'none-of-that-name')
        self.assertEqual(2, code)
        self.assertIn('none-of-that-name', err)
        self.assertIn('clouds.yaml', err)

    def test_what_a_plan_has_is_not_written_twice(self):
        self.assertEqual(plan.POINTS, lab_cloud._DEFAULT_POINTS)

    def test_parts_are_put_together_from_options_and_configuration(self):
        connection = synthetic.Cloud()
        connection.session = None
        connection.config = types.SimpleNamespace(get_region_name=lambda: 'r',
                                                  get_interface=lambda: None)
        inventory = test_hosts.inventory(vms=[('db', 'theirs', 'b')])
        (self.folder / 'tracon.conf').write_text('[engine]\npolling_interval_seconds = 10\n')
        made = []

        class Worker:
            def __init__(self, site, sampler, journal, timing, report):
                made.append((site.host, journal.path.name, timing.length))

            def calibrate(self):
                return plan.Speed(1e8, 1000.0, 1000.0)

            def work(self, speed, points, limit):
                made.append((speed.reads, points, limit))
                return points == 5

        built = synthetic.built(self.folder)
        with mock.patch.object(probe, 'connect', lambda name: connection), \
                mock.patch.object(lab_cloud, '_inventory', lambda asked: inventory), \
                mock.patch.object(image, 'build', lambda cache: built), \
                mock.patch('tracon_lab.profiling.run.Run', Worker):
            arguments = ('--cloud', '--config-file', str(self.folder / 'tracon.conf'),
                         '--limit-minutes', '2')
            code, _out, err = self.run_it(*arguments, '--points', '5')
            self.assertEqual(0, code, err)
            self.assertEqual([('a', 'fast.journal', 40.0), (1000.0, 5, 120.0),
                              ('c', 'slow.journal', 40.0), (1000.0, 5, 120.0)], made)
            header = (self.folder / 'out' / 'fast.csv').read_text()
            self.assertIn('# host_type: fast\n', header)
            self.assertIn('# reads_per_second_alone: 1000\n', header)
            self.assertNotIn(str(self.folder / 'out'), header)
            # Points are missing; then a host that is not empty.
            self.assertEqual(1, self.run_it(*arguments, '--points', '6')[0])
            code, _out, err = self.run_it(*arguments, '--host', 'b')
        self.assertEqual(2, code)
        self.assertIn('host b has 1 other VMs: db (db)', err)
