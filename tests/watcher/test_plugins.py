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

"""The strategy's plugins as Watcher's own loaders and validators meet them."""

import json
import types
import unittest

import jsonschema
from watcher.common import exception
from watcher.common import utils
from watcher.decision_engine.goal.efficacy import base

from tracon_watcher.decision_engine import goal
from tracon_watcher.decision_engine import parameters
from tracon_watcher.decision_engine import strategy
from tracon_watcher import errors
from tracon_watcher.placement import plan


class ParametersTestCase(unittest.TestCase):

    def validate(self, **given):
        utils.StrictDefaultValidatingDraft4Validator(parameters.SCHEMA).validate(given)
        return parameters.Audit.of(given, 0.0)

    def test_defaults_are_the_planners(self):
        audit = self.validate()
        # The planner's own know nothing of telemetry.
        self.assertEqual(plan.Parameters(noise=0.1, explained=20), audit.planning)
        self.assertEqual((0.8, '', 3600, 'tracon:exclude', frozenset()), (
            audit.confidence, audit.snapshot_file, audit.wishes.cooldown_seconds,
            audit.wishes.opt_out_key, audit.wishes.excluded_projects))

    def test_what_is_out_of_range_is_refused(self):
        for name, value in (('max_migrations', 0), ('max_migrations', 1.5), ('min_gain', '1'),
                            ('confidence', 0.4), ('cooldown_seconds', -1), ('noise', 2),
                            ('excluded_projects', 'all'), ('opt_out_key', '')):
            with self.assertRaisesRegex(jsonschema.ValidationError, repr(value)):
                self.validate(**{name: value})
        with self.assertRaises(exception.AuditParameterNotAllowed):
            self.validate(banana=1)

    def test_blackout_windows(self):
        self.assertEqual('', self.validate().planning.standstill)
        # The epoch was a Thursday.
        audit = self.validate(blackout_windows=['Thu 00:00-06:00', '20:00-22:00 Europe/Berlin'])
        self.assertEqual('blackout window "Thu 00:00-06:00" until Thu 1970-01-01 06:00 UTC',
                         audit.planning.standstill)
        for text in ('8:00-18:00', 'Mo 08:00-18:00', '08:00-35:00', 'weekends', ''):
            with self.assertRaisesRegex(jsonschema.ValidationError,
                                        r'does not match[\s\S]*Mon-Fri 08:00-18:00 Europe/Berlin'):
                self.validate(blackout_windows=[text])
        with self.assertRaises(jsonschema.ValidationError):
            self.validate(blackout_windows='08:00-18:00')
        with self.assertRaisesRegex(errors.InvalidOption, 'no time zone Europe/Bonn'):
            self.validate(blackout_windows=['08:00-18:00 Europe/Bonn'])

    def test_numbers_are_finite(self):
        count = 0
        for name, schema in parameters.SCHEMA['properties'].items():
            if schema['type'] not in ('number', 'integer'):
                continue
            count += 1
            for text in ('NaN', 'Infinity', '-Infinity', '1e400'):
                with self.subTest(f'{name}={text}'), self.assertRaises(
                        jsonschema.ValidationError) as caught:
                    self.validate(**{name: json.loads(text)})
                self.assertEqual([name], list(caught.exception.path))
            self.validate(**{name: schema['minimum']})
            self.validate(**{name: schema['maximum']})
        self.assertEqual(7, count)
        with self.assertRaisesRegex(jsonschema.ValidationError, 'state a finite one'):
            self.validate(confidence=float('nan'))
        # Watcher keeps the schema in its database.
        json.dumps(parameters.SCHEMA, allow_nan=False)

    def test_every_parameter_has_a_default_and_a_description(self):
        for name, schema in parameters.SCHEMA['properties'].items():
            self.assertIn('default', schema, name)
            self.assertTrue(schema['description'].endswith('.'), name)


class EfficacyTestCase(unittest.TestCase):

    def test_the_share_of_interference_that_ends(self):
        specification = goal.InterferenceMitigation.get_efficacy_specification()
        self.assertIsInstance(specification, base.EfficacySpecification)
        for before, after, share in ((1.5, 1.25, 50), (1.0, 1.0, 0), (2.0, 1.0, 100)):
            shown, = specification.get_global_efficacy_indicator(types.SimpleNamespace(
                mean_slowdown_before=before, mean_slowdown_after=after))
            self.assertAlmostEqual(share, shown.value)


class PlannerTestCase(unittest.TestCase):

    def test_an_action_waits_for_what_it_was_assessed_upon_only(self):
        class Action(types.SimpleNamespace):
            __hash__ = object.__hash__

        actions = [Action(uuid=f'action-{vm}', input_parameters={'resource_id': vm}, parents=[])
                   for vm in 'abcd']
        made = goal.DependencyPlanner(None)
        made._waits_for = {'a': [], 'b': [], 'c': ['a'], 'd': ['a', 'c']}
        graph = made.compute_action_graph([(30, actions)])
        self.assertEqual([[], [], ['action-a'], ['action-a', 'action-c']],
                         [action.parents for action in actions])
        self.assertEqual(4, len(graph.nodes()))


class StrategyTestCase(unittest.TestCase):

    def test_it_serves_its_goal_with_its_planner(self):
        ours = strategy.InterferenceStrategy(None)
        self.assertEqual(('tracon_interference', 'interference', 'tracon_dependencies'),
                         (ours.get_name(), ours.get_goal_name(), ours.planner))
        self.assertEqual([], ours.get_config_opts())
