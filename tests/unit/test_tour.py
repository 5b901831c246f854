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

"""The tour in the contributor guide names files and functions that exist."""

import ast
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).parents[2]
PAGE = ROOT / 'doc' / 'source' / 'contributor' / 'tour.rst'
MOST_STOPS = 25
LEAST_LISTS = 3
_COUNTS = re.compile(r'\* `(?P<title>[^`]+)`_: (?P<stops>\d+) stops in (?P<files>\d+) files')
_STOP = re.compile(r'``(?P<file>[\w/]+\.py)``, ``(?P<name>[\w.]+)``: gets .+; gives .+\.')


def is_defined(file, name):
    """Say whether a file of the repository defines a function, or a method of a class.

    :param file: path from the root of the repository
    :param name: such as ``build`` or ``Collector.collect``
    """
    path = ROOT / file
    if not path.is_file():
        return False
    node = ast.parse(path.read_text(encoding='utf-8'))
    *classes, function = name.split('.')
    for one in classes:
        node = _child(node, one, ast.ClassDef)
    return _child(node, function, (ast.FunctionDef, ast.AsyncFunctionDef)) is not None


def _child(node, name, kinds):
    return next((one for one in getattr(node, 'body', ())
                 if isinstance(one, kinds) and one.name == name), None)


def items(text):
    """Return the text of each item of a numbered list, on one line."""
    return [' '.join(item.split()) for item in re.findall(
        r'^#\. (.+\n(?: {3}\S.*\n)*)', text, re.MULTILINE)]


def lists(page):
    """Return the items of each section that has any, by its title."""
    parts = re.split(r'^(\S.*)\n=+\n', page, flags=re.MULTILINE)
    return {title: items(text) for title, text in zip(parts[1::2], parts[2::2]) if items(text)}


class TestTour(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.page = PAGE.read_text(encoding='utf-8')
        self.lists = lists(self.page)

    def test_there_are_three_lists_of_at_most_twenty_five_stops(self):
        self.assertGreaterEqual(len(self.lists), LEAST_LISTS)
        for title, stops in self.lists.items():
            with self.subTest(title):
                self.assertLessEqual(len(stops), MOST_STOPS)
                self.assertEqual(len(stops), len(set(stops)))

    def test_every_numbered_item_is_in_a_list(self):
        self.assertEqual(len(re.findall(r'^(?:#|\d+)\. ', self.page, re.MULTILINE)),
                         sum(map(len, self.lists.values())))

    def test_every_stop_exists(self):
        for title, stops in self.lists.items():
            for stop in stops:
                with self.subTest(title, stop=stop):
                    found = _STOP.fullmatch(stop)
                    self.assertIsNotNone(found)
                    self.assertTrue(is_defined(found['file'], found['name']))

    def test_the_head_counts_the_stops_and_files_of_each_list(self):
        stated = {found['title']: (int(found['stops']), int(found['files']))
                  for found in _COUNTS.finditer(self.page)}
        counted = {title: (len(stops), len({_STOP.fullmatch(stop)['file'] for stop in stops}))
                   for title, stops in self.lists.items()}
        self.assertEqual(counted, stated)


class TestIsDefined(unittest.TestCase):

    def test_functions_and_methods_are_found(self):
        for file, name in (('tests/unit/test_tour.py', 'items'),
                           ('tests/unit/test_tour.py', 'TestTour.setUp')):
            with self.subTest(name):
                self.assertTrue(is_defined(file, name))

    def test_what_is_not_there_is_not_found(self):
        for file, name in (('tests/unit/test_nothing.py', 'items'),
                           ('tests/unit/test_tour.py', 'nothing'),
                           ('tests/unit/test_tour.py', 'setUp'),
                           ('tests/unit/test_tour.py', 'TestTour'),
                           ('tests/unit/test_tour.py', 'TestTour.items'),
                           ('tests/unit/test_tour.py', 'Nothing.setUp'),
                           ('tests/unit/test_tour.py', 'items.setUp'),
                           ('tests/unit/test_tour.py', 'MOST_STOPS')):
            with self.subTest(file=file, name=name):
                self.assertFalse(is_defined(file, name))

    def test_items_of_several_lines_are_one_text(self):
        self.assertEqual(['one two', 'three'], items('#. one\n   two\n#. three\n\nfour\n'))
