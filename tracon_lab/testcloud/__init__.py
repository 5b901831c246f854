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

"""A whole OpenStack on one machine, with real guests on several compute hosts.

Every service is a process of its own on the loopback device, with a port, a log and a pid file in
one data directory. A compute host is a mount namespace and a UTS namespace: it has a host name and
a libvirt of its own. :class:`.cloud.TestCloud` starts and stops it all.
"""
