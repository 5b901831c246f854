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

"""What a demonstration is made of, in one value that names its results."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import json
from typing import Any

from tracon_watcher import errors

#: VMs that fit on a host: interference was measured between two.
SLOTS = 2
ON_ALL_REFUSED = ('refuse', 'least_harm')


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything that the outcome of a seed depends on, but the seed.

    :param files: CSV files with measurements
    :param hosts: compute hosts of two slots each
    :param vms: requests
    :param departing: share of the VMs that end before one changes its behaviour
    :param concentration: how different projects are, see :func:`.workload.draw`
    :param on_all_refused: the option of that name, in the arms of this extension
    """

    files: tuple[str, ...]
    host_type: str
    hosts: int = 16
    vms: int = 24
    projects: int = 6
    history: int = 240
    concentration: float = 0.5
    on_all_refused: str = 'refuse'
    departing: float = 0.2

    def __post_init__(self) -> None:
        if self.hosts < 2:
            raise errors.InvalidOption('--hosts', self.hosts, 'a choice needs two hosts or more')
        if not 1 <= self.vms <= self.hosts * SLOTS:
            raise errors.InvalidOption(
                '--vms', self.vms, f'{self.hosts} hosts have room for 1 to '
                                   f'{self.hosts * SLOTS} VMs')
        if not 0 <= self.departing < 1:
            raise errors.InvalidOption('--departing', self.departing,
                                       'expected a share from 0 to below 1')
        if not 0 < self.concentration < 1e6:
            raise errors.InvalidOption('--concentration', self.concentration,
                                       'expected a number above 0')

    @property
    def host_names(self) -> list[str]:
        """Names of the compute hosts."""
        return [f'host{number:02}' for number in range(1, self.hosts + 1)]

    def to_document(self) -> dict[str, Any]:
        """Return the JSON form."""
        return dataclasses.asdict(self)

    @classmethod
    def from_document(cls, content: dict[str, Any]) -> Settings:
        """Read the JSON form."""
        return cls(**{**content, 'files': tuple(content['files'])})

    def fingerprint(self) -> str:
        """Return what tells results of these settings from others.

        A digest of the settings, of what stands in the files, and of this product's version.
        """
        digest = hashlib.sha256(json.dumps(
            {**self.to_document(), 'files': None,
             'version': importlib.metadata.version('tracon-watcher')}, sort_keys=True).encode())
        for name in self.files:
            with open(name, 'rb') as stream:
                digest.update(hashlib.sha256(stream.read()).digest())
        return digest.hexdigest()[:16]
