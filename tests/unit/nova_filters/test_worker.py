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

"""A number that is not allowed, in nova.conf: named, and nothing is raised into the scheduler."""

from unittest import mock

import nova.conf
from oslo_config import cfg

from nova_filters import interference_weigher
from nova_filters import log_once
from nova_filters import policy
from nova_filters import worker
from tests.unit import folder

#: What Nova registers, and we read.
_NOVA = [cfg.StrOpt('state_path', default='/var/lib/nova'), cfg.StrOpt('host', default='here')]


class InvalidOptions(folder.FolderCase):

    def configured(self, **values):
        """Return what nova-scheduler has read."""
        self.write(**values)
        conf = cfg.ConfigOpts()
        conf.register_opts(_NOVA)
        conf(['--config-file', str(self.folder / 'nova.conf')])
        return conf

    def write(self, **values):
        lines = {'snapshot_file': str(self.folder / 'none'), 'pending_directory': '', **values}
        (self.folder / 'nova.conf').write_text('[tracon]\n' + ''.join(
            f'{name} = {value}\n' for name, value in lines.items()))

    def test_at_the_start_the_order_of_hosts_stays_novas(self):
        for name, value in (('weight_multiplier', 'nan'), ('weight_multiplier', '-40'),
                            ('confidence', 'nan'), ('snapshot_refresh_seconds', 'inf')):
            conf = self.configured(**{name: value})
            weigher = interference_weigher.InterferenceWeigher()
            hosts = [mock.Mock(spec=['obj']) for _host in range(2)]
            with mock.patch.object(nova.conf, 'CONF', conf), \
                    mock.patch.object(worker, '_faults', log_once.FaultLog(worker.LOG)), \
                    self.assertLogs('nova_filters', 'WARNING') as logged:
                for _request in range(3):
                    self.assertEqual([0.0, 0.0], weigher.weigh_objects(hosts, None))
            self.assertEqual(1, len(logged.output))
            self.assertRegex(logged.output[0], f"left out of account.*{name} .*'{value}': expe"
                                               'cted a finite number from')

    def test_at_a_reload_the_options_stay_as_they_were(self):
        conf = self.configured(confidence=0.9)
        judge = worker._judge(conf)
        self.addCleanup(judge.close)
        self.write(confidence='nan')
        with self.assertLogs('nova_filters', 'WARNING') as logged:
            conf.mutate_config_files()
        self.assertRegex(logged.output[0], "options of .tracon. stay as they were: .*confidence "
                                           ".*'nan': expected a finite number from 0.5 to 0.975")
        self.assertEqual(0.9, judge.options.confidence)
        self.write(confidence=0.7)
        conf.mutate_config_files()
        self.assertEqual(0.7, judge.options.confidence)

    def test_an_empty_value_of_an_option_without_a_default_is_none(self):
        conf = self.configured(maximum_age_seconds='')
        self.assertIsNone(policy.read_options(conf).maximum_age_seconds)
        with self.assertRaisesRegex(ValueError, "confidence .*'': expected a finite number"):
            policy.read_options(self.configured(confidence=''))
