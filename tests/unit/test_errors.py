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

import importlib
import pickle
import pkgutil
import unittest

import tracon_watcher
from tracon_watcher import errors


class TestErrors(unittest.TestCase):

    def test_each_comes_out_of_another_process_as_it_went_in(self):
        for error in (errors.InvalidDocument('file', 'field', -1, 'remedy'),
                      errors.InvalidOption('name', value=0, remedy='more'),
                      errors.NotEnoughData('a model', found=1, needed=2)):
            again = pickle.loads(pickle.dumps(error))
            self.assertIs(type(error), type(again))
            self.assertEqual(str(error), str(again))
            self.assertEqual(vars(error).keys(), vars(again).keys())

    def test_none_is_forgotten(self):
        for module in pkgutil.iter_modules(tracon_watcher.__path__):
            if module.name == 'lab':
                importlib.import_module('tracon_lab.testbed.errors')
        known = errors.TraconError.__subclasses__()
        self.assertGreaterEqual(len(known), 4)
        for kind in known:
            # They are made again by what makes them at first.
            self.assertIs(errors.TraconError.__reduce__, kind.__reduce__)
