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

"""Which sightings are an alarm of a host type, told by hand."""

import unittest

from tests import synthetic
from tracon_watcher.engine import sightings
from tracon_watcher.engine import watching


def sighting(vm, host, exponent, predicted=0.5):
    """Return what one VM tells."""
    some = 0.2 * synthetic.CAPACITY
    return sightings.Sighting(vm, host, some, some[None], 1.0, exponent, 0.05, predicted)


class TestWatching(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.watching = watching.Watching(synthetic.models()[synthetic.HOST_TYPE])

    def take(self, count, host, exponent, vms=20):
        """Hear of a host's VMs in turn, and return how many alarms there were."""
        return sum(self.watching.take(sighting(f'vm-{host}-{turn % vms}', host, exponent))
                   for turn in range(count))

    def present(self, *hosts):
        self.watching.attend(hosts, {f'vm-{host}-{number}' for host in hosts
                                     for number in range(20)})

    def test_one_host_heard_first_is_not_the_type(self):
        self.present('h0', 'h1', 'h2')
        self.assertEqual(0, self.take(100, 'h0', 1.5))
        self.assertEqual(0, self.take(100, 'h1', 0.5))
        self.assertEqual(1.0, self.watching.trust)

    def test_the_only_host_is(self):
        self.present('h0')
        self.assertEqual(1, self.take(100, 'h0', 1.5))

    def test_a_single_word_from_elsewhere_does_not_make_it_the_type(self):
        self.present('h0', 'h1', 'h2')
        self.take(5, 'h0', 1.5)
        self.take(1, 'h1', 1.5)
        self.assertEqual(0, self.take(100, 'h0', 1.5))
        self.assertEqual(1.0, self.watching.trust)

    def test_many_words_do(self):
        self.present('h0', 'h1', 'h2')
        self.assertEqual(1, sum(self.take(1, f'h{turn % 3}', 1.5) for turn in range(60)))
        self.assertLess(self.watching.trust, 1)
