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

"""Episodes in a database."""

import math
from unittest import mock

from tests.unit.engine.storage import base
from tracon_watcher.engine.storage import records


def episode(began, vm='a', host='h1', **more):
    return {'host': host, 'vm': vm, 'began_at': began, 'ended_at': None,
            'slowdowns_before': {vm or 'a': 1.5}, **more}


class TestEpisodes(base.StorageCase):

    def began(self, vm='a', host='h1'):
        return [one['began_at'] for one in self.storage.episodes.of_vm(vm, host)]

    def test_one_takes_the_place_of_what_was_known_of_it(self):
        episodes = self.storage.episodes
        self.assertIsNone(episodes.get('e1'))
        episodes.put('e1', episode(1.0))
        episodes.put('e1', episode(1.0, slowdowns_before={'a': math.nan}))
        self.assertEqual(episode(1.0, slowdowns_before={'a': None}), episodes.get('e1'))
        self.assertEqual([1.0], self.began())

    def test_those_of_a_vm_and_of_its_host(self):
        for number, one in enumerate((
                episode(1.0), episode(2.0, 'b'), episode(3.0, None), episode(4.0, None, 'h2'),
                episode(5.0, 'a', 'h2'), episode(6.0, None, slowdowns_before={'b': 1.0}))):
            self.storage.episodes.put(f'e{number}', one)
        self.assertEqual([5.0, 3.0, 1.0], self.began())
        self.assertEqual([5.0, 4.0, 1.0], self.began(host='h2'))
        self.assertEqual([5.0, 1.0], self.began(host=None))
        self.assertEqual([6.0, 2.0], self.began('b'))

    def test_the_latest_of_a_host_are_kept(self):
        self.enterContext(mock.patch.multiple(records, _KEPT=5, _SHOWN=3))
        for number in range(8):
            self.storage.episodes.put(f'e{number}', episode(10.0 + number))
        self.storage.episodes.put('other', episode(1.0, 'z', 'h2'))
        self.assertEqual([17.0, 16.0, 15.0], self.began())
        records._SHOWN = 9
        self.assertEqual([17.0, 16.0, 15.0, 14.0, 13.0], self.began())
        self.assertEqual([1.0], self.began('z'))
