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

"""VMs with shares of Manila's: not moved, and asked for no more often than needed."""

import dataclasses
import unittest
from unittest import mock

import numpy as np

from tests import synthetic
from tracon_watcher.decision_engine import strategy
from tracon_watcher.inventory import listing
from tracon_watcher.placement import cluster
from tracon_watcher.placement import placement_constraints

HOSTS, VMS = 10, 10


@dataclasses.dataclass(frozen=True)
class Move:
    uuid: str
    source: str


@dataclasses.dataclass(frozen=True)
class Plan:
    moves: tuple[Move, ...]


class Compute:
    """Nova, which tells of the shares of one VM at a time."""

    def __init__(self, sharing):
        self.sharing = sharing
        self.asked = []

    def get(self, path, params, microversion):
        uuid = path.split('/')[2]
        self.asked.append(uuid)
        shares = [{'share_id': 'one'}] if uuid in self.sharing else []
        return Answer(404 if uuid == 'gone' else 200, {'shares': shares})


class Answer:
    headers, reason, url, text, content = {}, 'reason', 'http://nova', '', b''

    def __init__(self, status, body):
        self.status_code = status
        self._body = body

    def json(self):
        return self._body


class SharesTestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.state = cluster.build([cluster.Host(f'h{host}', tuple(
            cluster.Resident(f'{host}-{vm}', np.ones(4)) for vm in range(VMS)),
            synthetic.HOST_TYPE, cluster.LOCAL, 1.0) for host in range(HOSTS)])
        self.plans = 0

    def plan(self, allowed):
        """Move three that may move, of the first hosts that have some."""
        self.plans += 1
        return Plan(tuple(Move(uuid, uuid.split('-')[0].join(('h', '')))
                          for uuid in self.state.uuids if uuid not in allowed.immovable)[:3])

    def made(self, sharing):
        self.cloud = mock.Mock(compute=Compute(set(sharing)))
        return [move.uuid for move in strategy.InterferenceStrategy._without_shares(
            self.cloud, self.state, placement_constraints.Constraints({}, {}, ()),
            self.plan).moves]

    def test_without_any_nova_is_asked_for_those_that_move(self):
        self.assertEqual(['0-0', '0-1', '0-2'], self.made(()))
        self.assertEqual((1, ['0-0', '0-1', '0-2']), (self.plans, self.cloud.compute.asked))

    def test_others_move_instead(self):
        self.assertEqual(['0-1', '0-3', '0-4'], self.made(('0-0', '0-2')))
        # Each VM is asked for once.
        self.assertEqual(len(set(self.cloud.compute.asked)), len(self.cloud.compute.asked))

    def test_where_nearly_all_have_some_the_few_others_move(self):
        free = {'4-3', '7-1', '9-9'}
        # The last host is not asked any more.
        self.assertEqual(['4-3', '7-1'], self.made(set(self.state.uuids) - free))
        self.assertEqual(strategy._MOST_PLANS + 1, self.plans)

    def test_those_that_turned_out_free_stay_so_when_it_is_given_up(self):
        with mock.patch.object(strategy, '_MOST_PLANS', 2):
            self.assertEqual(['0-9'], self.made(set(self.state.uuids) - {'0-9'}))

    def test_a_vm_that_is_gone_is_not_moved_and_silence_ends_the_audit(self):
        self.cloud = mock.Mock(compute=Compute(()))
        self.assertTrue(strategy._has_shares(self.cloud, 'gone'))
        self.cloud.compute.get = lambda *given, **named: Answer(503, {})
        self.assertRaises(listing.CloudUnavailable, strategy._has_shares, self.cloud, 'a')
