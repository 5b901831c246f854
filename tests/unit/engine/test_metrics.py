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

"""What Prometheus is told, and that the documentation knows all of it."""

import dataclasses
import json
import pathlib
import re
from unittest import mock

import prometheus_client

from tests.unit.engine import engines
from tracon_watcher.api import metrics as api_metrics
from tracon_watcher.api import state as states
from tracon_watcher.engine import metrics
from tracon_watcher.engine import migration_tracker
from tracon_watcher.engine.storage import errors

TOP = pathlib.Path(__file__).parents[3]
PAGE, ETC = TOP / 'doc/source/admin/api.rst', TOP / 'etc'


class TestMetrics(engines.EngineCase):

    def test_prometheus_is_told_how_the_engine_works(self):
        registry = prometheus_client.CollectorRegistry()
        registry.register(metrics.EngineCollector(
            self.engine, self.aftermath(),
            lambda: self.engine.publisher.statistics() if self.engine.publisher else {}))
        self.assertEqual(0.0, registry.get_sample_value('tracon_engine_leading'))
        self.source.vm('a', reads=100.0, guest=0.2)
        self.source.run(5)
        self.lead()
        self.engine.activities['collect'].once()
        value = registry.get_sample_value
        self.assertEqual(1.0, value('tracon_engine_leading'))
        self.assertEqual(1.0, value('tracon_engine_activity_working', {'activity': 'collect'}))
        self.assertGreaterEqual(
            value('tracon_engine_activity_age_seconds', {'activity': 'collect'}), 0.0)
        self.assertEqual((5.0, 4.0), (value('tracon_engine_samples'),
                                      value('tracon_engine_intervals')))
        self.engine.collected = dataclasses.replace(
            self.engine.collected, skews={'h1': 300.0, 'h2': 900.0, 'h3': -700.0})
        self.assertEqual([900.0, 700.0], [
            value('tracon_engine_clock_skew_seconds', {'direction': direction})
            for direction in ('ahead', 'behind')])
        self.engine.collected = dataclasses.replace(self.engine.collected, skews={})
        self.assertEqual(0.0, value('tracon_engine_clock_skew_seconds', {'direction': 'ahead'}))
        self.assertEqual(5.0, value('tracon_engine_suspended',
                                    {'kind': 'live migration off fast'}))
        self.assertEqual((1.0, 0.0, 2.0), (
            value('tracon_moves', {'state': 'recommended'}),
            value('tracon_moves', {'state': 'failed'}),
            value('tracon_move_outcomes', {'verdict': 'helped'})))
        self.assertEqual(0.0, value('tracon_engine_published_listeners'))
        self.assertEqual([0.0, 0.0], [value('tracon_engine_episodes_total', {'result': result})
                                      for result in ('recorded', 'dropped')])
        self.source.broken = True
        with self.assertLogs('tracon_watcher.engine.periodic_task'):
            self.engine.activities['collect'].once()
        self.assertEqual(0.0, value('tracon_engine_activity_working', {'activity': 'collect'}))

    def aftermath(self):
        """Return what knows of some moves."""
        found = migration_tracker.MigrationTracker(self.storage, lambda: None, self.lead)
        for name, value in (
                ('standing', {'suspended': {'live migration off fast': 5.0}}),
                ('counts', ({'recommended': 1, 'failed': 0}, {'helped': 2}))):
            self.enterContext(mock.patch.object(found, name, autospec=True, return_value=value))
        return found

    def test_the_rest_is_told_while_the_database_is_away(self):
        away = mock.patch.object(
            self.storage.kinds, 'suspended', autospec=True,
            side_effect=errors.StorageUnavailable('sqlite://', 'away', 'wait'))
        registry = prometheus_client.CollectorRegistry()
        registry.register(metrics.EngineCollector(self.engine, migration_tracker.MigrationTracker(
            self.storage, lambda: None, self.lead), dict))
        with away:
            self.assertEqual(0.0, registry.get_sample_value('tracon_engine_leading'))
            self.assertEqual(0.0, registry.get_sample_value('tracon_engine_reports'))
            self.assertNotIn('tracon_engine_suspended',
                             {one.name for one in registry.collect()})

    def exposed(self):
        """Return the names of all metrics of an engine that leads."""
        registry = prometheus_client.CollectorRegistry()
        registry.register(metrics.EngineCollector(
            self.engine, self.aftermath(), lambda: self.engine.publisher.statistics()))
        registry.register(api_metrics.StateCollector(
            states.States(lambda: self.engine.view, lambda: self.source.now)))
        api_metrics.RequestMetrics(registry)
        self.source.vm('a', reads=100.0, guest=0.2)
        self.source.run(5)
        self.lead()
        self.engine.collect()
        return {family.name + ('_total' if family.type == 'counter' else '')
                for family in registry.collect()}

    def test_dashboard_and_alerts_ask_for_what_there_is(self):
        exposed = self.exposed()
        for name in ('grafana/tracon.json', 'prometheus/tracon_alerts.yaml'):
            asked = set(re.findall(r'\btracon_[a-z_]+(?=[{\[) ,]|$)', (ETC / name).read_text(
                encoding='utf-8')))
            self.assertGreater(len(asked), 10)
            self.assertEqual(set(), {one.removesuffix('_bucket') for one in asked} - exposed)

    def test_panels_of_the_dashboard_stand_side_by_side(self):
        panels = json.loads((ETC / 'grafana/tracon.json').read_text(encoding='utf-8'))['panels']
        self.assertEqual(len(panels), len({one['id'] for one in panels}))
        taken = set()
        for panel in panels:
            place = panel['gridPos']
            cells = {(x, y) for x in range(place['x'], place['x'] + place['w'])
                     for y in range(place['y'], place['y'] + place['h'])}
            self.assertLessEqual(place['x'] + place['w'], 24)
            self.assertEqual(set(), taken & cells, panel['title'])
            taken |= cells

    def test_the_documentation_has_every_metric_and_no_other(self):
        exposed = self.exposed()
        self.assertIn('tracon_host_type_trust', exposed)
        self.assertIn('tracon_engine_published_unannounced', exposed)
        text = PAGE.read_text(encoding='utf-8')
        documented = set(re.findall(r'``(tracon_[a-z_]+)(?:\{[a-z_,]+\})?``',
                                    text[text.index('\nMetrics\n'):]))
        self.assertEqual(exposed, documented)
