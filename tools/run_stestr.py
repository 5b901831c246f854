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

"""Runs stestr and ends with one plain line: N passed, N failed, N skipped.

A run without a single test is a failure: something was not found. Arguments
that are not its own go to ``stestr run``.
"""

import argparse
import collections
import io
import json
import os
import pathlib
import subprocess
import sys

import counts as counting
from stestr.repository import abstract
from stestr.repository import util
import subunit
import testtools

#: Lines of a traceback that are repeated at the end.
LINES = 12

ROOT = pathlib.Path(__file__).resolve().parent.parent


def latest_run() -> tuple[int, bytes]:
    """Return the number of the latest recorded run and its stream; -1 without any."""
    try:
        repository = util.get_repo_open(repo_url=str(ROOT))
        number = repository.latest_id()
    except (KeyError, abstract.RepositoryNotFound):
        return -1, b''
    with repository.get_test_run(number).get_subunit_stream() as stream:
        return number, stream.read()


def counted(stream: bytes) -> tuple[collections.Counter[str], dict[str, str]]:
    """Count what became of each test of a stream; return the failed ones' last words too."""
    counts: collections.Counter[str] = collections.Counter()
    failures: dict[str, str] = {}
    words = {'success': 'passed', 'xfail': 'passed', 'skip': 'skipped'}

    def count(test: dict) -> None:
        if test['status'] != 'exists':
            word = words.get(test['status'], 'failed')
            counts[word] += 1
            if word == 'failed':
                failures[test['id']] = last_words(test['details'])

    result = testtools.StreamToDict(count)
    result.startTestRun()
    subunit.ByteStreamToStreamResult(io.BytesIO(stream)).run(result)
    result.stopTestRun()
    return counts, failures


def last_words(details: dict) -> str:
    """Return the end of a failed test's traceback."""
    for name in ('traceback', *sorted(details)):
        if name.startswith('traceback') and name in details:
            return '\n'.join(details[name].as_text().rstrip().splitlines()[-LINES:])
    return ''


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--name', default='tests', help='what the counts are kept under')
    parser.add_argument('--test-path', default='tests/unit')
    options, arguments = parser.parse_known_args()

    before = latest_run()[0]
    command = [sys.executable, '-m', 'stestr', '--test-path', options.test_path, 'run']
    code = subprocess.run([*command, *arguments], cwd=ROOT, check=False).returncode
    after, stream = latest_run()
    # When the tests could not even be imported, the latest run is an older one.
    counts, failures = counted(stream) if after != before else (collections.Counter(), {})
    if not counts['passed'] + counts['failed']:
        print(f'{options.name}: no test ran')
        code = code or 1
    folder = os.environ.get('TRACON_COUNTS')
    if folder:
        path = pathlib.Path(folder, f'{options.name}.json')
        path.write_text(json.dumps({'counts': counts, 'failures': failures}), encoding='utf-8')
    print(counting.closing_line(counts), flush=True)
    return code or int(bool(counts['failed']))


if __name__ == '__main__':
    sys.exit(main())
