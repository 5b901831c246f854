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

"""Limits of volumes as Cinder states them."""

import unittest

from tracon_watcher.inventory import listing
from tracon_watcher.inventory import volume_limits

VOLUMES = [volume_limits.Volume(f'v{number}', None, name, 10) for number, name in enumerate(
    ('fast', 'slow', 'fast', None, 'unlimited'))]
TYPES = [{'name': 'fast', 'qos_specs_id': 'q1'}, {'name': 'slow', 'qos_specs_id': 'q2'},
         {'name': 'unlimited', 'qos_specs_id': None}]
SPECS = [{'id': 'q1', 'consumer': 'front-end', 'specs': {'read_iops_sec': '500'}},
         {'id': 'q2', 'consumer': 'back-end', 'specs': {'read_iops_sec': '5'}}]

FAILED = listing.CloudUnavailable('Cinder: GET /qos-specs: 503')
REFUSED = listing.Forbidden('Cinder: GET /qos-specs: 403')


class Cinder:
    """In the place of listing.Service."""

    def __init__(self, error=None, types=TYPES, specs=SPECS):
        self.error = error
        self._types, self._specs = types, specs
        self.asked = []

    def get(self, path, key, query):
        self.asked.append(path)
        if self.error is not None:
            raise self.error
        return {key: self._specs}

    def pages(self, path, key, query, limited=True, links=None):
        self.asked.append(path)
        yield from self._types


class ResolvedTestCase(unittest.TestCase):

    def test_plain_limits(self):
        self.assertEqual({'read_iops_sec': 50.0, 'total_bytes_sec': 1e6}, volume_limits.resolved(
            {'read_iops_sec': '50', 'total_bytes_sec': 1000000}, 10))

    def test_a_size_of_requests_makes_a_limit_of_requests_one_of_bytes(self):
        size = {'size_iops_sec': '4096'}
        self.assertEqual({}, volume_limits.resolved(size, 10))
        self.assertEqual(
            {'total_iops_sec': 1000.0, 'total_bytes_sec': 4096000.0, 'read_bytes_sec': 5.0},
            volume_limits.resolved({'total_iops_sec_per_gb': 100, 'read_bytes_sec': 5, **size},
                                   10))
        for stated, least in ((1000, 1000.0), (1000000, 204800.0)):
            self.assertEqual(
                {'read_iops_sec': 50.0, 'read_bytes_sec': least}, volume_limits.resolved(
                    {'read_iops_sec': 50, 'read_bytes_sec': stated, **size}, 10))

    def test_for_each_gigabyte(self):
        specs = {'total_iops_sec_per_gb': '30', 'total_iops_sec_per_gb_min': '500',
                 'total_iops_sec_max': '2000'}
        for size, value in ((1, 500.0), (20, 600.0), (100, 2000.0)):
            self.assertEqual({'total_iops_sec': value}, volume_limits.resolved(specs, size))

    def test_bursts_are_no_limit_and_neither_is_nonsense(self):
        self.assertEqual({}, volume_limits.resolved(
            {'read_iops_sec_max': '50', 'write_iops_sec': 'many', 'read_bytes_sec': '0',
             'total_iops_sec': '-1', 'write_bytes_sec': None}, 10))


class VolumeLimitsTestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.told = []
        self.limits = volume_limits.VolumeLimits(self.told.append)

    def test_what_qemu_enforces(self):
        fast = {'read_iops_sec': 500.0}
        self.assertEqual({'v0': fast, 'v1': {}, 'v2': fast, 'v3': {}, 'v4': {}},
                         self.limits.collect(Cinder(), VOLUMES))
        self.assertEqual([], self.told)

    def test_both_ends_count(self):
        specs = [{'id': 'q1', 'consumer': 'both', 'specs': {'read_iops_sec': 1}}]
        self.assertEqual({'read_iops_sec': 1.0}, self.limits.collect(
            Cinder(specs=specs), VOLUMES)['v0'])

    def test_while_cinder_fails_what_was_learnt_of_types_counts(self):
        before = self.limits.collect(Cinder(), VOLUMES)
        for again in ('', ' (2nd)', ' (3rd)'):
            error = listing.CloudUnavailable(f'{FAILED}{again}')
            self.assertEqual(before, self.limits.collect(Cinder(error), VOLUMES))
        larger = volume_limits.Volume('new', None, 'fast', 20)
        self.assertEqual({'new': before['v0']}, self.limits.collect(Cinder(FAILED), [larger]))
        self.assertEqual(['The limits of volumes are not up to date: Cinder: GET /qos-specs: 503'],
                         self.told)
        self.limits.collect(Cinder(), VOLUMES)
        self.limits.collect(Cinder(FAILED), VOLUMES)
        self.assertEqual(2, len(self.told))

    def test_what_was_never_learnt_is_unknown(self):
        self.assertEqual({'v3': {}}, self.limits.collect(Cinder(FAILED), VOLUMES))
        self.assertEqual(['The limits of volumes are unknown: Cinder: GET /qos-specs: 503'],
                         self.told)
        self.limits.collect(Cinder(), VOLUMES)
        other = volume_limits.Volume('new', None, 'other', 10)
        self.assertEqual({}, self.limits.collect(Cinder(FAILED), [other]))

    def test_where_no_type_is_limited_none_is_unknown(self):
        for cinder in (Cinder(specs=SPECS[1:]), Cinder(FAILED), Cinder(types=TYPES[1:])):
            self.assertIsNone(self.limits.collect(cinder, VOLUMES))

    def test_types_that_are_not_listed_are_not_taken_for_types_without_limits(self):
        self.assertIsNone(self.limits.collect(Cinder(types=[]), VOLUMES))
        (text,) = self.told
        self.assertRegex(text, 'do not count.*access_types_qos_specs_id')

    def test_who_may_not_ask_is_told_once_that_limits_do_not_count(self):
        for cinder in (Cinder(REFUSED), Cinder(FAILED), Cinder(REFUSED)):
            self.assertIsNone(self.limits.collect(cinder, VOLUMES))
        self.assertIn('do not count', self.told[0])
        self.assertIn('403', self.told[0])

    def test_what_was_learnt_counts_also_when_cinder_begins_to_refuse(self):
        before = self.limits.collect(Cinder(), VOLUMES)
        self.assertEqual(before, self.limits.collect(Cinder(REFUSED), VOLUMES))

    def test_who_is_not_shown_the_specifications_of_types_is_told(self):
        types = [{'name': 'fast'}]
        self.assertIsNone(self.limits.collect(Cinder(types=types), VOLUMES))
        self.assertIn('access_types_qos_specs_id', *self.told)

    def test_without_types_nothing_is_asked(self):
        cinder = Cinder()
        self.assertEqual({'v3': {}}, self.limits.collect(cinder, VOLUMES[3:4]))
        self.assertEqual([], cinder.asked)

    def test_without_specifications_no_types_are_asked_for(self):
        cinder = Cinder(specs=SPECS[1:])
        self.limits.collect(cinder, VOLUMES)
        self.assertEqual(['/qos-specs'], cinder.asked)
