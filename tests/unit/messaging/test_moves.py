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

"""What the engine is told of moves, and tells of them."""

from tests.unit.messaging import base
from tests.unit.messaging import test_exchange
from tracon_watcher import errors
from tracon_watcher.messaging import engine_client
from tracon_watcher.messaging import protocol


class MovesTest(base.MessagingCase):

    def test_moves_arrive(self):
        moves = []
        self.engine(on_moves=moves.extend).publish(test_exchange.state((1, 1)))
        listener = self.listener()
        listener.post(protocol.RECORD_MOVES, {'id': 'm1'})
        self.wait_for(lambda: moves)
        self.assertEqual([{'id': 'm1'}], moves)

    def test_what_was_learnt_is_told(self):
        learnt = {'suspended': {'live migration off fast': 5.0}, 'cooldowns': {'a': 7}}
        self.engine(standing=lambda: learnt)
        self.assertEqual(learnt, engine_client.EngineClient(self.transport()).standing())

    def test_an_engine_that_has_learnt_nothing_says_so(self):
        self.engine()
        self.assertEqual({'suspended': {}, 'cooldowns': {}},
                         engine_client.EngineClient(self.transport()).standing())

    def test_what_is_no_moment_is_refused(self):
        self.engine(standing=lambda: {'suspended': {'x': 'for ever'}, 'cooldowns': {}})
        with self.assertRaisesRegex(errors.InvalidDocument, 'for ever'):
            engine_client.EngineClient(self.transport()).standing()
