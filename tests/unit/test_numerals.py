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

"""One grammar of numbers: JSON's, without what Python reads beyond it."""

import unittest

from tracon_watcher import numerals


class Numbers(unittest.TestCase):

    def test_what_is_a_number(self):
        for text, value in (('0', 0.0), ('1.5', 1.5), ('-2', -2.0), ('1e3', 1000.0),
                            ('2.5E-3', 0.0025), ('1e-400', 0.0), ('1000000', 1e6)):
            self.assertEqual(value, numerals.parse(text), text)

    def test_what_is_none(self):
        for text in ('', ' ', 'nan', 'NaN', 'inf', '-Infinity', '1e400', '1_5', '１.５', '٢', '²',
                     '1,5', '.5', '1.', '01.5', '+1.5', ' 1.5', '1.5\n', '0x10', 'True', '1.5x'):
            with self.assertRaises(numerals.InvalidNumber) as caught:
                numerals.parse(text)
            self.assertEqual(f'{text!r}: expected a finite number', str(caught.exception))

    def test_whole_numbers(self):
        self.assertEqual([0, -7, 10 ** 17], [numerals.parse_whole(text) for text in (
            '0', '-7', str(10 ** 17))])
        for text in ('', '1.0', '1e3', '1_0', '１', '007', '9' * 5000):
            with self.assertRaisesRegex(numerals.InvalidNumber, 'expected a whole number$'):
                numerals.parse_whole(text)

    def test_ranges(self):
        self.assertEqual([1.0, 2.0], [numerals.parse(text, 1, 2) for text in ('1', '2')])
        self.assertEqual(3, numerals.whole(3)('3'))
        for parse, text, remedy in (
                (numerals.number(1, 2592000), '0.5', 'expected a finite number from 1 to 2592000'),
                (numerals.number(high=-1), '0', 'expected a finite number of at most -1'),
                (numerals.whole(3), '2', 'expected a whole number of at least 3')):
            with self.assertRaises(numerals.InvalidNumber) as caught:
                parse(text)
            self.assertEqual(remedy, caught.exception.remedy)
