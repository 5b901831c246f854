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

"""The Dockerfiles that the real kolla-build makes with our override and our image."""

from __future__ import annotations

import configparser
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OURS = ROOT / 'contrib' / 'kolla'
ENGINE = 'tracon-engine'
#: Images that the package is added to, with what pip installs.
ADDED = {'nova-scheduler': '/tracon-watcher', 'nova-api': '/tracon-watcher',
         'watcher-engine': '/tracon-watcher scipy', 'ceilometer-base': '/tracon-watcher',
         'horizon': '/tracon-watcher'}


class ImagesTestCase(unittest.TestCase):

    def render(self, base: str) -> dict[str, str]:
        """Return the Dockerfiles of all images, by name of the image."""
        folder = self.enterContext(tempfile.TemporaryDirectory())
        done = subprocess.run(
            [pathlib.Path(sys.executable).parent / 'kolla-build',
             '--config-file', OURS / 'kolla-build.conf', '--template-only', '--base', base,
             '--template-override', OURS / 'template-overrides.j2',
             '--docker-dir', OURS / 'docker', '--work-dir', folder],
            capture_output=True, text=True, timeout=280, cwd=folder)
        self.assertEqual(0, done.returncode, done.stdout + done.stderr)
        return {path.parent.name: path.read_text(encoding='utf-8')
                for path in pathlib.Path(folder).glob('docker/**/Dockerfile')}

    def check(self, base: str) -> None:
        found = self.render(base)
        self.assertEqual({*ADDED, ENGINE}, {
            name for name, text in found.items() if 'tracon-watcher' in text})
        for name, packages in ADDED.items():
            text = found[name]
            # By the image's own constraints, while it is still root's.
            self.assertIn('ADD additions-archive /\n'
                          'RUN ln -s /additions/*tracon* /tracon-watcher \\\n'
                          '    && python3 -m pip --no-cache-dir install --upgrade '
                          f'-c /requirements/upper-constraints.txt {packages}', text)
            self.assertNotIn('USER', text[:text.index('additions-archive')])
        engine = found[ENGINE]
        self.assertRegex(engine, '^FROM kolla/openstack-base:')
        self.assertIn("install --upgrade -c /tracon-watcher/upper-constraints.txt "
                      "'/tracon-watcher[engine]'", engine)
        self.assertRegex(engine, r'USER tracon\s*$')
        uid = section('tracon-user')['uid']
        self.assertIn(f'chown -R {uid}:', engine)
        self.assertRegex(found['base'], f'useradd .*--uid {uid}.* tracon')

    def test_debian(self) -> None:
        self.check('debian')

    def test_rocky(self) -> None:
        self.check('rocky')

    def test_all_that_the_images_name_is_there(self) -> None:
        for name in ADDED:
            self.assertEqual('git', section(f'{name}-additions-tracon')['type'], name)
        self.assertEqual('git', section(ENGINE)['type'])
        metadata = configparser.ConfigParser()
        metadata.read(ROOT / 'setup.cfg')
        self.assertIn('engine', metadata['extras'])
        self.assertTrue((ROOT / 'upper-constraints.txt').exists())
        self.assertTrue((ROOT / 'etc/ceilometer/tracon_gnocchi_resources.yaml').exists())
        self.assertTrue(list((ROOT / 'tracon_dashboard' / 'enabled').glob('_311*.py')))

    def test_the_user_has_an_id_of_its_own(self) -> None:
        from kolla.common import users
        taken = {one[key] for one in users.USERS.values() for key in ('uid', 'gid') if key in one}
        self.assertIn(42436, taken)
        self.assertNotIn(int(section('tracon-user')['uid']), taken)


def section(name: str) -> configparser.SectionProxy:
    """Return a section of our kolla-build.conf."""
    found = configparser.ConfigParser()
    found.read(OURS / 'kolla-build.conf')
    return found[name]
