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

"""The table of defects in the contributor guide names tests that there are."""

import ast
import csv
import pathlib
import unittest

ROOT = pathlib.Path(__file__).parents[2]
TABLE = ROOT / 'doc' / 'source' / 'contributor' / 'defects.csv'


def found(name):
    """Say whether there is a module, a class or a test of this name under tests/."""
    parts = name.split('.')
    for count in range(len(parts), 0, -1):
        path = ROOT.joinpath('tests', *parts[:count])
        if path.with_suffix('.py').is_file():
            return inside(path.with_suffix('.py'), parts[count:])
    return False


def inside(path, names):
    body = ast.parse(path.read_text(encoding='utf-8')).body
    for name in names:
        body = next((one.body for one in body if isinstance(one, (ast.ClassDef, ast.FunctionDef))
                     and one.name == name), None)
        if body is None:
            return False
    return True


class TestDefects(unittest.TestCase):

    def test_every_test_that_is_named_exists(self):
        with TABLE.open(encoding='utf-8', newline='') as lines:
            rows = list(csv.DictReader(lines))
        self.assertGreaterEqual(len(rows), 20)
        for row in rows:
            self.assertTrue(row['Test'].split(), row)
            for name in row['Test'].split():
                with self.subTest(name):
                    self.assertTrue(found(name))

    def test_one_that_does_not_exist_is_not_found(self):
        for name in ('unit.test_defects.TestDefects.test_nothing', 'unit.test_defects.Nothing',
                     'unit.nothing', 'nothing'):
            self.assertFalse(found(name), name)
        self.assertTrue(found('unit.test_defects.TestDefects'))
