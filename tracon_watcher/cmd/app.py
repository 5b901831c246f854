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

"""The program ``tracon``: one cliff application, its commands are entry points.

Every command of the namespace ``tracon.command`` may live in a module of its
own and may need packages of its own (scikit-learn, libvirt, nova); only the
command that is run has to be importable. Commands of the laboratory, which the
entry point says by its extra, are there where that extra is installed.
"""

import argparse
import contextlib
import functools
import importlib.metadata
import logging
import os
import re
import sys

from cliff import app
from cliff import command
from cliff import commandmanager

from tracon_watcher import errors

#: What bad input, bad usage and missing packages end with.
EXIT_BAD_INPUT = 2


class LazyCommandManager(commandmanager.CommandManager):
    """Knows the commands by name and imports only the one that is run.

    cliff's own goes through stevedore, which imports every command at the start
    and drops those that cannot be imported: slow, and "tracon model fit" would
    be unknown on a host without scikit-learn instead of saying what is missing.
    """

    def load_commands(self, namespace: str) -> None:
        self.group_list.append(namespace)
        for entry_point in importlib.metadata.entry_points(group=namespace):
            if all(map(_installed, entry_point.extras)):
                self.commands[entry_point.name.replace('_', ' ')] = entry_point


class TraconApp(app.App):
    """Runs one command; an expected error is one line, and exit code 2."""

    NAME = 'tracon'

    def __init__(self) -> None:
        super().__init__(
            description='Measures, models and judges how virtual machines slow each other down.',
            version=importlib.metadata.version('tracon-watcher'),
            command_manager=LazyCommandManager('tracon.command'),
            deferred_help=True)
        self._failure: BaseException | None = None

    def configure_logging(self) -> None:
        super().configure_logging()
        # That it has looked for fonts is no news for users who asked for something else.
        logging.getLogger('matplotlib').setLevel(logging.WARNING)

    def interact(self) -> int:
        """Without a command there is nothing to converse about: print the help, and fail."""
        # Older releases of cliff let the help end the process, with success, and
        # return what this returns; newer ones fail by themselves.
        with contextlib.suppress(SystemExit):
            self.run_subcommand(['help'])
        return 1

    def run_subcommand(self, argv: list[str]) -> int:
        self._failure = None
        try:
            result = super().run_subcommand(argv)
        except ImportError as exc:
            if self.options.debug:
                raise
            self.LOG.error('%s', exc)
            self._failure = exc
            result = EXIT_BAD_INPUT
        failure = self._failure
        if isinstance(failure, errors.TraconError):
            return EXIT_BAD_INPUT
        if isinstance(failure, ImportError):
            self.LOG.error('"tracon %s" needs a package that is not installed; the extras of '
                           'tracon-watcher are: %s', ' '.join(argv[:2]), ', '.join(_extras()))
            return EXIT_BAD_INPUT
        if isinstance(failure, Exception) and not self.options.debug:
            self.LOG.error('%s was not expected here; "tracon --debug ..." shows where it '
                           'came from', type(failure).__name__)
        return result

    def prepare_to_run_command(self, cmd: command.Command) -> None:
        """Have a file that cannot be used be an expected error, wherever it is met."""
        run = cmd.run

        def told(parsed_args: argparse.Namespace) -> int:
            try:
                return run(parsed_args)
            except OSError as error:
                if error.filename is None:
                    raise
                raise errors.InvalidDocument(
                    os.fsdecode(error.filename), 'the file', error.strerror,
                    'cannot be read or written; name another, or change permissions') from error

        cmd.run = told

    def clean_up(self, cmd: command.Command, result: int, err: BaseException | None) -> None:
        # cliff has printed the error by now, and returns 1 whatever it was.
        self._failure = err


@functools.cache
def _installed(extra: str) -> bool:
    """Say whether there is all that an extra of this package names."""
    for requirement in importlib.metadata.requires('tracon-watcher') or ():
        found = re.match(rf'([A-Za-z0-9._-]+)[^;]*;.*extra == .{extra}\b', requirement)
        if found is not None:
            try:
                importlib.metadata.version(found[1])
            except importlib.metadata.PackageNotFoundError:
                return False
    return True


def _extras() -> list[str]:
    return sorted(importlib.metadata.metadata('tracon-watcher').get_all('Provides-Extra') or [])


def main(argv: list[str] | None = None) -> int:
    """Run ``tracon`` with ``argv`` (default: the process's) and return its exit code."""
    return TraconApp().run(sys.argv[1:] if argv is None else argv)


if __name__ == '__main__':
    sys.exit(main())
