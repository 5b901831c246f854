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

"""The measurements that come with the package, and numbers as commands show them."""

import importlib.resources
from typing import Any

from tracon_watcher import errors


def measurements() -> list[str]:
    """Return the files of measurements that come with the package."""
    folder = importlib.resources.files('tracon_lab.testbed') / 'data'
    return sorted(str(entry) for entry in folder.iterdir()
                  if entry.name.endswith(('.csv', '.csv.gz')))


def read(files: list[str]) -> Any:
    from tracon_lab.models import dataset
    found = files or measurements()
    if not found:
        raise errors.InvalidOption('FILE', None, 'no measurements came with the package; name '
                                                 'a CSV file of `tracon lab measure`')
    return dataset.read_all(found)
