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

"""Clusters described by hand."""

import unittest

import numpy as np

from tracon_watcher import csv_table
from tracon_watcher import errors
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import table

HEADING = ('host,host_type,storage,uuid,read_requests_per_second,write_requests_per_second,'
           'guest_cpu,host_cpu,flavor,max_slowdown')


def read(*rows, heading=HEADING):
    return table.build(csv_table.parse('\n'.join((heading, *rows)), 'state.csv', table.REQUIRED,
                                       table.REQUIRED + table.OPTIONAL), 50.0)


class Read(unittest.TestCase):

    def test_hosts_vms_limits_history(self):
        state = read('a,t,,vm1,10,20,0.5,0.1,small,1.5', 'b,t,pool,,,,,,,',
                     'a,t,,vm2,,,,,small,')
        self.assertEqual(('a', 'b'), state.hosts)
        self.assertEqual(('vm1', 'vm2'), state.uuids)
        self.assertEqual(('local:a', 'pool'), state.io_domains)
        np.testing.assert_array_equal([10, 20, 0.5, 0.1], state.profiles[0])
        self.assertTrue(np.isnan(state.profiles[1]).all())
        self.assertEqual([1.5, np.inf], state.max_slowdown.tolist())
        self.assertEqual([50.0, 50.0], state.updated_at.tolist())
        self.assertEqual(1, newcomer_profiles.expected(state.history, 'any', 'small', 'any').count)

    def test_the_class(self):
        heading = f'{HEADING},class'
        state = read('a,t,,vm1,1,2,0.5,0.1,,1.5,background', 'a,t,,vm2,1,2,0.5,0.1,,1.5,',
                     heading=heading)
        self.assertEqual([True, False], state.background.tolist())
        self.assertEqual([np.inf, 1.5], state.max_slowdown.tolist())
        with self.assertRaisesRegex(errors.InvalidDocument,
                                    "column class is 'batch': expected background"):
            read('a,t,,vm1,1,2,0.5,0.1,,,batch', heading=heading)

    def test_cores_and_vcpus(self):
        heading = f'{HEADING},cores,vcpus,storage_wait'
        state = read('a,t,,vm1,1,2,0.5,0.1,,,48,4,0.3', 'b,t,,vm2,1,2,0.5,0.1,,,,,',
                     heading=heading)
        np.testing.assert_array_equal([48, np.nan], state.cores)
        self.assertEqual([4, 1], state.vcpus.tolist())
        np.testing.assert_array_equal([0.3, np.nan], state.storage_wait)
        for row, expected in (('a,t,,vm1,1,2,0.5,0.1,,,0,1,', "column cores is '0'"),
                              ('a,t,,vm1,1,2,0.5,0.1,,,2,1.5,', "vcpus is '1.5': .*whole"),
                              ('a,t,,vm1,1,2,0.5,0.1,,,2,1,2', "storage_wait is '2'")):
            with self.subTest(expected), self.assertRaisesRegex(errors.InvalidDocument, expected):
                read(row, heading=heading)

    def test_faults_are_named(self):
        good = 'a,t,,vm1,10,20,0.5,0.1,small,1.5'
        for rows, expected in (
                (['a,t,,vm1,10,,0.5,0.1,small,'], "2, column write_requests_per_second is ''"),
                (['a,t,,vm1,10,nan,0.5,0.1,small,'], "write_requests_per_second is 'nan'"),
                (['a,t,,vm1,10,-1,0.5,0.1,small,'], "write_requests_per_second is '-1'"),
                (['a,t,,vm1,10,1,0.5,0.1,small,0.2'], "max_slowdown is '0.2': .*from 1 to 1000"),
                (['a,t,,,10,1,0.5,0.1,small,'], "uuid is ''"),
                ([',t,,vm1,10,1,0.5,0.1,small,'], "host is ''"),
                ([good, 'b,t,,vm1,10,20,0.5,0.1,small,'], 'VM vm1 occurs twice'),
                ([good, 'a,other,,vm2,10,20,0.5,0.1,small,'], 'line 3, column host .*differ'),
                (['a,t,,vm1,10'], 'line 2 .*expected 10 fields, found 5: truncated'),
                (['a,t,,vm1,1e308,1,0.5,0.1,small,'], "'1e308': expected a finite .* to 1e\\+15"),
                (['a,t,,vm1,１,1,0.5,0.1,small,'], "read_requests_per_second is '１'"),
                (['a,t,,vm1,10,1,0.5,0.1,small,1_5'], "line 2, column max_slowdown is '1_5'"),
                (['a,t,,vm1,10,1,"0,5",0.1,small,'], "column guest_cpu is '0,5'"),
                ([good, 'A,t,,vm2,10,20,0.5,0.1,small,'], 'line 3, .*row spells it a'),
                (['a\0,t,,vm1,10,20,0.5,0.1,small,'], r"line 2 is 'a\\x00': holds a control"),
                ([], 'no rows')):
            with self.subTest(expected), self.assertRaisesRegex(errors.InvalidDocument, expected):
                read(*rows)

    def test_columns_are_checked(self):
        with self.assertRaisesRegex(errors.InvalidDocument, 'column host_cpu is missing'):
            read(heading=HEADING.replace(',host_cpu', ''))
        with self.assertRaisesRegex(errors.InvalidDocument, "'colour': unknown column"):
            read(heading=HEADING.replace('flavor', 'colour'))
