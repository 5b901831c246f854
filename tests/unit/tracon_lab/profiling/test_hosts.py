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

from tracon_lab.profiling import errors
from tracon_lab.profiling import hosts
from tracon_watcher import errors as common
from tracon_watcher.inventory import cloud


def inventory(aggregates=(('fast', ('a', 'b')), ('slow', ('c',))), vms=(), down=(), disabled=()):
    servers = {name: cloud.Server(name, name, project, host, 'f', {}, 'i', 'active')
               for name, project, host in vms}
    return cloud.Inventory(
        servers, {name: cloud.Hypervisor(name, name not in disabled, name not in down)
                  for name in 'abcd'},
        tuple(cloud.Aggregate(kind, frozenset(listed), {'tracon:host_type': kind})
              for kind, listed in aggregates), {}, 0.0)


class TestChosen(unittest.TestCase):

    def chosen(self, wanted=(), default=None, **found):
        return hosts.chosen(inventory(**found), wanted, 'ours', default)

    def test_by_name(self):
        self.assertEqual([('a', 'fast'), ('d', 'new')], self.chosen(['a', 'd=new']))
        self.assertEqual([('d', 'usual')], self.chosen(['d'], 'usual'))
        self.assertEqual([('a', 'other')], self.chosen(['a=other']))

    def test_one_of_each_type(self):
        self.assertEqual([('a', 'fast'), ('c', 'slow')], self.chosen())
        self.assertEqual([('b', 'fast'), ('c', 'slow')], self.chosen(vms=[('x', 'p', 'a')]))
        self.assertEqual([('b', 'fast'), ('d', 'slow'), ('c', 'usual')], self.chosen(
            (), 'usual', aggregates=(('fast', 'ab'), ('slow', 'd')), down='a'))

    def test_leftovers_of_our_own_do_not_count(self):
        vm = hosts.prefix('a') + 'target'
        self.assertEqual([('a', 'fast')], self.chosen(['a'], vms=[(vm, 'ours', 'a')]))
        for name, project in ((vm, 'theirs'), (hosts.prefix('b') + 'target', 'ours')):
            with self.assertRaises(errors.HostNotEmpty):
                self.chosen(['a'], vms=[(name, project, 'a')])

    def test_what_cannot_be(self):
        for wanted, text, found in (
                (['z'], 'host z: there is no such compute host; there are a, b, c, d', {}),
                (['d'], r'host d: its type is not known: .*--host d=TYPE', {}),
                (['a'], 'host a is down', {'down': 'a'}),
                (['a'], 'host a is disabled.*service set --enable a', {'disabled': 'a'}),
                (['a'], r'host a has 2 other VMs: x \(x\), y \(y\): .*move them away',
                 {'vms': [('x', 'p', 'a'), ('y', 'p', 'a'), ('z', 'p', 'b')]}),
                ([], 'no host has a type: .*--host NAME=TYPE', {'aggregates': ()}),
                ([], 'host type slow: none of its 1 hosts can be measured: host c is down',
                 {'down': 'c'})):
            with self.subTest(text), self.assertRaisesRegex(errors.ProfilingError, text):
                self.chosen(wanted, **found)
        with self.assertRaisesRegex(common.InvalidOption, 'another host of the type fast'):
            self.chosen(['a', 'b'])
        with self.assertRaisesRegex(common.InvalidOption, 'a file is named by it'):
            self.chosen(['a=../x'])

    def test_many_vms_are_not_all_named(self):
        vms = [('vm-%02d' % number, 'p', 'a') for number in range(9)]
        with self.assertRaisesRegex(errors.HostNotEmpty, r'9 other VMs: .*vm-04 \(vm-04\), …:'):
            self.chosen(['a'], vms=vms)
