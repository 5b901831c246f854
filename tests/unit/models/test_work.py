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


import numpy as np

from tests.unit import folder
from tests.unit.models import synthetic
from tracon_watcher.models import dataset
from tracon_watcher.models import work


class TestWork(folder.FolderCase):

    def rows(self, points):
        path = self.folder / 'work.csv'
        synthetic.write(path, points)
        return [dict(zip(work.COLUMNS, row)) for row in work.work([dataset.read(path)])]

    def points(self, beside_programs):
        """Points where a unit takes so many times the CPU beside programs, and 1.0 elsewhere."""
        points = synthetic.build(generator=5, backgrounds=12)
        factor = np.where(points.kind == 'pair', beside_programs, 1.0)
        share = factor / np.where(np.isfinite(points.slowdown), points.slowdown, 1.0)
        points.observed[:] = points.target_alone * share[:, None]
        return points

    def test_work_beside_programs_and_beside_the_generator(self):
        points = self.points(1.2)
        rows = {row['beside']: row for row in self.rows(points)}
        self.assertEqual({'generator', 'program'}, set(rows))
        self.assertAlmostEqual(1.2, rows['program']['cpu_per_unit'])
        self.assertAlmostEqual(1.0, rows['generator']['cpu_per_unit'])
        busy = (points.kind == 'pair') & (points.target_alone[:, 2:].sum(axis=1) > work.BUSY)
        self.assertTrue(0 < busy.sum() < (points.kind == 'pair').sum())
        self.assertEqual(busy.sum(), rows['program']['points'])

    def test_idle_programs_say_nothing(self):
        points = self.points(1.0)
        idle = points.target_alone[:, 2:].sum(axis=1) <= work.BUSY
        self.assertEqual([], self.rows(points.take(idle)))
