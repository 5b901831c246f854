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

import unittest

import numpy as np

from tracon_lab.scheduling import configurations
from tracon_lab.scheduling import pool
from tracon_watcher import errors


class TestPool(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.space = configurations.Configurations(('a', 'b'), (2, 4))

    def test_first_is_the_first_whatever_has_happened(self):
        keys = {pool.PACKED: lambda host, size: host, pool.SPREAD: lambda host, size: (size, host)}
        for order in pool.ORDERS:
            rng = np.random.default_rng(0)
            kinds = rng.integers(0, 2, 9).tolist()
            hosts = pool.Pool(self.space, kinds, order)
            running = [[] for _host in kinds]
            for _step in range(2000):
                host = int(rng.integers(9))
                if rng.random() < 0.55 and len(running[host]) < self.space.slots[kinds[host]]:
                    running[host].append(int(rng.integers(2)))
                    hosts.add(host, running[host][-1])
                elif running[host]:
                    hosts.remove(host, running[host].pop())
                free = [one for one in range(9)
                        if len(running[one]) < self.space.slots[kinds[one]]]
                if free:
                    expected = min(free, key=lambda one: keys[order](one, len(running[one])))
                    self.assertEqual(expected, hosts.first())
                self.assertEqual(sum(self.space.slots[kinds[one]] - len(running[one])
                                     for one in range(9)), hosts.free)
                for index, members in enumerate(hosts.hosts):
                    self.assertEqual([one for one in free if hosts.of[one] == index],
                                     sorted(members))

    def test_a_full_host_takes_nothing_and_an_empty_one_loses_nothing(self):
        hosts = pool.Pool(self.space, [0])
        with self.assertRaisesRegex(errors.InvalidOption, 'runs no task of class b'):
            hosts.remove(0, 1)
        hosts.add(0, 0)
        hosts.add(0, 0)
        with self.assertRaisesRegex(errors.InvalidOption, 'no free slot'):
            hosts.add(0, 0)

    def test_no_machines_and_unknown_orders_are_refused(self):
        with self.assertRaisesRegex(errors.InvalidOption, 'machines=0'):
            pool.Pool(self.space, [])
        with self.assertRaisesRegex(errors.InvalidOption, 'packed, spread'):
            pool.Pool(self.space, [0], 'sorted')


class TestConfigurations(unittest.TestCase):

    def test_every_multiset_of_every_host_type_and_how_they_come_about(self):
        space = configurations.Configurations(('a', 'b', 'c'), (2, 3))
        self.assertEqual(10 + 20, len(space))
        for index, members in enumerate(space.members):
            self.assertEqual(sorted(members), list(members))
            for task in range(3):
                grown = space.added[index][task]
                if space.full[index]:
                    self.assertEqual(configurations.NONE, grown)
                else:
                    self.assertEqual(sorted((*members, task)), list(space.members[grown]))
                    self.assertEqual(space.host_type[index], space.host_type[grown])
                    self.assertEqual(index, space.removed[grown][task])

    def test_bad_input(self):
        for arguments, said in ((((), (2,)), 'at least one class'),
                                ((('a', 'a'), (2,)), 'stands there twice'),
                                ((('a',), (0,)), 'one task at least'),
                                ((tuple(map(str, range(40))), (8,)), 'fewer slots')):
            with self.assertRaisesRegex(errors.InvalidOption, said):
                configurations.Configurations(*arguments)
