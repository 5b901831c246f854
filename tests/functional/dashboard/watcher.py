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

"""What Watcher answers of an audit of a synthetic cloud; the engine's part is the real one."""

import datetime
import json
import re
import tempfile
import uuid

import webob
import webob.dec

from tests.unit.osc import documented
from tracon_watcher.cmd import engine
from tracon_watcher.decision_engine import engine_feedback
from tracon_watcher.decision_engine import parameters
from tracon_watcher.engine import migration_tracker
from tracon_watcher.engine.storage import database
from tracon_watcher.engine.storage import repository
from tracon_watcher.engine.storage import schema
from tracon_watcher.placement import placement_constraints
from tracon_watcher.placement import plan
from tracon_watcher.placement import planner

PLAN = '7f3d7e0c-53f1-4f6f-9a50-0ce5b1a35d0e'
GOAL = 'interference'


class Engine:
    """What the engine keeps of audits, in a database.

    :param view: of the cloud
    :param at: when an audit ran, seconds since the epoch
    """

    def __init__(self, case, view, at):
        folder = case.enterContext(tempfile.TemporaryDirectory())
        opened = database.Database(f'sqlite:///{folder}/tracon.db', sqlite_synchronous=False)
        case.addCleanup(opened.close)
        schema.upgrade(opened)
        self._storage = repository.Storage(opened)
        self._term = self._storage.lease.take(self._storage.lease.look(), 'engine-1')
        self.now = self.made_at = at
        self.view = view
        self.records = engine.Records(self._storage)
        self.aftermath = migration_tracker.MigrationTracker(
            self._storage, lambda: self.view, lambda: self._term, lambda: self.now)
        self.made = planner.plan_moves(view.assessor, placement_constraints.Constraints(),
                                       plan.Parameters(explained=20), view.updated_at)
        state = view.assessor.cluster
        self.aftermath.recommended(list(engine_feedback.documents(
            self.made, state, documented.AUDIT, at)))
        left = documented.audit(view)
        self.aftermath.recommended([{**left, 'at': at}])


class Watcher:
    """Answers as Watcher's API does, of one plan.

    :param engine: is told when it is started
    """

    def __init__(self, engine):
        self._engine = engine
        self.state = 'RECOMMENDED'
        self.audits = []
        self.refuse = None

    @webob.dec.wsgify
    def __call__(self, request):
        path = re.sub('^/v1', '', request.path_info)
        if self.refuse:
            return webob.Response(status=500, json_body={
                'error_message': json.dumps({'faultstring': self.refuse})})
        if path == '/action_plans/detail':
            assert request.GET['strategy'] == 'tracon_interference'
            return webob.Response(json_body={'action_plans': [self._plan()]})
        if path == f'/action_plans/{PLAN}':
            return webob.Response(json_body=self._plan())
        if path == f'/action_plans/{PLAN}/start' and request.method == 'POST':
            self.start()
            return webob.Response(json_body=self._plan())
        if path == '/actions/detail':
            assert request.GET['action_plan_uuid'] == PLAN
            return webob.Response(json_body={'actions': list(self._actions())})
        if path == '/strategies/tracon_interference':
            return webob.Response(json_body={
                'name': 'tracon_interference', 'goal_name': GOAL,
                'parameters_spec': parameters.SCHEMA})
        if path == '/audits' and request.method == 'POST':
            self.audits.append(request.json)
            return webob.Response(status=201, json_body={'uuid': str(uuid.uuid4())})
        return webob.Response(status=404, json_body={'error_message': {
            'faultcode': 'Client', 'faultstring': f'{path} could not be found'}})

    def start(self):
        """Make the plan's moves, and let five minutes go by."""
        self.state = 'SUCCEEDED'
        for move in self._engine.made.moves:
            self._engine.aftermath.moved(move.uuid, move.destination)
        self._engine.now += 301
        self._engine.aftermath.measure()

    def _plan(self):
        made = self._engine.made
        values = {'live_migrations_count': len(made.moves)}
        for name, outlook in (('before', made.before), ('after', made.after)):
            values |= {f'vms_in_breach_{name}': outlook.in_breach,
                       f'mean_slowdown_{name}': outlook.mean_slowdown,
                       f'worst_slowdown_{name}': outlook.worst_slowdown}
        at = datetime.datetime.fromtimestamp(self._engine.made_at, datetime.timezone.utc)
        return {'uuid': PLAN, 'audit_uuid': documented.AUDIT, 'state': self.state,
                'created_at': at.isoformat(timespec='seconds'), 'global_efficacy': [],
                'strategy_name': 'tracon_interference', 'status_message': None,
                'efficacy_indicators': [{'name': name, 'description': '', 'unit': None,
                                         'value': float(value)} for name, value in values.items()]}

    def _actions(self):
        state = 'PENDING' if self.state == 'RECOMMENDED' else self.state
        for move in self._engine.made.moves:
            yield {'uuid': str(uuid.uuid4()), 'action_plan_uuid': PLAN, 'state': state,
                   'action_type': 'migrate', 'status_message': None, 'input_parameters': {
                       'migration_type': 'live', 'resource_id': move.uuid,
                       'resource_name': self._engine.view.vms[move.uuid].name,
                       'source_node': move.source, 'destination_node': move.destination}}
