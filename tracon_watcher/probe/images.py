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

"""Images of small guests, and the image of a sensor."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import os
import pathlib
import re
import shutil
import stat
import subprocess
from typing import Sequence

from tracon_watcher import errors

#: Options of a guest's kernel.
COMMAND_LINE = 'console=ttyS0 quiet panic=-1 mitigations=off'


def default_cache() -> pathlib.Path:
    """$XDG_CACHE_HOME/tracon, or /var/cache/tracon for root."""
    home = os.environ.get('XDG_CACHE_HOME')
    return pathlib.Path(home) / 'tracon' if home else pathlib.Path('/var/cache/tracon')


def find_kernel(boot: pathlib.Path, modules: pathlib.Path) -> tuple[pathlib.Path, str]:
    """The newest kernel in `boot` whose modules are there; a cloud one first."""
    found = []
    for kernel in boot.glob('vmlinuz-*'):
        release = kernel.name[len('vmlinuz-'):]
        if (modules / release / 'modules.dep').exists():
            version = [int(n) for n in re.findall(r'\d+', release)]
            found.append(('cloud' in release, version, kernel, release))
    if not found:
        raise errors.NotInstalled(
            'no kernel with its modules in %s and %s: install linux-image-cloud-amd64 '
            '(Debian) or linux-image-virtual (Ubuntu)' % (boot, modules))
    return max(found)[2:]


def compile_c(source: pathlib.Path, target: pathlib.Path, *options: str) -> None:
    if not shutil.which('gcc'):
        raise errors.NotInstalled('gcc is not installed: %s is compiled with it'
                                  % source.name)
    part = target.parent / (target.name + '.part')
    # libraries among the options have to follow the source that needs them
    subprocess.run(['gcc', '-O2', '-Wall', '-o', str(part), str(source), *options], check=True)
    part.rename(target)


def write_archive(target: pathlib.Path, files: dict[str, pathlib.Path | bytes],
                  directories: tuple[str, ...]) -> None:
    part = target.parent / (target.name + '.part')
    with gzip.open(part, 'wb', compresslevel=1) as out:
        out.write(cpio(files, directories))
    part.rename(target)


def module_members(modules: dict[str, pathlib.Path]) -> dict[str, pathlib.Path | bytes]:
    """These modules as files of an initramfs, and the list of them in this order."""
    names = {'%s.ko' % name: path for name, path in modules.items()}
    return {**{'modules/' + name: path for name, path in names.items()},
            'modules/order': '\n'.join(names).encode()}


def module_files(modules: pathlib.Path,
                 wanted: Sequence[str]) -> dict[str, pathlib.Path]:
    """The modules a guest needs, in loading order, that are not built in."""
    found, needs = {}, {}
    for line in (modules / 'modules.dep').read_text().splitlines():
        path, _colon, needed = line.partition(':')
        found[_module(path)] = modules / path
        needs[_module(path)] = [_module(other) for other in reversed(needed.split())]
    return {name: found[name] for one in wanted if one in found for name in (*needs[one], one)}


def _module(path: str) -> str:
    return pathlib.PurePath(path).name.split('.')[0].replace('-', '_')


def tool(name: str) -> pathlib.Path:
    path = shutil.which(name)
    if not path:
        raise errors.NotInstalled('%s is not installed; a guest runs it' % name)
    return pathlib.Path(path)


def cpio(files: dict[str, pathlib.Path | bytes], directories: tuple[str, ...]) -> bytes:
    """A cpio archive ("newc"), the format the kernel unpacks at boot."""
    parents = {str(p) for name in files for p in pathlib.PurePath(name).parents}
    out = bytearray()

    def member(number: int, name: str, mode: int, body: bytes) -> None:
        fields = (number, mode, 0, 0, 1, 0, len(body), 0, 0, 0, 0, len(name) + 1, 0)
        out.extend(b'070701' + b''.join(b'%08x' % field for field in fields))
        out.extend(name.encode() + b'\0')
        out.extend(b'\0' * (-len(out) % 4))
        out.extend(body)
        out.extend(b'\0' * (-len(out) % 4))

    number = 1
    for name in sorted((parents | set(directories)) - {'.'}):
        member(number, name, stat.S_IFDIR | 0o755, b'')
        number += 1
    for name, source in files.items():
        body = source if isinstance(source, bytes) else source.read_bytes()
        if name.startswith('modules/') and source != body and name.endswith('.ko'):
            body = unpacked(source, body)
        member(number, name, stat.S_IFREG | 0o755, body)
        number += 1
    member(0, 'TRAILER!!!', 0, b'')
    return bytes(out)


def unpacked(path: pathlib.Path | bytes, body: bytes) -> bytes:
    """A module as the plain ELF file busybox can load."""
    for suffix, program in (('.zst', 'zstd'), ('.xz', 'xz'), ('.gz', 'gzip')):
        if str(path).endswith(suffix):
            return subprocess.run([str(tool(program)), '-dc'], input=body, check=True,
                                  capture_output=True).stdout
    return body


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
    kernel, release = find_kernel(boot, modules)
    source = SOURCE
    sources = b''.join(path.read_bytes() for path in (
        source, pathlib.Path(__file__), pathlib.Path(__file__)))
    tag = '%s-%s' % (release, hashlib.sha256(sources).hexdigest()[:12])
    initramfs = cache / ('sensor-%s.gz' % tag)
    if not initramfs.exists():
        program = cache / 'sensor'
        compile_c(source, program, '-static', '-s')
        write_archive(initramfs, {'init': program, **module_members(
            module_files(modules / release, MODULES))}, ('proc', 'sys', 'dev', 'mnt'))
    disk = cache / 'sensor.img'
    with open(disk, 'wb') as out:
        out.truncate(DISK_BYTES)
    return SensorImage(kernel, initramfs, disk)
