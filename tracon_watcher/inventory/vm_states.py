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

"""What states of VMs, as Nova has them, say of their demand."""

from __future__ import annotations

#: A VM's processors stand still: its demand is nothing, and that is known.
IDLE = frozenset(('paused', 'suspended', 'stopped', 'shelved', 'shelved_offloaded', 'soft-delete'))
#: A VM does not run on any host, not yet or not any more: it counts nowhere.
ABSENT = frozenset(('deleted', 'building'))
#: What Nova does with a VM, as its task state says, after which its processors stand still.
ENDING = frozenset((
    'deleting', 'pausing', 'powering-off', 'shelving', 'shelving_image_pending_upload',
    'shelving_image_uploading', 'shelving_offloading', 'soft-deleting', 'suspending'))
#: A VM has failed to be built, and runs nowhere, or something has failed later, and it runs on.
FAILED = 'error'
#: A VM may have no host; in any other state it has one.
HOMELESS = ABSENT | {FAILED, 'shelved_offloaded'}
