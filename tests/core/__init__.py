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

"""The tests of what needs no Nova, no Watcher and no libvirt: the core, its commands, options."""

import pathlib

UNIT = pathlib.Path(__file__).parent.parent / 'unit'
ROOMS = ('conf', 'contention', 'placement', *(f'tracon_lab/{room}' for room in (
    'contention', 'models', 'scheduling', 'simulator')))
COMMANDS = ('tests.unit.cmd.test_app', 'tests.unit.tracon_lab.cmd.test_model')


def load_tests(loader, tests, _pattern):
    """unittest's hook: collect the rooms, and the modules beside them."""
    top = str(UNIT.parent.parent)
    for room in ROOMS:
        if (UNIT / room / '__init__.py').exists():
            tests.addTests(loader.discover(str(UNIT / room), top_level_dir=top))
    for module in sorted(UNIT.glob('test_*.py')):
        tests.addTests(loader.loadTestsFromName(f'tests.unit.{module.stem}'))
    tests.addTests(loader.loadTestsFromNames(COMMANDS))
    return tests
