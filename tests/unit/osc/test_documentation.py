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

"""README and user's guide show what the commands write, of a synthetic cloud."""

import pathlib
import re
import shlex

from tests.unit.osc import base as osc
from tests.unit.osc import documented

ROOT = pathlib.Path(__file__).parents[3]
GUIDE = ROOT / 'doc' / 'source' / 'user' / 'interference.rst'
README = ROOT / 'README.rst'
_BEGIN = '.. code-block:: console\n\n'
_TIME = re.compile(r'\d{4}-(\d\d-\d\dT\d\d:\d\d:\d\dZ|W\d\d)')


def shown(text):
    """Yield the commands of a page, and what it says that they write."""
    for block in text.split(_BEGIN)[1:]:
        lines = []
        for line in block.splitlines():
            if line and not line.startswith('   '):
                break
            lines.append(line[3:])
        content = '\n'.join(lines).strip('\n')
        command, _newline, output = content.replace('\\\n> ', '').partition('\n')
        if command.startswith('$ openstack interference '):
            yield shlex.split(command)[3:], output


class Guide(osc.OscCase):

    def setUp(self):
        super().setUp()
        self.view = documented.cloud()
        self.decisions.kept = [documented.decision(self.view)]
        self.decisions.counted = {documented.identity('shop-db'): 2520.0}
        self.decisions.audits = [documented.audit(self.view)]
        self.decisions.recommended = documented.moves(self.view)
        self.decisions.throttled = [documented.episode(self.view)]

    def test_what_it_shows_is_what_is_written(self):
        commands = list(shown(GUIDE.read_text(encoding='utf-8')))
        self.assertGreater(len(commands), 5)
        for arguments, output in commands:
            self.assertEqual(_TIME.sub('<time>', output),
                             _TIME.sub('<time>', self.told(*arguments).rstrip('\n')), arguments)

    def test_the_readme_shows_parts_of_what_is_written(self):
        commands = list(shown(README.read_text(encoding='utf-8')))
        self.assertEqual(3, len(commands))
        for arguments, output in commands:
            written = self.told(*arguments)
            for part in output.split('…\n'):
                self.assertIn(part.removesuffix('…').rstrip('\n'), written, arguments)

    def test_every_command_is_shown(self):
        text = GUIDE.read_text(encoding='utf-8')
        for name in osc.COMMANDS:
            self.assertIn(name.rpartition(' ')[0].removeprefix('interference').strip(), text)
