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

"""An engine that waits to lead knows what the one that leads has told."""

from tests.unit.messaging import base
from tests.unit.placement import snapshots
from tests.unit.placement import test_delta
from tracon_watcher.messaging import subscriber

VM = test_delta.VM
state = test_delta.state


class TestStandby(base.MessagingCase):

    def second(self):
        made = subscriber.Standby(self.transport, 'second')
        made.start()
        self.addCleanup(made._subscriber.stop)
        return made

    def test_it_goes_on_where_the_first_has_stopped(self):
        first, waiting, listener = self.engine('first'), self.second(), self.listener()
        first.publish(state((1, 1)))
        first.publish(state((1, 2), b1=2 * VM))
        self.wait_for(lambda: listener.identities()[-1:] == [(1, 2)])
        self.wait_for(lambda: waiting._subscriber.current is not None
                      and waiting._subscriber.current.identity == (1, 2))
        first.stop()
        heard = waiting.stop()
        snapshots.same(self, state((1, 2), b1=2 * VM), heard)
        second = self.engine('second', start=False)
        second.adopt(heard)
        second.start()
        self.addCleanup(second.stop)
        self.wait_for(lambda: second._transport is not None)
        second.publish(state((2, 1), b1=3 * VM))
        self.wait_for(lambda: listener.identities()[-1:] == [(2, 1)])
        snapshots.same(self, state((2, 1), b1=3 * VM), listener.current)
        # No listener had to fetch the whole.
        self.assertEqual(0, second.statistics()['chunk'])

    def test_nothing_was_heard(self):
        self.assertIsNone(self.second().stop())
