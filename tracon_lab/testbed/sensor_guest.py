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

"""A sensor as a guest of this machine."""

import collections.abc
import contextlib
import dataclasses
import http.client
import os
import pathlib
import secrets
import shutil
import subprocess
import tempfile
import time

import libvirt

from tracon_lab.testbed import daemons
from tracon_lab.testbed import domain
from tracon_lab.testbed import errors
from tracon_lab.testbed import interruption
from tracon_watcher.probe import answers
from tracon_watcher.probe import images

BOOT_TIMEOUT = 60.0
ISO_TOOLS = ('genisoimage', 'mkisofs', 'xorrisofs')


@dataclasses.dataclass(frozen=True)
class Sensor:
    """A sensor that answers."""

    address: str
    port: int
    secret: bytes
    domain: libvirt.virDomain

    def cpu_seconds(self) -> float:
        """The time that its threads have run since it booted."""
        return float(self.domain.info()[4]) * 1e-9

    def ask(self, kind: str, timeout: float = 60.0, **counts: int) -> float:
        """Have it do a piece of work, as in ``ask('memory', integers=4096)``; return the seconds.

        :raises TestbedError: when it refuses, or when the answer is not the sensor's
        :raises OSError: when it does not answer
        """
        asked = answers.target('/' + kind, *next(iter(counts.items()), ()))
        connection = http.client.HTTPConnection(self.address, self.port, timeout=timeout)
        with contextlib.closing(connection):
            begun = time.monotonic()
            connection.request('GET', asked, headers={
                answers.SIGNATURE: answers.sign(self.secret, asked.encode())})
            answer = connection.getresponse()
            body = answer.read()
        try:
            return answers.check(self.secret, asked, answer.status, body,
                                 answer.getheader(answers.SIGNATURE, ''),
                                 time.monotonic() - begun)
        except answers.BadAnswer as error:
            raise errors.TestbedError(str(error)) from None


@contextlib.contextmanager
def booted(cache: pathlib.Path, cpuset: str, memory: int = images.MEMORY_MIB,
           accelerator: str = 'qemu',
           secret: bytes | None = None) -> collections.abc.Iterator[Sensor]:
    """A sensor on these cores, on a network that it shares with this machine alone.

    :param cache: where images are kept, and its disk while it runs
    :param cpuset: the cores on which all its threads run, as in ``0-3,7``
    :param memory: MiB
    :param secret: that requests are signed by; None: one of its own
    :raises TestbedError: when it does not answer in time
    """
    libvirt.registerErrorHandler(lambda *unused: None, None)
    with contextlib.ExitStack() as stack:
        built = images.build(cache)
        folder = pathlib.Path(stack.enter_context(
            tempfile.TemporaryDirectory(prefix='sensor-', dir=cache)))
        folder.chmod(0o755)
        stack.enter_context(daemons.Libvirt(folder))
        connection = libvirt.open('qemu:///system')
        stack.callback(connection.close)
        name = 'tracon-sensor-' + secrets.token_hex(3)
        # one of the networks of four addresses that are for links
        network = '169.254.%d.' % (1 + secrets.randbelow(254))
        first = 4 * secrets.randbelow(64)
        address, secret = network + str(first + 2), secret or secrets.token_bytes(32)
        drive, disk, console = (folder / part for part in ('config.iso', 'disk', 'console'))
        config_drive(
            drive, f'secret={secret.hex()}\naddress={address}/30\n')
        shutil.copy(built.disk, disk)
        os.truncate(disk, images.DISK_BYTES)
        disk.chmod(0o666)
        xml = domain.definition(
            name, accelerator, cpuset, built.kernel, built.initramfs,
            [domain.Disk('sensor', disk)], None, console, memory=memory,
            options=images.OPTIONS, more=f'''
    <disk type="file" device="cdrom">
      <driver name="qemu" type="raw"/><source file="{drive}"/>
      <target dev="hda" bus="ide"/><readonly/>
    </disk>
    <interface type="ethernet">
      <source><ip address="{network}{first + 1}" prefix="30"/></source>
      <target dev="{name[7:]}"/><model type="virtio"/>
    </interface>''')
        with interruption.signals.held():
            defined = connection.createXML(xml, libvirt.VIR_DOMAIN_START_AUTODESTROY)
            stack.callback(_destroy, defined)
        sensor = Sensor(address, answers.PORT, secret, defined)
        _wait(sensor, console)
        yield sensor


def _wait(sensor: Sensor, console: pathlib.Path) -> None:
    deadline = time.monotonic() + BOOT_TIMEOUT
    while True:
        try:
            sensor.ask('about', timeout=1.0)
            return
        except OSError as exc:
            why = str(exc)
        if time.monotonic() > deadline or not _runs(sensor.domain):
            raise errors.TestbedError('the sensor does not answer at %s (%s); its console ends '
                                      'with: %s' % (sensor.address, why, daemons.tail(console)))
        time.sleep(0.1)


def _runs(defined: libvirt.virDomain) -> bool:
    try:
        return bool(defined.isActive())
    except libvirt.libvirtError:
        return False


def _destroy(defined: libvirt.virDomain) -> None:
    if _runs(defined):
        defined.destroy()


def config_drive(path: pathlib.Path, text: str) -> None:
    """Write a config drive with this user data, as Nova does.

    :raises TestbedError: when no program that writes one is installed
    """
    program = next(filter(None, map(shutil.which, ISO_TOOLS)), None)
    if program is None:
        raise errors.TestbedError('none of %s is installed: install genisoimage, which writes '
                                  'config drives' % ', '.join(ISO_TOOLS))
    with tempfile.TemporaryDirectory() as folder:
        latest = pathlib.Path(folder, 'openstack/latest')
        latest.mkdir(parents=True)
        (latest / 'user_data').write_text(text)
        subprocess.run([program, '-quiet', '-J', '-r', '-V', 'config-2', '-o', str(path), folder],
                       check=True, capture_output=True)
