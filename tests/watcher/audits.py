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

"""Audits of synthetic clouds: the whole strategy, with the services in memory."""

import pathlib
import tempfile
import types
import unittest
from unittest import mock

from watcher.common import utils

from tests.watcher import clouds
from tracon_watcher.decision_engine import goal
from tracon_watcher.decision_engine import records
from tracon_watcher.decision_engine import strategy
from tracon_watcher.placement import snapshot


class Ours(strategy.InterferenceStrategy):
    """The strategy, with the services in memory.

    :param recorded: what Watcher's database says
    """

    def __init__(self, world, snapshot_file, recorded=records.Records(), **given):
        super().__init__(None)
        self._compute_model = clouds.watcher_model(world)
        self._services = clouds.Services(world)
        self._recorded = recorded
        self.input_parameters = utils.Struct({
            'snapshot_file': snapshot_file, 'max_migrations': 6, 'min_gain': 0.02,
            'migration_cost': 0.0, 'noise': 0.0, 'cooldown_seconds': clouds.COOLDOWN, **given})

    def _connect(self):
        return self._services

    def _records(self, since):
        return self._recorded


class Action(types.SimpleNamespace):
    __hash__ = object.__hash__


def parents_of(audit, solution):
    """Return, by uuid of a VM, the VMs whose migrations Watcher's applier ends before."""
    actions = [Action(uuid=one['input_parameters']['resource_id'], parents=[],
                      input_parameters=one['input_parameters']) for one in solution.actions]
    ours = goal.DependencyPlanner(None)
    ours._waits_for = audit.waits_for
    ours.compute_action_graph([(30, actions)])
    return {action.uuid: list(action.parents) for action in actions}


class AuditCase(unittest.TestCase):
    """A snapshot in a file, and a clock that stands still."""

    def setUp(self):
        super().setUp()
        self.path = str(pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
                        / 'snapshot')
        self.enterContext(mock.patch('time.time', autospec=True, return_value=clouds.NOW))

    def audit(self, world, state=None, learnt=None, **given):
        """Write a snapshot of a cloud, and return an audit that reads it.

        :param state: other than the cloud is
        :param learnt: of host types
        """
        content = snapshot.Snapshot(state or clouds.state_of(world), 900.0, 3, learnt or {})
        pathlib.Path(self.path).write_text(''.join(snapshot.lines(content)), encoding='utf-8')
        return Ours(world, self.path, **given)
