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

"""Stored calibrations: read back as written, and refused when anything is wrong with them."""

import copy
import json
import subprocess
import sys

import numpy as np

from tests.unit.contention import synthetic
from tests.unit import folder
from tracon_watcher.contention import calibration as documents
from tracon_watcher import document
from tracon_watcher import errors


class TestDocument(folder.FolderCase):

    def setUp(self):
        super().setUp()
        self.content = synthetic.PLAIN.to_document()

    def test_read_back_as_written(self):
        path = self.folder / 'saved' / 'calibration.json'
        path.parent.mkdir()
        documents.save(synthetic.PLAIN, path)
        self.assertEqual(self.content, documents.load(path).to_document())
        self.assertEqual([path], list(path.parent.iterdir()))

    def refused(self, pattern, **changes):
        content = copy.deepcopy(self.content)
        for name, value in changes.items():
            parts = name.split('__')
            place = content
            for part in parts[:-1]:
                place = place[part]
            place[parts[-1]] = value
        content['checksum'] = document.checksum(content)
        with self.assertRaisesRegex(errors.InvalidDocument, pattern):
            documents.from_fields(document.Fields('given', content))

    def test_what_is_wrong_is_named(self):
        self.refused('given: schema is .*calibration/9', schema='tracon-calibration/9')
        self.refused('characteristics', characteristics=['guest_cpu'])
        self.refused('curve.signal.*rising', curve__signal=[2.0, 1.0], curve__slowdown=[1, 2])
        self.refused('curve.slowdown.*do not fall', curve__signal=[1.0, 2.0],
                     curve__slowdown=[3.0, 2.0])
        self.refused(r'curve.slowdown\[0\] is 0.5', curve__signal=[1.0, 2.0],
                     curve__slowdown=[0.5, 2.0])
        self.refused('slack', slack=0.0)
        self.refused('demand_width', demand_width=[[0.1] * 4])
        self.refused('self_delay', self_delay=[0.1])
        self.refused('standing_host_cpu', standing_host_cpu=True)
        self.refused('unknown field', surprise=1)
        self.refused('training', training=[])

    def test_an_edited_one_is_refused(self):
        self.content['slack'] = 0.3
        with self.assertRaisesRegex(errors.InvalidDocument, 'checksum.*model calibrate'):
            documents.from_fields(document.Fields('given', self.content))

    def test_an_unreadable_one_is_refused(self):
        with self.assertRaisesRegex(errors.InvalidDocument, 'cannot be read'):
            documents.load(self.folder / 'none.json')
        path = self.folder / 'half.json'
        path.write_text(json.dumps(self.content)[:200])
        with self.assertRaisesRegex(errors.InvalidDocument, 'half.json.*truncated'):
            documents.load(path)


class TestPackaged(folder.FolderCase):

    def test_it_is_sensible(self):
        found = documents.packaged()
        np.testing.assert_allclose(found.curve.estimate(np.array([1.0])), [1.0])
        # A unit takes longer than waiting tells.
        self.assertTrue((found.curve.estimate(np.array([1.5, 2.0, 4.0])) > [1.5, 2.0, 4.0]).all())
        self.assertLess(found.curve.error, 0.1)
        self.assertTrue((found.demand_width(np.array([2.0])) < 0.5).all())

    def test_it_takes_numpy_alone(self):
        script = ('import sys;'
                  'from tracon_watcher.contention import calibration, profile_tracker;'
                  'profile_tracker.ProfileTracker(calibration.packaged());'
                  'print([name for name in ("scipy", "sklearn") if name in sys.modules])')
        ended = subprocess.run([sys.executable, '-c', script], capture_output=True, text=True,
                               check=True)
        self.assertEqual('[]', ended.stdout.strip())
