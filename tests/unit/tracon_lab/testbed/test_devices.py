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

"""Which images lie behind the guests' disks."""

import pathlib
import unittest

from tracon_lab.testbed import devices


class TestContents(unittest.TestCase):

    def labels(self, **images):
        contents = devices.Contents(pathlib.Path('/cache'), ('target', 'background'), **images)
        return [(disk.label, str(disk.path), disk.read_only)
                for disk in contents.disks('background')]

    def test_a_scratch_disk_of_its_own(self):
        self.assertEqual([('scratch', '/cache/scratch-background.img', False)], self.labels())

    def test_the_database_is_read_by_all(self):
        self.assertEqual(('database', '/cache/db.img', True),
                         self.labels(database=pathlib.Path('/cache/db.img'))[1])

    def test_applications_stand_before_the_disk_they_write_to(self):
        self.assertEqual([('applications', '/cache/a.img', True),
                          ('work', '/cache/work-background.img', False)],
                         self.labels(applications=pathlib.Path('/cache/a.img'))[1:])


class TestServed(unittest.TestCase):

    def test_every_disk_is_an_export(self):
        contents = devices.Contents(pathlib.Path('/cache'), ('target',))
        for kind in (devices.Spindle, devices.RemoteVolume):
            disk, = kind(pathlib.Path('/run'), contents).disks('target')
            self.assertEqual(('target-scratch', 'scratch'), (disk.export, disk.label))
            self.assertEqual(pathlib.Path('/run/storage.sock'), disk.path)
