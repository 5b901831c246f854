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

"""Verdicts, true causes, the confusion matrix, and slowdowns measured and judged."""

import collections
import pathlib
import tempfile
import unittest

from tracon_lab.testbed import causes
from tracon_lab.testbed import own_limits
from tracon_watcher import errors

NAN = float('nan')
SETTINGS = own_limits.settings()


def taken(setting, rate, verdict, alone=100.0, free=200.0):
    return causes.Taken(setting, 'a=1', 4.0, 0.01, rate, verdict, alone, free, rate)


def setting(resource, name):
    return next(one for one in SETTINGS if (one.resource, one.name) == (resource, name))


class SettingsTestCase(unittest.TestCase):

    def test_all_causes_of_both_resources(self):
        found = collections.Counter((one.resource, one.name) for one in SETTINGS)
        self.assertEqual({(resource, cause) for resource in ('CPU', 'disk')
                          for cause in causes.CAUSES}, set(found))

    def test_a_vm_has_one_flavor(self):
        shares = {}
        for one in SETTINGS:
            shares.setdefault(one.vm, set()).add(one.share)
        self.assertEqual({1}, set(map(len, shares.values())))


class VerdictTestCase(unittest.TestCase):

    def test_what_is_judged(self):
        for reached, slowdown, judged in (
                (False, 1.0, 'neither'), (True, 1.05, 'own limit'), (False, 1.1, 'neighbour'),
                (True, 2.0, 'both'), (True, NAN, 'own limit, rest unknown'),
                (False, NAN, 'unknown'), (None, 1.0, 'unknown')):
            self.assertEqual(judged, causes.Verdict(reached, slowdown).judged)


class CauseTestCase(unittest.TestCase):

    def test_what_is_not_missed_is_no_cause(self):
        for name, rate, alone, free, cause in (
                ('neither', 50, 100, 100, 'neither'), ('neighbour', 50, 100, 50, 'neighbour'),
                ('neighbour', 95, 100, 95, 'neither'), ('own limit', 50, 50, 100, 'own limit'),
                ('both', 48, 50, 100, 'own limit'), ('both', 50, 90, 52, 'neighbour'),
                ('both', 50, 90, 60, 'both'), ('both', 0, 90, 60, 'both')):
            with self.subTest(setting=name, rate=rate, alone=alone, free=free):
                self.assertEqual(cause, taken(setting('CPU', name), rate, None, alone, free).cause)


class ComparedTestCase(unittest.TestCase):

    def test_causes_are_those_of_settings_whatever_a_single_window_shows(self):
        free, alone, both = (next(
            one for one in SETTINGS if one.vm == vm and one.beside == beside) for vm, beside in (
                ('cpu-free', 'bursts'), ('cpu-70', None), ('cpu-70', 'bursts')))
        windows = causes.compared([
            causes.Taken(one, '', 4.0, foreign, rate, causes.Verdict(True, 1.2))
            for one, foreign, rates in ((free, 0.0, (70, 71, 40)), (alone, 0.0, (70, 70, 69)),
                                        (both, 0.0, (58, 90, 57)), (both, 0.5, (10, 10, 10)))
            for rate in rates])
        self.assertEqual({'both'}, {one.cause for one in windows if one.setting == both})
        self.assertEqual({58}, {one.usual for one in windows if one.setting == both})
        self.assertEqual({(70, 70)}, {(one.alone, one.free) for one in windows
                                      if one.setting == both})


class FileTestCase(unittest.TestCase):

    def test_a_file_comes_back_as_its_matrix(self):
        windows = [taken(setting('CPU', 'own limit'), 100.0, causes.Verdict(True, 1.0)),
                   taken(setting('CPU', 'own limit'), 99.0, causes.Verdict(False, 1.5)),
                   taken(setting('disk', 'both'), 50.0, causes.Verdict(True, NAN))]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'windows.csv'
            causes.write(path, {'qemu': '9'}, windows)
            self.assertTrue(path.read_text().startswith('# qemu: 9\nresource,setting,'))
            rows = causes.read(path)
        self.assertEqual([('CPU', 'own limit', 2, 0, 1, 1, 0, 0, 0, 0.5),
                          ('disk', 'both', 1, 0, 0, 0, 0, 1, 0, 0.0)], causes.matrix(rows))

    def test_another_file_is_refused(self):
        good = ','.join(causes.COLUMNS)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / 'x.csv'
            for text, said in (
                    ('resource,cause\nCPU,neither\n', 'x.csv: line 1, .* column .*foreign.* miss'),
                    (good + '\n' + ','.join('x' * len(causes.COLUMNS)),
                     "x.csv: line 2, column cause is 'x': not of this release")):
                path.write_text(text)
                with self.assertRaisesRegex(errors.InvalidDocument, said):
                    causes.read(path)


class SlowdownsTestCase(unittest.TestCase):

    def rows(self, *windows):
        """Rows as of a file, of (neighbour, foreign load, units a second, slowdown)."""
        return [{'resource': 'CPU', 'limit': '', 'neighbour': neighbour, 'foreign': foreign,
                 'units_per_second': rate, 'without_neighbour': 120.0, 'slowdown': slowdown}
                for neighbour, foreign, rate, slowdown in windows]

    def test_measured_and_judged_beside_each_other(self):
        found = causes.slowdowns(self.rows(
            ('loop', 0.01, 60.0, 2.2), ('loop', 0.01, 40.0, 3.0), ('loop', 0.01, 30.0, NAN),
            ('loop', 0.5, 1.0, 1.0), ('loop', 0.01, 0.0, 1.0), ('none', 0.01, 120.0, 1.0)))
        self.assertEqual(1, len(found))
        self.assertEqual(('CPU', '', 'loop', 3, 2, 3.0), found[0][:6])
        for expected, value in zip((2.6, 0.05, 0.1), found[0][6:], strict=True):
            self.assertAlmostEqual(expected, value)

    def test_of_unknown_slowdowns_nothing_is_said(self):
        self.assertEqual([('CPU', '', 'loop', 1, 0, 2.0, None, None, None)],
                         causes.slowdowns(self.rows(('loop', 0.01, 60.0, NAN))))


class Domain:
    """Takes what is set."""

    def setSchedulerParametersFlags(self, parameters):
        self.quota = parameters

    def setBlockIoTune(self, device, parameters):
        self.tune = {name: value for name, value in parameters.items() if value}


class ApplyTestCase(unittest.TestCase):

    def test_limits_come_and_go(self):
        domain = Domain()
        own_limits.apply(domain, {'quota:cpu_quota': '30000', 'quota:cpu_period': '50000',
                                  'quota:disk_read_iops_sec': '40'})
        self.assertEqual(({'vcpu_quota': 30000, 'vcpu_period': 50000}, {'read_iops_sec': 40}),
                         (domain.quota, domain.tune))
        own_limits.apply(domain, {})
        self.assertEqual((-1, {}), (domain.quota['vcpu_quota'], domain.tune))
