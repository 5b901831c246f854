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

"""Nova's types of hypervisors: which compute services stand for several machines."""

from __future__ import annotations

from typing import Mapping

#: Ironic's service stands for all its nodes, vCenter's for a cluster of hosts. VMs that have it as
#: their host are no neighbours, so it is not judged.
SEVERAL_MACHINES = frozenset(('ironic', 'VMware vCenter Server'))


def several_machines(types: Mapping[str, str | None]) -> frozenset[str]:
    """Return the hosts, of these by their types, whose service stands for several machines."""
    return frozenset(host for host, one in types.items() if one in SEVERAL_MACHINES)
