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

"""The law of queueing by which a host is judged: how much its VMs slow each other down.

Nothing in it is fitted. A host has cores, disks or pools, and VMs that use them; what each VM
would do alone is all that is asked of it. :mod:`~tracon_watcher.queueing.network` has the law,
:mod:`~tracon_watcher.queueing.cores` how VMs share cores, and
:mod:`~tracon_watcher.queueing.capacity` how much a resource does for several at once.
"""
