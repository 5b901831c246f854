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

"""How the applications' disk is put together; the whole is tried in the functional tests."""

import pathlib
import threading
from unittest import mock

import numpy as np

from tests.unit import folder
from tracon_lab.testbed import application_image
from tracon_lab.testbed import application_inputs
from tracon_lab.testbed import errors

# What apt-get --simulate prints, of two packages; the second has an epoch in its version.
PLANNED = """Reading package lists...
Inst libc6 (2.36-9+deb12u14 Debian:12.11/oldstable [amd64])
Inst x264 (2:0.164.3095+gitbaee400-3 Debian:12.11/oldstable [amd64])
Conf libc6 (2.36-9+deb12u14 Debian:12.11/oldstable [amd64])
"""


class TestImage(folder.FolderCase):

    def setUp(self):
        super().setUp()
        self.root = self.folder / self._testMethodName
        self.root.mkdir()

    def test_packages_of_the_versions_that_apt_plans(self):
        archives = self.root / 'packages'
        archives.mkdir()
        for name in ('libc6_2.36-9+deb12u14_amd64', 'libc6_2.36-9+deb12u13_amd64',
                     'x264_2%3a0.164.3095+gitbaee400-3_amd64', 'libc6-dev_2.36-9+deb12u14_amd64'):
            (archives / f'{name}.deb').touch()
        with mock.patch.object(application_image, '_run', autospec=True,
                               return_value=PLANNED) as ran:
            found = application_image.download(archives, ['x264'])
        self.assertEqual(['libc6_2.36-9+deb12u14_amd64.deb',
                          'x264_2%3a0.164.3095+gitbaee400-3_amd64.deb'],
                         [path.name for path in found])
        self.assertIn(f'Dir::Cache::archives={archives}', ran.call_args.args[0])

    def test_a_link_leads_where_it_does_inside(self):
        lib = self.root / 'lib'
        lib.mkdir()
        (lib / 'real.so').write_text('inside')
        (self.root / 'absolute').symlink_to('/lib/real.so')
        (self.root / 'relative').symlink_to('lib/real.so')
        (self.root / 'twice').symlink_to('absolute')
        for name in ('absolute', 'relative', 'twice'):
            target = self.root / f'out-{name}'
            application_image._copy(self.root, self.root / name, target)
            self.assertEqual('inside', (target / name).read_text())
            self.assertFalse((target / name).is_symlink())
        (self.root / 'circle').symlink_to('circle')
        with self.assertRaisesRegex(errors.TestbedError, 'leads nowhere'):
            application_image._within(self.root, self.root / 'circle')

    def test_the_loader_is_that_of_the_packages(self):
        with self.assertRaisesRegex(errors.TestbedError, 'ld-linux'):
            application_image.select(self.root, self.root / 'out')

    def test_one_builds_at_a_time(self):
        said, waits, inside = [], threading.Event(), threading.Event()

        def second():
            with application_image._only_builder(
                    self.root, lambda text: (said.append(text), waits.set())):
                inside.set()
        with application_image._only_builder(self.root, said.append):
            waiting = threading.Thread(target=second)
            waiting.start()
            self.assertTrue(waits.wait(120))
            self.assertFalse(inside.is_set())
        waiting.join(120)
        self.assertTrue(inside.is_set())
        self.assertEqual(1, len(said))
        self.assertIn('waiting', said[0])

    def test_another_text_is_another_disk(self):
        before = application_image.tag()
        self.assertEqual(before, application_image.tag())
        read = pathlib.Path.read_bytes
        with mock.patch.object(pathlib.Path, 'read_bytes', lambda path: read(path) + (
                b'#' if path.name == 'applications.py' else b'')):
            self.assertNotEqual(before, application_image.tag())


class TestInputs(folder.FolderCase):

    def made(self, name, place, shard):
        folder = self.folder / str(place) / name
        folder.mkdir(parents=True)
        application_inputs.MAKERS[name](folder, np.random.default_rng((1, shard)))
        return {path.relative_to(folder).as_posix(): path.read_bytes()
                for path in folder.rglob('*') if path.is_file()}

    def test_the_seed_decides_and_inputs_differ_by_chance_alone(self):
        # Nucleotides and videos take a while, and sources come from a package.
        for name in sorted(set(application_inputs.MAKERS) - {'blastn', 'compile', 'video'}):
            one, again, other = (self.made(name, place, shard)
                                 for place, shard in enumerate((0, 0, 1)))
            self.assertEqual(one, again, name)
            self.assertNotEqual(one, other, name)
            sizes = [sum(map(len, made.values())) for made in (one, other)]
            self.assertLess(np.ptp(sizes) / np.mean(sizes), 0.05, name)

    def test_some_files_are_there_twice(self):
        found = list(self.made('dedup', 'files', 0).values())
        self.assertLess(len(set(found)), 0.9 * len(found))
