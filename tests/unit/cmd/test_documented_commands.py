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

"""Commands that the documentation names are there under that name."""

import importlib.metadata
import pathlib
import re

import testtools

ROOT = pathlib.Path(__file__).resolve().parents[3]
#: In a console's block after its prompt, or within a sentence.
COMMAND = re.compile(r'(?:^ *[$#] |``)tracon ((?:[a-z][a-z-]*(?: |$|(?=``)))+)', re.MULTILINE)


def named():
    """Return what is named, and where first."""
    found = {}
    for path in [ROOT / 'README.rst', *sorted((ROOT / 'doc/source').rglob('*.rst')),
                 *sorted((ROOT / 'releasenotes/notes').glob('*.yaml'))]:
        for words in COMMAND.findall(path.read_text(encoding='utf-8')):
            found.setdefault(words.strip(), path.name)
    return found


class DocumentedCommandsTest(testtools.TestCase):
    """tracon."""

    def test_each_is_there(self):
        # cliff takes an underscore for a space, but leaves a hyphen.
        commands = [one.name.replace('_', ' ')
                    for one in importlib.metadata.entry_points(group='tracon.command')]
        missing = {
            words: where for words, where in named().items()
            if not any(f'{words} '.startswith(f'{one} ') or f'{one} '.startswith(f'{words} ')
                       for one in commands)}
        self.assertEqual({}, missing)

    def test_many_are_named(self):
        self.assertLess({'lab own limits', 'model evaluate', 'bench placement'}, set(named()))
