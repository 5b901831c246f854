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

"""Runs parts of the checks one after the other, and ends with a table of them.

Usage: parts.py [--tox COMMAND] PART...
       parts.py --needs PART...

Without a part it runs all. A part that fails does not keep later ones from running. ``--needs``
prints what the parts need instead: the profile of bindep.txt, and the environments whose Python
others use. It runs before anything is installed, so it needs the standard library only.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

import step

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORDS = ('passed', 'failed', 'skipped')


@dataclasses.dataclass(frozen=True)
class Part:
    """A part of the checks that can be run alone.

    ``environment`` is one of tox, whose ``arguments`` follow its ``--``; where it is empty, the
    arguments are a command line. ``base`` is the environment whose Python it uses, which must have
    been made before. ``profile`` is that of bindep.txt. ``within`` is the part that contains it.
    """

    environment: str
    arguments: str = ''
    base: str = ''
    profile: str = 'unit'
    within: str = ''

    def command(self, tox: list[str]) -> list[str]:
        """Return the command that runs this part."""
        if not self.environment:
            return ['bash', '-euc', self.arguments]
        behind = ['--', *shlex.split(self.arguments)] if self.arguments else []
        return [*tox, 'run', '-q', '-e', self.environment, *behind]


def _cloud(arguments: str) -> Part:
    return Part('functional', arguments, 'functional', 'test')


#: In the order in which they run: the quick ones first, bare systems last.
PARTS = {
    'style': Part('pep8'),
    'docs': Part('docs'),
    'unit': Part('py3', base='py3'),
    'watcher': Part('watcher', base='py3'),
    'scheduler': Part('in-process', base='py3', within='nova'),
    'lower-constraints': Part('lower-constraints'),
    'kolla': Part('kolla'),
    'realtime': Part('realtime', base='py3'),
    'long': Part('long', r'tests\.long\.(?!test_cpus)', 'py3'),
    'kernels': Part('long', r'tests\.long\.test_cpus', 'py3'),
    'nova': Part('in-process', r'tests\.functional\.(nova|watcher|demo)\.', 'py3'),
    'tenant': Part('in-process', r'tests\.functional\.tenant\.', 'py3', 'test'),
    'burst': _cloud(r'tests\.functional\.burst\.'),
    'storage': _cloud(r'tests\.functional\.storage\.'),
    'publication': _cloud(r'tests\.functional\.publication\.'),
    'soak': _cloud(r'tests\.functional\.soak\.'),
    'telemetry': _cloud(r'tests\.functional\.telemetry\.'),
    'background': _cloud(r'tests\.functional\.background\.'),
    'lab': _cloud(r'tests\.functional\.lab\.'),
    'dashboard': _cloud(r'tests\.functional\.dashboard\.'),
    'cloud': _cloud(r'tests\.functional\.cloud\.'),
    'fresh': Part('', '''
        tools/fresh.sh -s bookworm make demo ARGS='--seeds 1 --vms 12 --hosts 8'
        tools/fresh.sh -s trixie sh -c \
            "make demo ARGS='--seeds 1 --vms 12 --hosts 8' && make test ARGS=unit"
        '''),
}


@dataclasses.dataclass
class Result:
    """What a part found; a part without tests of its own counts as one check."""

    name: str
    counts: dict[str, int]
    failures: dict[str, str]
    seconds: float


def closing_line(counts: dict[str, int]) -> str:
    """Return counts as one line: N passed, N failed, N skipped."""
    return ', '.join(f'{counts.get(word, 0)} {word}' for word in WORDS)


def run(name: str, tox: list[str]) -> Result:
    """Run one part, whose output is shown as it comes."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        code = subprocess.call(PARTS[name].command(tox), cwd=ROOT, stdin=subprocess.DEVNULL,
                               env={**os.environ, 'TRACON_COUNTS': folder})
        counts, failures = dict.fromkeys(WORDS, 0), {}
        found = [json.loads(path.read_text(encoding='utf-8'))
                 for path in sorted(pathlib.Path(folder).glob('*.json'))]
    for one in found:
        for word, number in one['counts'].items():
            counts[word] += number
        failures.update(one['failures'])
    if code and not counts['failed']:
        counts['failed'] = 1
        failures[f'{name}: exit code {code}'] = 'What it printed stands above.'
    elif not found and not code:
        counts['passed'] = 1
    return Result(name, counts, failures, time.monotonic() - started)


def table(results: list[Result]) -> str:
    """Return the table of all parts, with their sum as its last line."""
    rows = [(one.name, *(str(one.counts[word]) for word in WORDS), step.spoken(one.seconds))
            for one in results]
    rows.insert(0, ('part', *WORDS, 'time'))
    rows.append(('all', *(str(sum(one.counts[word] for one in results)) for word in WORDS),
                 step.spoken(sum(one.seconds for one in results))))
    first = max(len(row[0]) for row in rows)
    return '\n'.join(f'{row[0]:<{first}}' + ''.join(f'  {cell:>8}' for cell in row[1:4])
                     + f'  {row[4]:>13}' for row in rows)


def main(arguments: list[str]) -> int:
    """Run the parts of the command line; 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--tox', default='tox', help='command line of tox')
    parser.add_argument('--needs', action='store_true',
                        help='print bindep profile and base environments of the parts')
    parser.add_argument('parts', nargs='*', metavar='PART', help=', '.join(PARTS))
    options = parser.parse_args(arguments)
    unknown = [name for name in options.parts if name not in PARTS]
    if unknown:
        parser.error(f'no part {", ".join(unknown)}; there are {", ".join(PARTS)}')
    names = options.parts or [name for name, part in PARTS.items() if not part.within]
    if options.needs:
        parts = [PARTS[name] for name in names]
        print('test' if any(part.profile == 'test' for part in parts) else 'unit',
              *sorted({part.base for part in parts if part.base}))
        return 0

    results = []
    for place, name in enumerate(names, 1):
        print(f'==> [{place}/{len(names)}] {name}', flush=True)
        results.append(run(name, shlex.split(options.tox)))
        print(f'==> {name}: {closing_line(results[-1].counts)} in '
              f'{step.spoken(results[-1].seconds)}', flush=True)
    for one in results:
        for test, words in one.failures.items():
            print(f'\nFAILED {test}\n' + '\n'.join(f'    {line}' for line in words.splitlines()))
    print(f'\n{table(results)}')
    total = {word: sum(one.counts[word] for one in results) for word in WORDS}
    print(closing_line(total), flush=True)
    return int(bool(total['failed']) or not total['passed'])


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
