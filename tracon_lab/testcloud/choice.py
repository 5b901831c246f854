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

"""What the scheduler made of a new VM, as ``openstack interference explain`` has it."""

from __future__ import annotations

import dataclasses
from typing import Any, Iterable, Mapping


@dataclasses.dataclass(frozen=True)
class Choice:
    """Where a new VM was put.

    :param weights: of each host by our weigher, 0 to 1; None where it gave none
    :param refused: hosts that our filter took out
    """

    host: str
    weights: Mapping[str, float | None]
    refused: tuple[str, ...] = ()

    def __str__(self) -> str:
        said = [f'{host} {"refused" if host in self.refused else _number(weight)}'
                for host, weight in sorted(self.weights.items())]
        return f'{self.host} (weights: {", ".join(said)})'


def read(host: str, rows: Iterable[Mapping[str, Any]]) -> Choice | None:
    """Read the rows of ``explain --long``; None when no decision is recorded yet.

    :param host: where the VM was put
    """
    listed = list(rows)
    if not listed or any(row['Decision'] is None for row in listed):
        return None
    return Choice(host, {row['Host']: row['Weight'] for row in listed},
                  tuple(row['Host'] for row in listed if row['Verdict'] == 'refused'))


def _number(value: float | None) -> str:
    return 'unknown' if value is None else f'{value:.2f}'
