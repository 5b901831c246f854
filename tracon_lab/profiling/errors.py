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

"""Errors of measuring in a cloud."""

from tracon_watcher.errors import TraconError


class ProfilingError(TraconError):
    """A host of the cloud cannot be measured; names the thing, the value and the remedy."""


class HostNotEmpty(ProfilingError):
    """Others are on the host that is to be measured."""


class CloudRefused(ProfilingError):
    """A service of the cloud did not do what it was asked for."""


class GuestSilent(ProfilingError):
    """A VM that measures does not say on its console what it should."""


class NoSamples(ProfilingError):
    """Telemetry has nothing of the VMs that measure."""


class ClocksApart(ProfilingError):
    """A VM's clock shows another time than that of this machine."""
