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

"""What Watcher's own database says, in a database with Watcher's own tables."""

import contextlib
import datetime
from unittest import mock
import uuid

import fixtures
from oslo_utils import timeutils
import testtools
from watcher.common import context
from watcher.notifications import base as notifications_base
from watcher import objects
from watcher.tests.local_fixtures import db

from tests.watcher import test_residency
from tracon_watcher.decision_engine import constraints_builder
from tracon_watcher.decision_engine import records

DAY = 86400.0


class RecordsTestCase(testtools.TestCase):

    def setUp(self):
        super().setUp()
        objects.register_all()
        self.useFixture(db.WatcherDatabase())
        # There is no service to notify.
        self.useFixture(fixtures.MockPatchObject(notifications_base.NotificationBase, 'emit'))
        self.context = context.make_context()
        goal = self.create(objects.Goal, name='goal', display_name='goal',
                           efficacy_specification=[])
        strategy = self.create(objects.Strategy, name='strategy', display_name='strategy',
                               goal_id=goal.id, parameters_spec={})
        self.audit = self.create(objects.Audit, name='audit', audit_type='ONESHOT',
                                 state='PENDING', goal_id=goal.id, strategy_id=strategy.id,
                                 scope=[], parameters={})
        self.now = timeutils.utcnow()

    def at(self, age):
        """Have Watcher's database take another moment for now."""
        return mock.patch.object(timeutils, 'utcnow', autospec=True,
                                 return_value=self.now - datetime.timedelta(seconds=age))

    def create(self, kind, **fields):
        made = kind(self.context, uuid=str(uuid.uuid4()), **fields)
        made.create()
        return made

    def plan(self, state):
        return self.create(objects.ActionPlan, state=state, audit_id=self.audit.id,
                           strategy_id=self.audit.strategy_id, global_efficacy=[])

    def action(self, plan, outcome, kind='migrate', age=0.0, **parameters):
        made = self.create(objects.Action, state='PENDING', action_plan_id=plan.id,
                           action_type=kind, input_parameters=parameters, parents=[])
        with contextlib.nullcontext() if age is None else self.at(age):
            made.state = outcome
            made.save()
        return made

    def collect(self):
        return records.collect(self.context, self.seconds() - DAY)

    def seconds(self):
        return self.now.replace(tzinfo=datetime.timezone.utc).timestamp()

    def test_migrations_that_failed_are_found_whatever_became_of_their_plan(self):
        plan = self.plan('FAILED')
        self.action(plan, 'FAILED', resource_id='a')
        self.action(plan, 'FAILED', resource_id='a', age=7200)
        self.action(plan, 'FAILED', resource_id='old', age=2 * DAY)
        self.action(plan, 'SUCCEEDED', resource_id='moved')
        self.action(plan, 'FAILED', 'resize', resource_id='other')
        found = self.collect()
        self.assertEqual(['a'], list(found.failed))
        self.assertEqual([7200.0, 0.0], [round(self.seconds() - at) for at in found.failed['a']])
        self.assertEqual(({}, {}), (found.vms, found.hosts))

    def test_plans_under_way_hold_their_vms_and_hosts(self):
        under_way = self.plan('ONGOING')
        self.action(under_way, 'PENDING', resource_id='a', source_node='h1',
                    destination_node='h2')
        self.action(under_way, 'SUCCEEDED', resource_id='done', source_node='h7')
        self.action(under_way, 'PENDING', 'change_nova_service_state',
                    resource_name='h3', state='disabled')
        self.action(under_way, 'ONGOING', 'stop', resource_id='b')
        self.action(self.plan('RECOMMENDED'), 'PENDING', resource_id='c',
                    source_node='h4', destination_node='h5')
        self.action(self.plan('SUCCEEDED'), 'PENDING', resource_id='d')
        # The process that carried it out has gone for good.
        with self.at(2 * DAY):
            forgotten = self.plan('ONGOING')
        self.action(forgotten, 'PENDING', resource_id='e')
        found = self.collect()
        self.assertEqual({'a': under_way.uuid, 'b': under_way.uuid}, found.vms)
        self.assertEqual({'h1', 'h2', 'h3'}, set(found.hosts))

    def test_the_latest_plan_that_frees_room(self):
        for age, state, outcome, kind in (
                (90, 'SUCCEEDED', 'SUCCEEDED', 'shelve'), (80, 'FAILED', 'FAILED', 'delete'),
                (70, 'ONGOING', 'PENDING', 'delete'), (60, 'SUCCEEDED', 'SUCCEEDED', 'stop'),
                # Not carried out, or not yet.
                (50, 'RECOMMENDED', 'PENDING', 'delete'),
                (40, 'CANCELLED', 'CANCELLED', 'delete')):
            with self.at(age):
                made = self.plan(state)
                action = self.action(made, 'PENDING', kind, None, resource_id='a')
            action.state = outcome
            action.save()
            expected = {90: 90, 80: 80}.get(age, 70)
            self.assertEqual(expected, round(self.seconds() - self.collect().preempted_at))

    def test_an_empty_database(self):
        self.assertEqual(records.Records(), self.collect())
        self.assertEqual([], objects.Action.list(self.context))


class RulesTestCase(test_residency.ReconcileCase):

    def build(self, recorded):
        return constraints_builder.build(self.found, self.model, test_residency.WISHES,
                                         self.state.host_index,
                                         recorded)

    def test_one_whose_migration_failed_cools_down_ever_longer(self):
        found = self.build(records.Records({'a': (500.0, 5000.0), 'left': (100.0,)}))
        # Nova has one of its own from 1000, which makes three.
        self.assertEqual({'a': 5000.0 + 2400, 'left': 100.0 + 600}, found.cooldown_until)
        self.assertEqual({'a': 1000.0 + 600}, self.build(records.Records()).cooldown_until)

    def test_a_vm_that_another_plan_acts_on_stays_and_no_vm_goes_there(self):
        found = self.build(records.Records({}, {'a': 'plan-1'}, {'h1': 'plan-1', 'far': 'plan-1'}))
        self.assertIn('action plan plan-1, which is under way', found.immovable['a'])
        self.assertIn('action plan plan-1', found.closed['h1'])
        # It was closed already, for a reason of its own.
        self.assertIn('scope', found.closed['far'])
