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

"""What the names of programs in measurements tell."""

from __future__ import annotations

import re

import numpy as np

from tracon_lab.models import points as measured
from tracon_watcher.characteristics import BoolArray

#: Between the names of co-residents that are one background.
AND = '+'
#: Of a setting of the workload generator: CPU in per cent of a core, reads and writes a second.
GENERATOR = re.compile(r'gen-c(\d{3})-r(\d+)-w(\d+)\Z')


def is_generator(name: str) -> bool:
    """Say whether a program is a setting of the generator."""
    return GENERATOR.match(name) is not None


def generated(names: measured.StringArray) -> BoolArray:
    """Say which programs, (n,), are settings of the generator."""
    return np.array([is_generator(str(name)) for name in names], dtype=bool)


def setting(name: str) -> tuple[int, int, int]:
    """Return CPU in per cent, reads and writes a second of a setting.

    :raises ValueError: for another program
    """
    match = GENERATOR.match(name)
    if match is None:
        raise ValueError(f'{name} is no setting of the generator')
    cpu, reads, writes = map(int, match.groups())
    return cpu, reads, writes


def cores(host_type: str) -> int:
    """Return how many cores the VMs of a measured host shared."""
    return 2 if host_type.startswith('separate-cores') else 1
