#  Licensed under the Apache License, Version 2.0 (the "License"); you may
#  not use this file except in compliance with the License. You may obtain
#  a copy of the License at
#
#       http://www.apache.org/licenses/LICENSE-2.0
#
#  Unless required by applicable law or agreed to in writing, software
#  distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#  WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#  License for the specific language governing permissions and limitations
#  under the License.

"""Every option can be listed, registered together, and read without being set."""

import tempfile
import unittest

from oslo_config import cfg

from tracon_watcher.conf import numbers
from tracon_watcher.conf import opts


class ListOpts(unittest.TestCase):

    def test_all_groups_together_and_defaults_valid(self):
        conf = cfg.ConfigOpts()
        # Nova's own, which a default refers to.
        conf.register_opt(cfg.StrOpt('state_path', default='/var/lib/nova'))
        names = []
        for group, options in opts.list_opts():
            conf.register_opts(options, group=group)
            names += [(str(group), option.dest) for option in options]
        conf([])
        for group, name in names:
            with self.subTest(option=f'[{group}] {name}'):
                conf[group][name]
        self.assertIn(('tracon', 'snapshot_file'), names)
        self.assertEqual(len(names), len(set(names)))

    def test_numbers_are_finite_and_within_a_range(self):
        conf = cfg.ConfigOpts()
        count = 0
        for group, options in opts.list_opts():
            conf.register_opts(options, group=group)
            for option in options:
                if isinstance(option, cfg.PortOpt):
                    continue
                # None is left of oslo.config's own, which let NaN pass every range.
                self.assertNotIn(type(option), (cfg.FloatOpt, cfg.IntOpt), option.name)
                if not isinstance(option, numbers.FloatOpt):
                    continue
                count += 1
                for text in ('nan', 'inf', '-inf', '1e400', '1_5', '１.５', '-1', '1e300'):
                    with self.subTest(f'[{group}] {option.name}={text}'), \
                            tempfile.NamedTemporaryFile('w', suffix='.conf') as file:
                        file.write(f'[{group}]\n{option.name} = {text}\n')
                        file.flush()
                        conf(['--config-file', file.name])
                        with self.assertRaisesRegex(
                                cfg.ConfigFileValueError,
                                f"{option.name} .*'{text}': expected a .* number from"):
                            conf[str(group)][option.name]
        self.assertGreaterEqual(count, 30)

    def test_an_empty_number(self):
        unset = numbers.FloatOpt('one', 'seconds', min=1, max=2)
        self.assertIsNone(unset.type(' '))
        given = numbers.IntOpt('other', 'VMs', default=1, min=1, max=2)
        with self.assertRaisesRegex(ValueError, r"'': expected a whole number from 1 to 2 \(VMs"):
            given.type('')
        self.assertEqual('whole number, VMs', given.type.type_name)

    def test_help_of_each_option(self):
        for group, options in opts.list_opts():
            for option in options:
                with self.subTest(option=f'[{group}] {option.name}'):
                    self.assertTrue(option.help)
