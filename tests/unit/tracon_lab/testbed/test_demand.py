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

"""Demand of measured programs: what is learnt of them, and how well it does."""

import dataclasses
import unittest

import numpy as np

from tests.unit.tracon_lab.testbed import test_counters
from tracon_lab.cmd import packaged
from tracon_lab.models import dataset
from tracon_lab.testbed import demand
from tracon_lab.testbed import demand_calibration as learning
from tracon_watcher.contention import calibration as documents
from tracon_watcher import errors


class TestCalibration(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.datasets = packaged.read([])

    def test_that_of_the_package_was_learnt_from_its_measurements(self):
        shipped, learnt = documents.packaged(), learning.calibrate(self.datasets)
        self.assertEqual({data.sha256 for data in self.datasets},
                         {one['sha256'] for one in shipped.training['files']})
        for name in ('of_slowdown', 'of_demand', 'self_delay', 'slack', 'standing_host_cpu'):
            np.testing.assert_allclose(getattr(shipped, name), getattr(learnt, name), rtol=1e-3,
                                       err_msg=name)
        for name in ('signal', 'slowdown', 'error'):
            np.testing.assert_allclose(getattr(shipped.curve, name),
                                       getattr(learnt.curve, name), rtol=1e-3)

    def test_too_few(self):
        few = dataset.Dataset('few.csv', '0', {'host_type': 'x'}, *(
            {name: values[:5] for name, values in part.items()}
            for part in (self.datasets[0].text, self.datasets[0].numbers)))
        with self.assertRaisesRegex(errors.NotEnoughData, 'calibration'):
            learning.calibrate([few])

    def test_what_was_not_counted_is_no_case(self):
        data = test_counters.data([('solo', 'calc', '', {'target_observed_guest_cpu': 1.0})] * 3)
        with self.assertRaises(errors.NotEnoughData):
            learning.calibrate([data])

    def test_a_program_paces_itself_or_not(self):
        self.assertEqual([True, True, False, False, False], [learning.is_paced(name) for name in (
            'gen-c050-r20-w0', 'openread', 'calc', 'video', 'of somebody else')])


class TestEvaluation(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = next(data for data in packaged.read([])
                        if data.name == 'shared-slow-device.csv')
        rows = demand.evaluate([cls.data])
        names = [name for name in demand.COLUMNS[4:]]
        cls.rows = {(row[2], row[3]): dict(zip(names, row[4:])) for row in rows}

    def test_there_is_a_row_for_each(self):
        methods = {method for _kind, method in self.rows}
        # Without another host type nothing is learnt elsewhere.
        self.assertEqual({demand.SEEN, demand.LEAST, demand.ONE, demand.WINDOW, demand.EARLIER,
                          demand.ALONE}, methods)
        self.assertEqual({demand.CLOSED, demand.PACED}, {kind for kind, _method in self.rows})
        for row in self.rows.values():
            self.assertGreater(row['streams'], 20)

    def test_correction_helps_and_memory_helps_more(self):
        for kind in (demand.CLOSED, demand.PACED):
            for column in ('guest_cpu_error', 'read_requests_per_second_error'):
                seen, window, earlier = (self.rows[kind, method][column] for method in (
                    demand.SEEN, demand.WINDOW, demand.EARLIER))
                with self.subTest(kind=kind, column=column):
                    self.assertLess(window, 0.7 * seen)
                    self.assertLess(earlier, window)

    def test_stated_deviations_hold(self):
        for (kind, method), row in self.rows.items():
            if method in (demand.ONE, demand.WINDOW, demand.EARLIER):
                with self.subTest(kind=kind, method=method):
                    self.assertGreater(row['covered'], 0.8)

    def test_slowdown_is_seen(self):
        for kind in (demand.CLOSED, demand.PACED):
            self.assertLess(self.rows[kind, demand.EARLIER]['slowdown_error'], 0.15)

    def test_nothing_of_a_program_is_learnt_for_itself(self):
        # Of one program what was seen is falsified; what is said of another, drawn alike, is not.
        cases = learning.cases(self.data)
        own = cases.program == 'randread'
        bent = dataclasses.replace(cases, slowdown=np.where(own, 50.0, cases.slowdown),
                                   demand=np.where(own[:, None], 1e4, cases.demand))
        first, second = (learning.learn(one.take(one.group != 'randread'))
                         for one in (cases, bent))
        self.assertEqual(first.to_document(), second.to_document())
        self.assertNotEqual(first.to_document(), learning.learn(bent).to_document())

    def test_streams_are_of_one_program_each(self):
        cases = learning.cases(self.data)
        streams = demand.draw(cases, np.random.default_rng(1))
        for rows, alone in ((streams.beside, False), (streams.alone, True)):
            self.assertTrue((cases.alone[rows] == alone).all())
            self.assertTrue((cases.program[rows] == cases.program[rows[:, :1]]).all())

    def test_of_little_measurement_there_is_no_row(self):
        cases = learning.cases(self.data)
        few = cases.take(cases.alone)
        self.assertEqual((0, demand.INTERVALS),
                         demand.draw(few, np.random.default_rng(1)).beside.shape)
