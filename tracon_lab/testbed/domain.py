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

"""The libvirt definition of a testbed guest."""

import dataclasses
import pathlib
import typing
from xml.sax import saxutils

from tracon_watcher.probe import images

MEMORY_MIB = 512
PORT = 'org.tracon.workload'
#: Guests by what they are for; a run has the first two of them at least.
SIDES = ('target', *(f'background{number or ""}' for number in (0, *range(2, 8))))


@dataclasses.dataclass(frozen=True)
class Disk:
    """A raw image: a file, or an export of an NBD server on a UNIX socket.

    :param label: by which the guest knows what it is for
    """

    label: str
    path: pathlib.Path
    export: str | None = None
    read_only: bool = False


def definition(name: str, accelerator: str, cpuset: str, kernel: pathlib.Path,
               initramfs: pathlib.Path, disks: list[Disk], port: pathlib.Path | None,
               console: pathlib.Path, events: typing.Sequence[str] = (), vcpus: int = 1,
               memory: int = MEMORY_MIB, more: str = '', options: str = '') -> str:
    """One virtual CPU and 512 MiB (TRACON, section 4.2).

    :param cpuset: the cores on which all its threads run, as in ``0-3,7``
    :param port: the socket of its virtio-serial port, if it has one
    :param events: libvirt's names of perf events to be counted
    :param memory: MiB
    :param more: further devices, as XML
    :param options: further ones of its kernel

    Without ACPI and the HPET a guest's clock is slow and it boots for 15 s.
    """
    cpu = {'kvm': '<cpu mode="host-passthrough"/>', 'qemu': '<cpu mode="maximum"/>'}[accelerator]
    return f'''
<domain type="{accelerator}">
  <name>{name}</name>
  <memory unit="MiB">{memory}</memory>
  <vcpu cpuset="{cpuset}">{vcpus}</vcpu>
  <cputune><emulatorpin cpuset="{cpuset}"/></cputune>
  <os>
    <type arch="x86_64" machine="pc">hvm</type>
    <kernel>{_text(kernel)}</kernel>
    <initrd>{_text(initramfs)}</initrd>
    <cmdline>{images.COMMAND_LINE} {options}</cmdline>
  </os>
  <perf>{''.join(f'<event name="{name}" enabled="yes"/>' for name in events)}</perf>
  <features><acpi/></features>
  {cpu}
  <clock offset="utc"><timer name="hpet" present="yes"/></clock>
  <on_poweroff>destroy</on_poweroff>
  <on_reboot>destroy</on_reboot>
  <on_crash>destroy</on_crash>
  <devices>
    {''.join(_disk(disk, chr(ord('a') + n)) for n, disk in enumerate(disks))}
    <serial type="file"><source path="{_text(console)}"/></serial>
    {_channel(port) if port else ''}{more}
    <controller type="usb" model="none"/>
    <memballoon model="none"/>
  </devices>
  <seclabel type="none"/>
</domain>'''


def _text(path: pathlib.Path) -> str:
    return saxutils.escape(str(path), {'"': '&quot;'})


def _channel(port: pathlib.Path) -> str:
    return f'''<channel type="unix">
      <source mode="bind" path="{_text(port)}"/>
      <target type="virtio" name="{PORT}"/>
    </channel>'''


def _disk(disk: Disk, letter: str) -> str:
    if disk.export is None:
        source = f'<source file="{_text(disk.path)}"/>'
        kind, options = 'file', ' io="native"'
    else:
        source = (f'<source protocol="nbd" name="{disk.export}">'
                  f'<host transport="unix" socket="{_text(disk.path)}"/></source>')
        kind, options = 'network', ''
    return f'''<disk type="{kind}" device="disk">
      <driver name="qemu" type="raw" cache="none"{options}/>
      {source}<target dev="vd{letter}" bus="virtio"/>
      <serial>{disk.label}</serial>{'<readonly/>' * disk.read_only}
    </disk>'''
