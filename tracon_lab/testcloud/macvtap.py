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

"""Neutron's mechanism driver of the test cloud: guests get macvtap devices, without an agent.

Neutron's own needs an agent on each host, to report which device its networks are on. Here the
physical network has the name of that device.
"""

from __future__ import annotations

from typing import Any

from neutron_lib.api.definitions import portbindings
from neutron_lib import constants
from neutron_lib.plugins.ml2 import api


class MacvtapDriver(api.MechanismDriver):
    """Binds each port of a flat network to the device that its physical network names."""

    def initialize(self) -> None:
        """Nothing is needed."""

    def bind_port(self, context: Any) -> None:
        """Bind a port, which is active at once."""
        for segment in context.segments_to_bind:
            if segment[api.NETWORK_TYPE] == constants.TYPE_FLAT:
                device = segment[api.PHYSICAL_NETWORK]
                context.set_binding(segment[api.ID], portbindings.VIF_TYPE_MACVTAP, {
                    portbindings.CAP_PORT_FILTER: False,
                    portbindings.VIF_DETAILS_MACVTAP_SOURCE: device,
                    portbindings.VIF_DETAILS_MACVTAP_MODE: 'bridge',
                    portbindings.VIF_DETAILS_PHYSICAL_INTERFACE: device,
                }, status=constants.PORT_STATUS_ACTIVE)
