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

"""Runs of ``tracon`` within the process of a test."""

import argparse
import contextlib
import io
import json
import logging

from tracon_watcher.cmd import app


def run(*arguments, **commands):
    """Run ``tracon`` and return its exit code, output and error output.

    The root logger is then as before: cliff gives it a handler each time.

    :param commands: classes of commands that it does not have where it is installed, by name
    """
    out, err = io.StringIO(), io.StringIO()
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        program = app.TraconApp()
        for name, command in commands.items():
            program.command_manager.add_command(name, command)
        try:
            code = program.run(list(arguments))
        except SystemExit as end:       # argparse's
            code = end.code
        finally:
            root.setLevel(level)
            root.handlers = handlers
    return code, out.getvalue(), err.getvalue()


def output(command, *arguments):
    """Run a command, which raises its errors, and return its output."""
    program = app.TraconApp()
    program.stdout, program.options = io.StringIO(), argparse.Namespace(debug=True)
    made = command(program, None)
    parsed = made.get_parser('tracon').parse_args(list(map(str, arguments)))
    with contextlib.redirect_stderr(io.StringIO()):     # progress
        made.run(parsed)
    return program.stdout.getvalue()


def rows(command, *arguments):
    """Run a command, which raises its errors, and return the rows of its table."""
    return json.loads(output(command, *arguments, '-f', 'json'))
