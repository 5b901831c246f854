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

"""One step of a longer work: runs a command, shows how far it is, keeps its output in a log.

Usage: step.py --log FILE --place 2/3 --seconds 35 --after 120 TITLE -- COMMAND...

``--seconds`` is how long the step takes on a usual machine and ``--after`` the same of all steps
behind it; what is left is told from these. Where the command fails, its last lines are shown, and
where the rest of them is. The exit code is the command's. It runs before anything is installed, so
it needs the standard library only.
"""

import argparse
import pathlib
import signal
import subprocess
import sys
import time

#: Lines of a failed command that are shown.
LINES = 20


def spoken(seconds: float) -> str:
    """Return a duration as people say it."""
    minutes, rest = divmod(int(seconds), 60)
    return f'{minutes} min {rest:02} s' if minutes else f'{rest} s'


def main(arguments: list[str]) -> int:
    """Run the step of the command line."""
    own, _separator, command = _split(arguments)
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--log', type=pathlib.Path, required=True, help='file to append to')
    parser.add_argument('--place', default='', help='which step of how many, as 2/3')
    parser.add_argument('--seconds', type=float, default=0.0, help='usual duration of the step')
    parser.add_argument('--after', type=float, default=0.0, help='usual duration of what follows')
    parser.add_argument('title', help='what is shown')
    options = parser.parse_args(own)
    if not command:
        parser.error('there is no command behind --')
    return run(options, command)


def run(options: argparse.Namespace, command: list[str]) -> int:
    """Run a command, show its progress on standard error and return its exit code."""
    terminal = sys.stderr.isatty()
    head = f'[{options.place}] {options.title}' if options.place else options.title
    if not terminal:
        left = options.seconds + options.after
        print(head + (f' (about {spoken(left)} left in all)' if left else ''),
              file=sys.stderr, flush=True)
    started = time.monotonic()
    options.log.parent.mkdir(parents=True, exist_ok=True)
    with options.log.open('ab') as log:
        log.write(f'\n==> {options.title}: {" ".join(command)}\n'.encode())
        log.flush()
        begin = log.tell()
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                              stderr=subprocess.STDOUT) as process:
            code = _wait(process, started, head, options, terminal)
    passed = spoken(time.monotonic() - started)
    if terminal:
        sys.stderr.write('\r\033[K')
    if code == 0:
        if terminal:
            print(f'{head}: done in {passed}', file=sys.stderr, flush=True)
        return 0
    with options.log.open('rb') as log:
        log.seek(begin)
        last = log.read().decode(errors='replace').splitlines()[-LINES:]
    print(f'{head}: failed with code {code} after {passed}. Its last lines:', file=sys.stderr)
    print('\n'.join(f'    {line}' for line in last), file=sys.stderr)
    print(f'The whole output is in {options.log}', file=sys.stderr, flush=True)
    # A command that a signal ended has a negative code, which a shell would show as another one.
    return code if code > 0 else 128 - code


def _wait(process: subprocess.Popen, started: float, head: str, options: argparse.Namespace,
          terminal: bool) -> int:
    while True:
        try:
            return process.wait(0.5)
        except subprocess.TimeoutExpired:
            if terminal:
                passed = time.monotonic() - started
                left = max(options.seconds - passed, 0.0) + options.after
                more = f', about {spoken(left)} left in all' if left else ''
                sys.stderr.write(f'\r\033[K{head}: {spoken(passed)}{more}')
                sys.stderr.flush()
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            process.wait()
            raise SystemExit(130) from None


def _split(arguments: list[str]) -> tuple[list[str], str, list[str]]:
    if '--' not in arguments:
        return arguments, '', []
    place = arguments.index('--')
    return arguments[:place], '--', arguments[place + 1:]


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
