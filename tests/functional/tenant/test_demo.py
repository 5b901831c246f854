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
"""The demonstration of DIAL on this machine: hosts, workers, contention, and training."""

import csv
import os
import pathlib
import shutil
import tempfile
import unittest

from tracon_lab.tenant_demo import experiment
from tracon_lab.tenant_demo import hosts
from tracon_lab.tenant_demo import programs
from tracon_watcher.tenant import classification


@unittest.skipUnless(os.getuid() == 0 and shutil.which('haproxy') and shutil.which('tc'),
                     'needs root, haproxy and iproute2')
class TestDemo(unittest.TestCase):

    def setUp(self):
        # Not in memory: the disk has to be one.
        self.folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(dir='/var/tmp')))
        self.site = experiment.Site(self.folder, 1.0, contention=5)

    def tearDown(self):
        for top in ('', 'cpu', 'blkio'):
            self.assertFalse((hosts.ROOT / top / hosts.NAME).exists())
        self.assertFalse(pathlib.Path('/run/netns', hosts.HOSTS[0].name).exists())

    def test_contention_slows_down_one_worker(self):
        with self.site.workers():
            outcome = self.site.play('round robin')
        self.assertEqual({experiment.QUIET, *programs.KINDS}, set(outcome.windows))
        self.assertGreater(len(outcome.sent), 5000)
        quiet = outcome.tail_ms(experiment.QUIET)
        for kind in programs.KINDS:
            self.assertGreater(outcome.tail_ms(kind), quiet, kind)

    def test_a_model_is_trained(self):
        with self.site.workers():
            rows = list(csv.DictReader(self.site.train().splitlines()))
        self.assertEqual({'load', *programs.KINDS}, {row['kind'] for row in rows})
        # Others may not show where other programs use this machine.
        self.assertLessEqual({'load', 'disk', 'network'},
                             set(classification.read(self.folder / 'model.json').kinds))
