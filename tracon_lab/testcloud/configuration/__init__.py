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

"""The configuration files of all services, out of one :class:`.settings.Settings`."""

from tracon_lab.testcloud.configuration import companions
from tracon_lab.testcloud.configuration import libvirt
from tracon_lab.testcloud.configuration import nova
from tracon_lab.testcloud.configuration import telemetry
from tracon_lab.testcloud.configuration import watcher
from tracon_lab.testcloud import settings as settings_module


def write(settings: settings_module.Settings) -> None:
    """Write all configuration files, whether they exist or not."""
    for part in (companions, nova, telemetry, watcher, libvirt):
        part.write(settings)
