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

"""What is said of idle capacity."""

import dataclasses

import numpy as np

from tests.unit.api import base
from tracon_watcher.engine import idle_shares

#: 2026-11-29, 00:00 UTC.
MIDNIGHT = 498_864


class Capacity(base.ApiCase):

    def setUp(self):
        super().setUp()
        values = np.full((48, 3, 3), np.nan)
        values[:, 0] = 0.9, 0.5, 0.8
        # At noon its CPU is busy; of its disks nothing is known.
        values[:, 1] = 0.7, 0.3, np.nan
        values[[12, 36], 1, 0] = 0.1
        self.view = dataclasses.replace(self.view, idle=idle_shares.IdleShares(
            tuple(range(MIDNIGHT, MIDNIGHT + 48)), ('alpha', 'beta', 'gone'), values))

    def rows(self, **query):
        return {one['name']: one for one in self.get('/v1/capacity', **query)['capacity']}

    def test_of_hosts(self):
        found = self.rows()
        self.assertEqual(['alpha', 'beta', 'delta', 'gamma'], list(found))
        beta = found['beta']['idle']
        self.assertEqual((48, 0), (beta['cpu']['known'], beta['cpu']['unknown']))
        self.assertAlmostEqual((46 * 0.7 + 2 * 0.1) / 48, beta['cpu']['mean'], places=4)
        self.assertEqual({'5': 0.7, '25': 0.7, '50': 0.7, '75': 0.7, '95': 0.7},
                         beta['cpu']['percentiles'])
        self.assertEqual({'mean': None, 'percentiles': None, 'known': 0, 'unknown': 48},
                         beta['disk'])
        # Neither is a host without any counters idle, nor busy.
        self.assertEqual(48, found['delta']['idle']['cpu']['unknown'])

    def test_now(self):
        found = self.rows()
        self.assertEqual((1.0, 1.0, 1.0, 0, 0), tuple(found['delta'][name] for name in (
            'cores', 'idle_cores', 'background_cores', 'vms', 'limited_vms')))
        self.assertEqual((2, 1), (found['alpha']['vms'], found['alpha']['limited_vms']))
        gamma = found['gamma']
        self.assertEqual([None] * 3, [gamma[name] for name in (
            'cores', 'idle_cores', 'background_cores')])
        self.assertEqual(1, gamma['unknown_hosts'])

    def test_of_hours_of_the_day(self):
        found = self.rows(by='hour')
        self.assertEqual([f'{hour:02}' for hour in range(24)], list(found))
        noon, one = found['12']['idle']['cpu'], found['13']['idle']['cpu']
        # Two days of two hosts with counters and two without.
        self.assertEqual((4, 4), (noon['known'], noon['unknown']))
        self.assertAlmostEqual(0.5, noon['mean'])
        self.assertAlmostEqual(0.8, one['mean'])
        self.assertEqual(0.9, noon['percentiles']['95'])
        self.assertNotIn('cores', found['12'])

    def test_of_the_cloud(self):
        (found,) = self.rows(by='cloud').values()
        self.assertEqual((4, 1), (found['hosts'], found['unknown_hosts']))
        hosts = [one for one in self.rows().values() if one['idle_cores'] is not None]
        self.assertAlmostEqual(sum(one['idle_cores'] for one in hosts), found['idle_cores'],
                               places=3)
        self.assertEqual(3.0, found['cores'])
        self.assertEqual((96, 96), (found['idle']['cpu']['known'],
                                    found['idle']['cpu']['unknown']))
        hours = self.get('/v1/capacity', by='cloud')['hours']
        self.assertEqual({'count': 48, 'from': '2026-11-29T00:00:00Z',
                          'to': '2026-12-01T00:00:00Z'}, hours)

    def test_stale_hosts_are_unknown(self):
        self.now += 601
        (found,) = self.rows(by='cloud').values()
        self.assertEqual((4, None, None), (found['unknown_hosts'], found['idle_cores'],
                                           found['background_cores']))
        self.assertEqual(96, found['idle']['cpu']['known'])

    def test_before_any_hour(self):
        self.view = dataclasses.replace(self.view, idle=idle_shares.IdleShares())
        document = self.get('/v1/capacity', by='cloud')
        self.assertEqual({'count': 0, 'from': None, 'to': None}, document['hours'])
        self.assertEqual({'mean': None, 'percentiles': None, 'known': 0, 'unknown': 0},
                         document['capacity'][0]['idle']['cpu'])
        self.assertEqual(1.0, self.rows()['delta']['background_cores'])

    def test_order_and_pages(self):
        self.assertEqual(['alpha', 'beta', 'delta', 'gamma'],
                         list(self.rows(sort_key='cpu', sort_dir='desc')))
        self.assertEqual('12', next(iter(self.rows(by='hour', sort_key='cpu'))))
        self.assertEqual('delta', next(iter(
            self.rows(sort_key='background_cores', sort_dir='desc'))))
        first = self.get('/v1/capacity', limit=2)
        self.assertEqual(1, len(first['links']))
        self.assertEqual(['delta', 'gamma'], list(self.rows(marker='beta')))
        self.refused(400, '/v1/capacity', by='year')
        self.refused(400, '/v1/capacity', by='hour', sort_key='background_cores')
