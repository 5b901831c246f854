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

"""Checks that lower-constraints.txt says, and this environment has, the lower bounds.

Without this the pins and the requirements would part ways unnoticed.
"""

import configparser
import importlib.metadata
import pathlib
import sys

from packaging import requirements

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXTRAS = ('models', 'plots')


def parsed(text: str) -> dict[str, str]:
    """Return the version by name of the lines that hold for this Python."""
    found = {}
    for line in text.splitlines():
        line = line.split('#')[0].strip()
        if line:
            requirement = requirements.Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate():
                (specifier,) = requirement.specifier
                found[requirement.name] = specifier.version
    return found


def main() -> int:
    setup = configparser.ConfigParser()
    setup.read(ROOT / 'setup.cfg', encoding='utf-8')
    declared = parsed('\n'.join([(ROOT / 'requirements.txt').read_text(encoding='utf-8'),
                                 *(setup['extras'][extra] for extra in EXTRAS)]))
    pinned = parsed((ROOT / 'lower-constraints.txt').read_text(encoding='utf-8'))
    wrong = [f'lower-constraints.txt pins {name} to {pinned.get(name)}, the requirement begins '
             f'at {declared[name]}'
             for name in sorted(declared) if declared[name] != pinned.get(name)]
    for name, version in sorted(declared.items()):
        installed = importlib.metadata.version(name)
        print(f'{name} {installed}')
        if installed != version:
            wrong.append(f'{name} {installed} is installed, not the lower bound {version}')
    print('\n'.join(wrong), file=sys.stderr, end='\n' if wrong else '')
    return int(bool(wrong))


if __name__ == '__main__':
    sys.exit(main())
