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

"""Probe VMs: contention that no counter of the hypervisor shows.

A *sensor* is a tiny VM of known behaviour. A generator on another machine makes it work, in three
phases, and measures how long that takes: a *reading*. The *baseline* of a type of host is what
readings are where the sensor is alone; a reading beyond it is *contention*.
"""
