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

"""What became of the tests: one line for a run, and the sum over several runs.

Usage: counts.py FOLDER, where run_stestr.py has left a file for each run.
"""

import collections
import json
import pathlib
import sys

WORDS = ('passed', 'failed', 'skipped')


def closing_line(counts: collections.Counter[str]) -> str:
    return ', '.join(f'{counts[word]} {word}' for word in WORDS)


def main(folder: str) -> int:
    """Print each run, who failed and, last, the sum; 1 when a test failed or none ran."""
    total: collections.Counter[str] = collections.Counter()
    for path in sorted(pathlib.Path(folder).glob('*.json')):
        found = json.loads(path.read_text(encoding='utf-8'))
        counts = collections.Counter(found['counts'])
        print(f'{path.stem}: {closing_line(counts)}')
        for test, words in found['failures'].items():
            print(f'  FAILED {test}')
            print('\n'.join(f'    {line}' for line in words.splitlines()))
        total += counts
    print(closing_line(total), flush=True)
    return int(bool(total['failed']) or not total['passed'])


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
