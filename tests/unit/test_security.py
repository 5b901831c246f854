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

"""What reads data must not be able to run it, and what is secret is not told to logs."""

import ast
import unittest

from tests import opacity
from tracon_watcher.conf import opts

ROOMS = ('tracon_watcher', 'nova_filters', 'tools', 'doc')
# What they read may run code, on purpose or not.
MODULES = {'pickle', '_pickle', 'cPickle', 'cloudpickle', 'dill', 'joblib', 'marshal', 'shelve',
           'jsonpickle', 'code', 'codeop'}
CALLS = {'eval', 'exec', 'compile', '__import__', 'os.system', 'os.popen', 'tempfile.mktemp',
         'yaml.load', 'yaml.load_all', 'yaml.full_load', 'yaml.full_load_all', 'yaml.unsafe_load',
         'yaml.unsafe_load_all', 'pandas.read_pickle', 'subprocess.getoutput',
         'subprocess.getstatusoutput'}
KEYWORDS = {('shell', 'True'), ('allow_pickle', 'True'), ('verify', 'False')}
# Words in the names of options that may hold a secret.
TELLING = ('password', 'secret', 'token', 'transport_url', 'connection')


def offences(text):
    """Return (line, what) of each thing in a module that should not be there."""
    found = []
    for node in ast.walk(ast.parse(text)):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or '']
            names += [f'{node.module}.{alias.name}' for alias in node.names]
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in CALLS:
                found.append((node.lineno, called))
            found += [(node.lineno, f'{one.arg}={ast.unparse(one.value)}')
                      for one in node.keywords if (one.arg, ast.unparse(one.value)) in KEYWORDS]
        found += [(node.lineno, name) for name in names
                  if name.partition('.')[0] in MODULES or name in CALLS]
    return found


class TestDataIsNotRun(unittest.TestCase):

    def test_no_module_of_the_product_does(self):
        seen = 0
        for room in ROOMS:
            for path in sorted((opacity.ROOT / room).rglob('*.py')):
                seen += 1
                with self.subTest(module=str(path.relative_to(opacity.ROOT))):
                    self.assertEqual([], offences(path.read_text(encoding='utf-8')))
        self.assertGreater(seen, 200)

    def test_what_would_be_found(self):
        for text in ('import pickle', 'from pickle import loads', 'import dill as d',
                     'eval(x)', 'exec("x")', 'import yaml\nyaml.load(x, Loader=yaml.Loader)',
                     'from yaml import unsafe_load', 'np.load(x, allow_pickle=True)',
                     'subprocess.run(x, shell=True)', 'os.system(x)',
                     'session.get(x, verify=False)'):
            with self.subTest(text):
                self.assertNotEqual([], offences(text))
        for text in ('import json', 'yaml.safe_load(x)', 'model.eval()', 'np.load(x)',
                     'subprocess.run(x, shell=False)', 're.compile(x)'):
            with self.subTest(text):
                self.assertEqual([], offences(text))


class TestOptions(unittest.TestCase):

    def test_what_may_hold_a_secret_is_marked(self):
        # oslo.config writes **** for these wherever it lists values.
        marked = set()
        for group, options in opts.list_opts():
            for option in options:
                if option.secret:
                    marked.add(f'{group}.{option.name}')
                elif any(word in option.name for word in TELLING):
                    self.fail(f'[{group}] {option.name} is not marked as secret')
        self.assertLessEqual({'tracon.transport_url', 'prometheus.password'}, marked)
