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

import pathlib
import tempfile
import unittest

from tests.unit import folder
from tracon_lab.demo import crew
from tracon_lab.demo import settings
from tracon_watcher import errors


class TestResults(folder.OwnFolderCase):

    def setUp(self):
        super().setUp()
        self.task = crew.Task(3, 'enforce, history')

    def test_kept_results_are_found_again(self):
        kept = crew.Results(self.folder, 'abc')
        self.assertIsNone(kept.find(self.task))
        kept.keep(self.task, {'vms': []})
        self.assertEqual({'vms': []}, crew.Results(self.folder, 'abc').find(self.task))

    def test_results_of_other_settings_are_not_taken(self):
        crew.Results(self.folder, 'abc').keep(self.task, {'vms': []})
        self.assertIsNone(crew.Results(self.folder, 'def').find(self.task))

    def test_a_result_without_the_audit_wanted_is_not_taken(self):
        kept = crew.Results(self.folder, 'abc')
        kept.keep(self.task, {'vms': []})
        wanted = crew.Task(3, 'enforce, history', audit=True)
        self.assertIsNone(kept.find(wanted))
        kept.keep(wanted, {'vms': [], 'audit': {}})
        self.assertIsNotNone(kept.find(wanted))
        self.assertIsNotNone(kept.find(self.task))

    def test_a_cut_off_file_is_run_again(self):
        kept = crew.Results(self.folder, 'abc')
        kept.keep(self.task, {'vms': []})
        path = self.folder / 'seed-0003-enforce-history.json'
        for text in (path.read_text()[:-10], '[]', '"text"', '{"fingerprint": "abc"}'):
            with self.subTest(text=text):
                path.write_text(text)
                self.assertIsNone(kept.find(self.task))

    def test_the_audited_arm_comes_first(self):
        listed = crew.tasks([1, 2], [1], 'enforce, history')
        self.assertEqual(10, len(listed))
        self.assertEqual([crew.Task(1, 'enforce, history', True), crew.Task(1, 'stock')],
                         listed[:2])
        self.assertEqual(1, sum(task.audit for task in listed))


class TestSettings(unittest.TestCase):

    def test_wrong_ones_are_refused(self):
        for options, name in (({'vms': 33}, '--vms=33: 16 hosts have room for 1 to 32 VMs'),
                              ({'hosts': 1}, '--hosts=1'),
                              ({'departing': 1.0}, '--departing=1.0'),
                              ({'concentration': 0.0}, '--concentration=0.0')):
            with self.subTest(options=options):
                with self.assertRaisesRegex(errors.InvalidOption, name):
                    settings.Settings((), 'synthetic', **options)

    def test_json_form_is_the_same_settings(self):
        one = settings.Settings(('a.csv',), 'synthetic', vms=7)
        self.assertEqual(one, settings.Settings.from_document(one.to_document()))

    def test_fingerprint_tells_contents_apart(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'a.csv'
            path.write_text('1')
            one = settings.Settings((str(path),), 'synthetic')
            first = one.fingerprint()
            self.assertEqual(first, one.fingerprint())
            path.write_text('2')
            self.assertNotEqual(first, one.fingerprint())
