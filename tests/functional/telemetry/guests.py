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

"""Small guests that run under libvirt for a test, and how Nova describes them."""

import importlib.util
import os
import pathlib
import shutil
import socket
import tempfile
import uuid

from tracon_lab.testbed import channel
from tracon_lab.testbed import daemons
from tracon_lab.testbed import domain
from tracon_lab.testbed import image
from tracon_lab.testbed import programs
from tracon_watcher.probe import images

PROGRAMS = ('qemu-system-x86_64', 'libvirtd', 'virtlogd', 'gcc', 'busybox', 'sqlite3')
EMPTY_DRIVE = ('<disk type="file" device="cdrom"><target dev="hda" bus="ide"/><readonly/></disk>')
#: Iterations of the guest's CPU loop in a second, roughly.
SPEED = 2e8


def reason_to_skip(needed=PROGRAMS):
    """Why guests cannot be run here; empty when they can."""
    if os.geteuid() != 0:
        return 'needs root, to run guests'
    if importlib.util.find_spec('libvirt') is None:
        return 'needs libvirt-python'
    missing = [name for name in needed if not shutil.which(name)]
    if missing:
        return 'needs ' + ', '.join(missing)
    if not any(pathlib.Path('/boot').glob('vmlinuz-*')):
        return 'needs a kernel in /boot'
    return ''


class Guest:
    """A guest that has booted."""

    def __init__(self, name, defined, port):
        self.name = name
        self.domain = defined
        self.uuid = defined.UUIDString()
        self.channel = channel.Channel(port, name)
        self.channel.wait_for_boot(90.0)

    def run(self, **work):
        """Have it do units of work (see programs.Unit), one after the other."""
        self.channel.ask(programs.Unit(**work).command(SPEED, 1))

    @property
    def pid(self):
        return int(pathlib.Path(f'/run/libvirt/qemu/{self.name}.pid').read_text())


def answers(path):
    """Return whether somebody listens on a UNIX socket."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


class Guests:
    """A context: libvirt's daemons, unless they run, and the guests that are booted in it."""

    def __enter__(self):
        import libvirt
        libvirt.registerErrorHandler(lambda *unused: None, None)
        self._folder = tempfile.TemporaryDirectory(prefix='tracon-guests-')
        self.folder = pathlib.Path(self._folder.name)
        self.folder.chmod(0o755)
        self._names = []
        self._image = image.build(images.default_cache())
        self._daemons = {}
        self.start_daemons()
        return self

    def start_daemons(self):
        import libvirt
        for name, port in (('virtlogd', 'virtlogd-sock'), ('libvirtd', 'libvirt-sock')):
            path = daemons.RUN / port
            if not answers(path):
                path.unlink(missing_ok=True)
                self._daemons[name] = daemons.start(
                    [name], path, self.folder / (name + '.log'))
        self.connection = libvirt.open('qemu:///system')

    def kill_daemon(self):
        """Kill libvirtd, so that guests live on; returns False when it is not ours to kill."""
        child = self._daemons.pop('libvirtd', None)
        if child is not None:
            child.kill()
            child.wait()
        return child is not None

    def boot(self, vcpus='<vcpu>1</vcpu>', disks=2, more=''):
        """Start a guest and wait until its program answers.

        :param disks: how many, of 64 MiB; its program uses the first
        :param more: further devices, as XML
        """
        name = 'telemetry-test-' + uuid.uuid4().hex[:8]
        xml, port = self.definition(name, vcpus, disks, more)
        import libvirt
        defined = self.connection.createXML(xml, libvirt.VIR_DOMAIN_START_AUTODESTROY)
        self._names.append(name)
        return Guest(name, defined, port)

    def definition(self, name, vcpus='<vcpu>1</vcpu>', disks=2, more=''):
        """Return a guest's XML and the socket of its program."""
        images = []
        for number in range(disks):
            path = self.folder / f'{name}-{number}.img'
            with open(path, 'wb') as file:
                file.truncate(64 << 20)
            path.chmod(0o666)
            images.append(domain.Disk('scratch' if number == 0 else f'more{number}', path))
        port = self.folder / (name + '.sock')
        xml = domain.definition(name, 'qemu', max(os.sched_getaffinity(0)), self._image.kernel,
                                self._image.initramfs, images, port,
                                self.folder / (name + '.console'))
        return (xml.replace('<vcpu>1</vcpu>', vcpus)
                .replace('<controller type="usb"', more + '<controller type="usb"'), port)

    def __exit__(self, *unused):
        import libvirt
        for name in self._names:
            try:
                self.connection.lookupByName(name).destroy()
            except libvirt.libvirtError:
                continue        # it has been destroyed
        self.connection.close()
        for child in reversed(self._daemons.values()):
            daemons.stop(child)
        self._folder.cleanup()


def describe(guest, name, flavor, project, user, picture, extra_specs=None):
    """Write into a guest's definition what Nova's libvirt driver does, and how it does.

    :param flavor: its name; and ``picture``: the UUID of the image
    """
    import libvirt
    from nova.virt.libvirt import config
    meta = config.LibvirtConfigGuestMetaNovaInstance()
    meta.package, meta.name, meta.creationTime = '34.0.0', name, 0
    meta.roottype, meta.rootid = 'image', picture
    meta.image = config.LibvirtConfigGuestMetaImage()
    meta.image.uuid = picture
    meta.owner = config.LibvirtConfigGuestMetaNovaOwner()
    meta.owner.userid, meta.owner.username = user, 'somebody'
    meta.owner.projectid, meta.owner.projectname = project, 'some project'
    meta.flavor = config.LibvirtConfigGuestMetaNovaFlavor()
    for field, value in (('name', flavor), ('id', '42'), ('memory', 512), ('vcpus', 1),
                         ('disk', 1), ('ephemeral', 0), ('swap', 0)):
        setattr(meta.flavor, field, value)
    meta.flavor.extra_specs = extra_specs or {}
    meta.ports = config.LibvirtConfigGuestMetaNovaPorts()
    guest.domain.setMetadata(libvirt.VIR_DOMAIN_METADATA_ELEMENT, meta.to_xml(), 'instance',
                             config.NOVA_NS, libvirt.VIR_DOMAIN_AFFECT_LIVE)
