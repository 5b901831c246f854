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

"""What is chosen does not depend on the CPU."""

from tests.unit import kernels

#: Unit tests of what chooses, ranks or breaks ties.
CHOOSING = ('lab.test_data', 'lab.test_plan', 'models.test_adaptation',
            'models.test_optimal_design', 'models.test_stepwise', 'models.test_wmm',
            'placement.test_attribution', 'placement.test_explanation', 'placement.test_jointly',
            'scheduling.test_conformance', 'scheduling.test_matching', 'test_tie_breaking')


class TestCpus(kernels.KernelsCase):

    def test_choices_are_the_same_under_the_kernels_of_each_cpu(self):
        found = self.check('tests.unit.cpu_choices')
        # There was something to choose.
        for made, _reason, _left in found['moves'].values():
            self.assertGreater(len(made), 2)
        scheduled = found['scheduled']
        self.assertTrue(any(scheduled['large']['refused']))
        self.assertIn('logged', scheduled['large'])
        for one in scheduled.values():
            self.assertLess(len(set(one['equal weights'])), 10)

    def test_the_law_of_queueing_gives_the_same_bits(self):
        self.assertTrue(self.check('tests.unit.queueing.bits'))

    def test_schedulers_choose_the_same(self):
        self.assertTrue(self.check('tests.unit.tracon_lab.scheduling.choices'))

    def test_unit_tests_of_choices_pass_under_the_kernels_of_each_cpu(self):
        self.check_tests([f'tests.unit.{module}' for module in CHOOSING])
