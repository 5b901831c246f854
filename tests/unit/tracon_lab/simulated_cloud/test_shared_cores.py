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

from tracon_lab.simulated_cloud import shared_cores
from tracon_lab.simulator import crowds
from tracon_lab.simulator import loops


def slowdowns(cores, drawn, ready=None):
    """Return those of crowds, (hosts, VMs), and how often VMs are ready."""
    host, _vm = np.nonzero(drawn.there)
    found, ready = shared_cores.SharedCores(cores, 1).slowdowns(
        host, drawn.vcpus[drawn.there], drawn.used[drawn.there], ready)
    table = np.full(drawn.vcpus.shape, np.nan)
    table[drawn.there] = found
    return table, ready


class SharedCoresTest(unittest.TestCase):

    def test_events_say_the_same(self):
        for cores, least, most, allowed in ((4, 6, 12, 0.04), (16, 20, 50, 0.02)):
            with self.subTest(cores):
                drawn = crowds.draw(8, cores, least, most, 3)
                events = loops.slowdowns(drawn.cores, drawn.vcpus, drawn.used,
                                         np.ones(drawn.used.shape), 20000, 1)
                found, _ready = slowdowns(cores, drawn)
                there = drawn.there & np.isfinite(events)
                error = np.abs(found[there] / events[there] - 1.0)
                self.assertGreater(events[there].max(), 1.5)
                self.assertLess(error.mean(), allowed)

    def test_no_vm_waits_where_cores_are_spare(self):
        found, ready = shared_cores.SharedCores(16, 1).slowdowns(
            np.zeros(20, dtype=int), np.ones(20, dtype=int), np.full(20, 0.1))
        self.assertEqual([1.0] * 20, found.tolist())
        self.assertEqual([0.1] * 20, ready.tolist())

    def test_where_it_begins_does_not_matter(self):
        drawn = crowds.draw(6, 8, 10, 20, 4)
        first, ready = slowdowns(8, drawn)
        again, _ready = slowdowns(8, drawn, ready)
        np.testing.assert_allclose(first, again, rtol=0.01)

    def test_vms_in_any_order(self):
        drawn = crowds.draw(4, 8, 10, 20, 4)
        host, _vm = np.nonzero(drawn.there)
        vcpus, used = drawn.vcpus[drawn.there], drawn.used[drawn.there]
        mixed = np.random.default_rng(1).permutation(len(host))
        found, _ready = shared_cores.SharedCores(8, 1).slowdowns(host, vcpus, used)
        other, _ready = shared_cores.SharedCores(8, 1).slowdowns(
            host[mixed], vcpus[mixed], used[mixed])
        # Draws belong to places on a host, so that VMs of one size may change theirs.
        np.testing.assert_allclose(found[mixed], other, rtol=0.1)

    def test_no_vms(self):
        found, _ready = shared_cores.SharedCores(8, 1).slowdowns(
            np.zeros(0, dtype=int), np.zeros(0, dtype=int), np.zeros(0))
        self.assertEqual(0, len(found))
