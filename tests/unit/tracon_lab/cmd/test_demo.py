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

import json

from tests.unit import command_line
from tests.unit import folder
from tests.unit.tracon_lab.models import synthetic
from tracon_lab.cmd import demo
from tracon_lab.demo import arms
from tracon_lab.demo import comparison
from tracon_lab.demo import crew
from tracon_lab.demo import outcome
from tracon_lab.demo import settings
from tracon_lab.models import dataset
from tracon_lab.simulator import truth


class TestDemoCommand(folder.FolderCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.measurements = str(cls.folder / 'synthetic.csv')
        synthetic.write(cls.measurements, synthetic.build(generator=10, backgrounds=12))
        data = dataset.read_all([cls.measurements])
        small = settings.Settings((cls.measurements,), 'synthetic', hosts=2, vms=2)
        kept = crew.Results(cls.folder, small.fingerprint())
        pairs = truth.of(data, 'synthetic')
        for seed in (1, 2):
            for name in arms.ARMS:
                hosts = ('host01', 'host01' if name == arms.STOCK else 'host02')
                kept.keep(crew.Task(seed, name), {
                    'requests': 2, 'refusals': [], 'warnings': [], 'vms': outcome.judged(
                        [{'name': vm, 'project': 'project1', 'flavor': 'swift', 'program': vm,
                          'host': host} for vm, host in zip(('cpu', 'mixed'), hosts)], pairs)})
        cls.stock = [pairs.beside('cpu', 'mixed')[0], pairs.beside('mixed', 'cpu')[0]]

    def run_demo(self, *arguments):
        return command_line.run('demo', '--measurements', self.measurements, '--output',
                                str(self.folder), '--hosts', '2', '--vms', '2', '--audits', 'none',
                                '--seeds', '2', *arguments)

    def test_results_that_are_there_are_not_run_again(self):
        code, out, err = self.run_demo('--seeds', '2', '-f', 'json')
        self.assertEqual(0, code, err)
        rows = {row['arm']: row for row in json.loads(out)}
        self.assertEqual(set(arms.ARMS), set(rows))
        self.assertAlmostEqual(sum(self.stock) / 2, rows['stock']['mean_slowdown'], places=3)
        self.assertEqual(1.0, rows['weigh, oracle']['mean_slowdown'])
        self.assertAlmostEqual(1 - sum(self.stock) / 2,
                               rows['weigh, oracle']['slowdown_difference'], places=4)
        self.assertEqual('better', rows['weigh, oracle']['slowdown_verdict'])
        self.assertEqual(2, rows['stock']['seeds'])
        self.assertIsNone(rows['stock']['slowdown_difference'])
        self.assertIn('</html>', (self.folder / 'report.html').read_text())

    def test_bad_input_is_named(self):
        for arguments, text in (
                (('--seeds', '0'), '--seeds'), (('--host-type', 'nowhere'), 'synthetic'),
                (('--vms', '5'), '--vms=5: 2 hosts have room for 1 to 4 VMs'),
                (('--measurements', 'nowhere.csv'), 'nowhere.csv')):
            with self.subTest(arguments=arguments):
                code, out, err = self.run_demo(*arguments)
                self.assertEqual((2, ''), (code, out))
                self.assertIn(text, err)

    def test_audits_only_leaves_the_other_arms_out(self):
        code, out, err = self.run_demo('--audits-only', '-f', 'json')
        self.assertEqual(0, code, err)
        self.assertEqual(['enforce, history'], [row['arm'] for row in json.loads(out)])

    def test_the_table_for_people_is_short(self):
        row = comparison.Row('weigh, oracle', 3, 40.0, 0.0, 0.0, 1.234, 1.1, 2.0, 8.0, 1.5,
                             comparison.Difference(-0.2, -0.3, -0.1),
                             comparison.Difference(-0.1, -0.2, -0.05),
                             comparison.Difference(0.5, -1.0, 2.0))
        columns, (line,) = demo._table([row], True)
        self.assertEqual(len(columns), len(line))
        self.assertEqual(['weigh, oracle', '40', '1.23  (-0.20 ± 0.10)',
                          '1.5 of 8  (+0.50 ± 1.50)'], line)
        columns, (line,) = demo._table([row], False)
        self.assertEqual(len(columns), len(line))
        self.assertEqual(-0.3, dict(zip(columns, line))['slowdown_low'])
