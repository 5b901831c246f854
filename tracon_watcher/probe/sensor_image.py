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

"""What a sensor boots: a kernel, an initramfs with its program alone, a disk, a config drive."""

import dataclasses
import hashlib
import pathlib

from tracon_watcher.probe import guest_image

SOURCE = pathlib.Path(__file__).parent / 'sensor.c'
#: What it may meet in a cloud: its disk, its port, and a config drive on whatever bus.
MODULES = ('virtio_pci', 'virtio_blk', 'virtio_net', 'ata_piix', 'ahci', 'virtio_scsi', 'sr_mod',
           'isofs')
DISK_BYTES = 48 << 20
#: With these options of its kernel, which are to save memory, it reads five million integers in
#: 80 MiB; without them it needs 92. To unpack itself the kernel needs 69.
OPTIONS = 'initcall_blacklist=tracer_init_tracefs percpu_alloc=page'
MEMORY_MIB = 80


@dataclasses.dataclass(frozen=True)
class SensorImage:
    """Paths that a sensor is booted from; each needs a copy of the disk of its own."""

    kernel: pathlib.Path
    initramfs: pathlib.Path
    disk: pathlib.Path


def build(cache: pathlib.Path, boot: pathlib.Path = pathlib.Path('/boot'),
          modules: pathlib.Path = pathlib.Path('/lib/modules')) -> SensorImage:
    """Build what is not cached yet.

    :raises NotInstalled: when a package this needs is not installed
    """
    cache.mkdir(parents=True, exist_ok=True)
    kernel, release = guest_image.find_kernel(boot, modules)
    source = SOURCE
    sources = b''.join(path.read_bytes() for path in (
        source, pathlib.Path(__file__), pathlib.Path(guest_image.__file__)))
    tag = '%s-%s' % (release, hashlib.sha256(sources).hexdigest()[:12])
    initramfs = cache / ('sensor-%s.gz' % tag)
    if not initramfs.exists():
        program = cache / 'sensor'
        guest_image.compile_c(source, program, '-static', '-s')
        guest_image.write_archive(initramfs, {'init': program, **guest_image.module_members(
            guest_image.module_files(modules / release, MODULES))}, ('proc', 'sys', 'dev', 'mnt'))
    disk = cache / 'sensor.img'
    with open(disk, 'wb') as out:
        out.truncate(DISK_BYTES)
    return SensorImage(kernel, initramfs, disk)
