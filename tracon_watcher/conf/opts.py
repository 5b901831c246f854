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

"""Lists every option of the project, for oslo-config-generator and Nova.

Each module of this package but ``numbers`` is one option group and defines
``list_opts()``, a list of (group name, options); a new module is found without
being named.
"""

import importlib
import pkgutil
import typing

from tracon_watcher import conf

OptionGroups = list[tuple[str, list[typing.Any]]]


def list_opts() -> OptionGroups:
    """Return (group name, options) of every group, in the order of the module names."""
    groups: OptionGroups = []
    for module in sorted(info.name for info in pkgutil.iter_modules(conf.__path__)):
        if module not in ('numbers', 'opts'):
            groups += importlib.import_module(f'{conf.__name__}.{module}').list_opts()
    return groups
