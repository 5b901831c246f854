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

"""Alert rules as Prometheus's own tool sees them: each is sound, and fires when it should."""

import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

RULES = pathlib.Path(__file__).parents[2] / 'etc/prometheus/tracon_alerts.yaml'
WELL = {
    'tracon_view_known': '1x60', 'tracon_engine_leading': '1x60',
    'tracon_engine_activity_working{activity="list"}': '1x60',
    'tracon_engine_activity_age_seconds{activity="collect"}': '100x60',
    'tracon_telemetry_timestamp_seconds': '0+60x60', 'tracon_hosts{status="stale"}': '0x60',
    'tracon_host_type_trust{host_type="fast"}': '0.9x60', 'tracon_vms_in_breach': '0x60',
    'tracon_engine_clock_skew_seconds{direction="behind"}': '0x60',
    'tracon_engine_intervals': '40x60', 'tracon_vms': '20x60',
    'tracon_engine_published_unannounced': '3x60',
    'tracon_api_requests_total{route="/v1/vms",status="500"}': '3x60'}
#: Of each alert, what differs from a cloud that is well.
ILL = {
    'TraconEngineAbsent': {'tracon_view_known': '_x60'},
    'TraconNoLeader': {'tracon_engine_leading': '0x60'},
    'TraconActivityFails': {'tracon_engine_activity_working{activity="list"}': '0x60'},
    'TraconCollectionLate': {
        'tracon_engine_activity_age_seconds{activity="collect"}': '0+60x60'},
    'TraconTelemetryStale': {'tracon_telemetry_timestamp_seconds': '0x60'},
    'TraconHostsUnknown': {'tracon_hosts{status="stale"}': '2x60'},
    'TraconTrustLow': {'tracon_host_type_trust{host_type="fast"}': '0.4x60'},
    'TraconVMsInBreach': {'tracon_vms_in_breach': '3x60'},
    'TraconNothingLearnt': {'tracon_engine_intervals': '0x60'},
    'TraconClockSkew': {'tracon_engine_clock_skew_seconds{direction="behind"}': '600x60'},
    'TraconUnannounced': {'tracon_engine_published_unannounced': '0+1x60'},
    'TraconMovesSuspended': {'tracon_engine_suspended{kind="k"}': '90000x60'},
    'TraconApiFails': {'tracon_api_requests_total{route="/v1/vms",status="500"}': '0+1x60'}}


@unittest.skipUnless(shutil.which('promtool'), 'needs promtool (the package prometheus)')
class TestAlerts(unittest.TestCase):

    def firing(self, series):
        """Return the alerts that fire after an hour of these series."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        fired = set()
        # promtool tells of an alert alone whether it is as expected.
        document = {'rule_files': [str(RULES)], 'evaluation_interval': '1m', 'tests': [{
            'interval': '1m',
            'input_series': [{'series': name, 'values': values}
                             for name, values in series.items()],
            'promql_expr_test': [{
                'expr': 'count by (alertname) (ALERTS{alertstate="firing"})',
                'eval_time': '60m', 'exp_samples': [{'labels': '{none="none"}', 'value': 0}]}]}]}
        (folder / 'test.yaml').write_text(json.dumps(document))
        told = subprocess.run(['promtool', 'test', 'rules', folder / 'test.yaml'],
                              capture_output=True, text=True, check=False)
        fired.update(re.findall(r'alertname="(\w+)"', told.stdout + told.stderr))
        return fired

    def test_the_rules_are_sound(self):
        checked = subprocess.run(['promtool', 'check', 'rules', RULES], capture_output=True,
                                 text=True, check=False)
        self.assertEqual(0, checked.returncode, checked.stderr)
        self.assertEqual(set(re.findall('alert: (.*)', RULES.read_text())), set(ILL))

    def test_each_fires_when_it_should_and_no_other(self):
        self.assertEqual(set(), self.firing(WELL))
        for name, difference in ILL.items():
            with self.subTest(name):
                self.assertEqual({name}, self.firing(WELL | difference))
