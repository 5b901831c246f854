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

"""The product works where there is no laboratory."""

import importlib.metadata
import importlib.util
import pathlib
import subprocess
import sys
import unittest
from unittest import mock

from tracon_watcher.cmd import app

TOP = pathlib.Path(__file__).resolve().parents[2]
# Nova and Watcher have options of the same names, so that one process has one of them.
PARTS = {
    'nova': ('nova_filters',),
    'watcher': ('tracon_watcher/decision_engine',),
    'others': ('tracon_watcher',)}
# Alembic loads these.
APART = ('decision_engine', 'migrations')
# What only extras bring.
OF_EXTRAS = (
    'alembic', 'ceilometer', 'cheroot', 'keystoneauth1', 'libvirt', 'matplotlib', 'nova',
    'openstack', 'osc_lib', 'oslo_db', 'oslo_messaging', 'prometheus_client', 'scipy', 'sklearn',
    'sqlalchemy', 'tracon_lab', 'watcher', 'webob')
PROGRAM = '''
import importlib
import sys


class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] in absent:
            raise ModuleNotFoundError(name)


absent = sys.argv[1].split()
sys.meta_path.insert(0, Absent())
for name in sys.argv[2:]:
    importlib.import_module(name)
'''


def modules(folder):
    """Return the names of all modules of a folder."""
    for path in sorted((TOP / folder).rglob('*.py')):
        parts = path.relative_to(TOP).with_suffix('').parts
        if folder == 'tracon_watcher' and set(APART) & set(parts):
            continue
        yield '.'.join(parts[:-1] if parts[-1] == '__init__' else parts)


@unittest.skipUnless(importlib.util.find_spec('nova') and importlib.util.find_spec('watcher'),
                     'needs Nova and Watcher')
class Buildings(unittest.TestCase):

    def test_every_module_of_the_product_is_imported(self):
        for part, folders in PARTS.items():
            with self.subTest(part):
                names = [name for folder in folders for name in modules(folder)]
                self.assertGreater(len(names), 10)
                done = subprocess.run(
                    [sys.executable, '-W', 'ignore', '-c', PROGRAM, 'tracon_lab', *names], cwd=TOP,
                    capture_output=True, text=True, check=False)
                self.assertEqual(0, done.returncode, done.stderr[-2000:])

    def test_commands_without_extras_load_with_the_requirements_alone(self):
        names = {one.module for one in importlib.metadata.entry_points(group='tracon.command')
                 if not one.extras and one.module.startswith('tracon')}
        self.assertLessEqual({'tracon_watcher.cmd.doctor', 'tracon_watcher.cmd.db'}, names)
        done = subprocess.run(
            [sys.executable, '-W', 'ignore', '-c', PROGRAM, ' '.join(OF_EXTRAS), *sorted(names)],
            cwd=TOP, capture_output=True, text=True, check=False)
        self.assertEqual(0, done.returncode, done.stderr[-2000:])

    def test_commands_of_the_laboratory_are_there_with_its_extras(self):
        def commands():
            self.addCleanup(app._installed.cache_clear)
            app._installed.cache_clear()
            return set(app.LazyCommandManager('tracon.command').commands)

        found = importlib.metadata.version
        whole = commands()
        self.assertLessEqual({'doctor', 'probe deploy', 'lab measure', 'bench placement', 'demo'},
                             whole)

        def version(name):
            if name in ('scikit-learn', 'libvirt-python', 'wsgi-intercept'):
                raise importlib.metadata.PackageNotFoundError(name)
            return found(name)

        with mock.patch.object(importlib.metadata, 'version', version):
            product = commands()
        self.assertEqual(set(), {one for one in product if one.split()[0] in (
            'lab', 'bench', 'model', 'simulate', 'demo', 'cloud', 'tenant')})
        self.assertLessEqual({'doctor', 'probe deploy', 'db upgrade', 'snapshot build'}, product)
