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

"""The tests of the storage that run on SQLite, in tests/unit and tests/realtime, for others."""

import importlib
import pkgutil

from tests.functional import databases
from tests.realtime.engine import storage as realtime
from tests.unit.engine import storage as unit
from tests.unit.engine.storage import base


class OnServer:
    """Where a database comes from: a server that was started for it."""

    server = None

    def new_address(self):
        server = databases.shared(self.server)
        address = server.create()
        self.addCleanup(server.drop, address)
        return address


def cases(module, kind):
    """Return all test classes, by name, for a kind of server.

    :param module: name of the module that they shall belong to
    """
    found = {}
    for package in (unit, realtime):
        for info in pkgutil.iter_modules(package.__path__):
            tests = importlib.import_module(f'{package.__name__}.{info.name}')
            for name, case in vars(tests).items():
                if isinstance(case, type) and issubclass(case, base.DatabaseCase) and \
                        case.__module__ == tests.__name__ and name.startswith('Test'):
                    assert name not in found, f'two classes are called {name}'
                    found[name] = type(name, (OnServer, case),
                                       {'__module__': module, 'server': kind})
    return found
