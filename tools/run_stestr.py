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

"""Runs stestr, shows how far it is, and ends with one plain line: N passed, N failed, N skipped.

A failed test is shown when it fails. A run without a single test is a failure: something was not
found. Arguments that are not its own go to ``stestr run``.
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import time

import parts
import step
import subunit
import testtools

#: Lines of a traceback that are repeated at the end.
LINES = 12
#: Seconds between two lines of progress where the output is no terminal.
PERIOD = 30.0

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORDS = {'success': 'passed', 'xfail': 'passed', 'skip': 'skipped'}


class Watch:
    """Counts the tests of a stream as they end, and shows them.

    Attributes: ``counts`` by word, ``failures`` the last words of each failed test and ``reasons``
    why tests were skipped.
    """

    def __init__(self, name: str, verbose: bool) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self.failures: dict[str, str] = {}
        self.reasons: collections.Counter[str] = collections.Counter()
        self._name = name
        self._verbose = verbose
        self._terminal = sys.stdout.isatty()
        self._started = self._shown = time.monotonic()

    def count(self, test: dict) -> None:
        """Take down one test, as testtools' StreamToDict describes it."""
        if test['status'] == 'exists':
            return
        word = WORDS.get(test['status'], 'failed')
        self.counts[word] += 1
        if word == 'failed':
            self.failures[test['id']] = last_words(test['details'])
            self._say(f'FAILED {test["id"]}\n{everything(test["details"])}')
        elif word == 'skipped':
            reason = test['details'].get('reason')
            self.reasons[reason.as_text() if reason else 'no reason given'] += 1
        if self._verbose and word != 'failed':
            self._say(f'{word} {test["id"]} {duration(test):.1f} s')
        now = time.monotonic()
        if now - self._shown >= (0.5 if self._terminal else PERIOD):
            self._shown = now
            self._say(f'{self._name}: {parts.closing_line(self.counts)} after '
                      f'{step.spoken(now - self._started)}', stays=not self._terminal)

    def _say(self, text: str, stays: bool = True) -> None:
        head = '\r\033[K' if self._terminal else ''
        sys.stdout.write(f'{head}{text}' + ('\n' if stays else ''))
        sys.stdout.flush()

    def close(self) -> None:
        """Leave a clean line, and say why tests were skipped."""
        if self._terminal:
            sys.stdout.write('\r\033[K')
        for reason, number in sorted(self.reasons.items()):
            self._say(f'{self._name}: skipped {number}: {reason}')


def duration(test: dict) -> float:
    """Return how many seconds a test took."""
    begin, end = test['timestamps']
    return (end - begin).total_seconds() if begin and end else 0.0


def everything(details: dict) -> str:
    """Return all that a failed test left: traceback, log, output."""
    texts = [f'{name}:\n{content.as_text().rstrip()}' for name, content in sorted(details.items())
             if content.content_type.type == 'text']
    return '\n'.join(f'    {line}' for text in texts for line in text.splitlines())


def last_words(details: dict) -> str:
    """Return the end of a failed test's traceback."""
    for name in ('traceback', *sorted(details)):
        if name.startswith('traceback') and name in details:
            return '\n'.join(details[name].as_text().rstrip().splitlines()[-LINES:])
    return ''


def main() -> int:
    """Run the tests of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--name', default='tests', help='what the counts are kept under')
    parser.add_argument('--test-path', default='tests/unit')
    parser.add_argument('--workers-per-core', type=float, default=1.0,
                        help='more than one where tests often wait (default: %(default)s)')
    parser.add_argument('--verbose', action='store_true', help='show each test and its duration')
    options, arguments = parser.parse_known_args()

    watch = Watch(options.name, options.verbose)
    workers = max(1, round(options.workers_per_core * len(os.sched_getaffinity(0))))
    command = [sys.executable, '-m', 'stestr', '--test-path', options.test_path, 'run',
               '--subunit', '--concurrency', str(workers), *arguments]
    result = testtools.StreamToDict(watch.count)
    result.startTestRun()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        # What is no subunit, such as a traceback of stestr's own, is shown as it is.
        subunit.ByteStreamToStreamResult(process.stdout, non_subunit_name='stdout').run(
            testtools.CopyStreamResult([result, _Plain()]))
        code = process.wait()
    result.stopTestRun()
    watch.close()
    counts = watch.counts
    if not counts['passed'] + counts['failed']:
        print(f'{options.name}: no test ran')
        code = code or 1
    folder = os.environ.get('TRACON_COUNTS')
    if folder:
        path = pathlib.Path(folder, f'{options.name}.json')
        path.write_text(json.dumps({'counts': counts, 'failures': watch.failures}),
                        encoding='utf-8')
    print(parts.closing_line(counts), flush=True)
    return code or int(bool(counts['failed']))


class _Plain(testtools.StreamResult):
    """Passes on output that belongs to no test."""

    def status(self, test_id=None, test_status=None, file_name=None, file_bytes=None, **_more):
        if test_id is None and file_bytes and file_name == 'stdout':
            sys.stdout.write(bytes(file_bytes).decode(errors='replace'))


if __name__ == '__main__':
    sys.exit(main())
