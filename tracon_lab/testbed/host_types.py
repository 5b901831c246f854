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
"""Host types: what guests share, and how the generator is set for it."""

import dataclasses
import pathlib
import typing

from tracon_lab.testbed import devices
from tracon_lab.testbed import errors


@dataclasses.dataclass(frozen=True)
class HostType:
    """A kind of host.

    :param device: what makes the disks, in a folder
    :param emulated: "no", or "yes: " and how; goes into the data's header
    :param open_reads: and open_writes: rates of the open-loop programs, a second
    :param levels: of the generator: CPU percent, reads and writes a second
    :param cpu_costs: share of the core that a percent of CPU, a read and a write a second take,
        roughly; only used to choose settings
    :param device_costs: the same of the device, of a read and a write a second
    :param most_load: up to which combinations of levels are measured
    :param separate_cores: the guests beside the target have another core than it
    """

    name: str
    emulated: str
    device: typing.Callable[[pathlib.Path, devices.Contents], devices.Device]
    open_reads: int
    open_writes: int
    levels: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
    cpu_costs: tuple[float, float, float]
    device_costs: tuple[float, float]
    most_load: float
    separate_cores: bool = False

    def load(self, cpu: int, reads: int, writes: int) -> float:
        """What a generator setting asks of the core or of the device, whichever is fuller."""
        core = (cpu * self.cpu_costs[0] + reads * self.cpu_costs[1]
                + writes * self.cpu_costs[2])
        return max(core, reads * self.device_costs[0] + writes * self.device_costs[1])


_FAST = ((0, 30, 60, 100), (0, 250, 800), (0, 200, 600))
HOST_TYPES = {kind.name: kind for kind in (
    HostType('same-core-raw-disk', 'no', devices.RawFiles, 500, 300, _FAST,
             (0.01, 0.0005, 0.0005), (0.0, 0.0), 1.33),
    HostType('shared-slow-device',
             'yes: one spindle of %d MB/s, %.1f ms a turn, %.1f ms a full seek, served by nbdkit'
             % (devices.Spindle.RATE // 10**6, devices.Spindle.TURN / 1000,
                devices.Spindle.SEEK / 1000),
             devices.Spindle, 15, 15,
             ((0, 40, 90), (0, 10, 30, 80), (0, 10, 40)),
             (0.01, 0.0006, 0.0006), (0.009, 0.009), 1.1),
    HostType('separate-cores-raw-disk', 'no', devices.RawFiles, 500, 300, _FAST,
             (0.01, 0.0005, 0.0005), (0.0, 0.0), 1.33, separate_cores=True),
    HostType('same-core-remote-volume',
             'yes: a network that delays each request by %d ms, by nbdkit'
             % devices.RemoteVolume.DELAY_MS,
             devices.RemoteVolume, 100, 100,
             ((0, 30, 60, 100), (0, 80, 250), (0, 60, 200)),
             (0.01, 0.0006, 0.0006), (0.002, 0.002), 1.33),
)}


def named(name: str) -> HostType:
    """The host type of that name.

    :raises TestbedError: naming those that there are
    """
    if name not in HOST_TYPES:
        raise errors.TestbedError('unknown host type %r: it is one of %s'
                                  % (name, ', '.join(sorted(HOST_TYPES))))
    return HOST_TYPES[name]
