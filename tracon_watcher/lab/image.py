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

"""What a guest boots: a kernel, an initramfs with one program, disks.

Everything is built on this host from installed packages and kept in a cache
directory, so that a guest starts in seconds and nothing is downloaded.
"""

import dataclasses
import gzip
import hashlib
import os
import pathlib
import platform
import random
import re
import shutil
import sqlite3
import stat
import subprocess
import typing

from tracon_watcher.lab import errors

HERE = pathlib.Path(__file__).parent
# virtio_ring has to be loaded before virtio
MODULES = ('virtio_ring', 'virtio', 'virtio_pci_modern_dev', 'virtio_pci_legacy_dev',
           'virtio_pci', 'virtio_blk', 'virtio_console')
SCRATCH_BYTES = 1 << 30
DATABASE_BYTES = 1 << 30
DATABASE_ROWS = 5_000_000
ROWS_PER_CUSTOMER = 10


@dataclasses.dataclass(frozen=True)
class Image:
    """Paths a guest is defined with."""

    kernel: pathlib.Path
    kernel_release: str
    initramfs: pathlib.Path
    canary: pathlib.Path


def default_cache() -> pathlib.Path:
    """$XDG_CACHE_HOME/tracon, or /var/cache/tracon for root."""
    home = os.environ.get('XDG_CACHE_HOME')
    return pathlib.Path(home) / 'tracon' if home else pathlib.Path('/var/cache/tracon')


def build(cache: pathlib.Path, boot: pathlib.Path = pathlib.Path('/boot'),
          modules: pathlib.Path = pathlib.Path('/lib/modules')) -> Image:
    """Build what is not cached yet.

    :raises TestbedError: when a package this needs is not installed
    """
    cache.mkdir(parents=True, exist_ok=True)
    kernel, release = find_kernel(boot, modules)
    sources = b''.join((HERE / name).read_bytes() for name in (
        'guest/workload.c', 'guest/workload.h', 'guest/schedule.c', 'guest/init',
        'host/canary.c', 'image.py'))
    tag = '%s-%s' % (release, hashlib.sha256(sources).hexdigest()[:12])
    initramfs = cache / ('initramfs-%s.gz' % tag)
    canary = cache / ('canary-%s' % tag)
    if not canary.exists():
        compile_c(HERE / 'host/canary.c', canary, '-fno-tree-vectorize')
    if not initramfs.exists():
        write_initramfs(initramfs, cache, modules / release)
    return Image(kernel, release, initramfs, canary)


def find_kernel(boot: pathlib.Path, modules: pathlib.Path) -> tuple[pathlib.Path, str]:
    """The newest kernel in `boot` whose modules are there; a cloud one first."""
    found = []
    for kernel in boot.glob('vmlinuz-*'):
        release = kernel.name[len('vmlinuz-'):]
        if (modules / release / 'modules.dep').exists():
            version = [int(n) for n in re.findall(r'\d+', release)]
            found.append(('cloud' in release, version, kernel, release))
    if not found:
        raise errors.TestbedError(
            'no kernel with its modules in %s and %s: install linux-image-cloud-amd64 '
            '(Debian) or linux-image-virtual (Ubuntu)' % (boot, modules))
    return max(found)[2:]


def compile_c(source: pathlib.Path, target: pathlib.Path, *options: str) -> None:
    if not shutil.which('gcc'):
        raise errors.TestbedError('gcc is not installed; the testbed compiles %s with it'
                                  % source.name)
    part = target.parent / (target.name + '.part')
    # libraries among the options have to follow the source that needs them
    subprocess.run(['gcc', '-O2', '-Wall', '-o', str(part), str(source), *options], check=True)
    part.rename(target)


def write_initramfs(target: pathlib.Path, cache: pathlib.Path, modules: pathlib.Path) -> None:
    workload = cache / 'workload'
    compile_c(HERE / 'guest/workload.c', workload, str(HERE / 'guest/schedule.c'), '-static',
              '-pthread')
    files: dict[str, pathlib.Path | bytes] = {
        'init': HERE / 'guest/init', 'workload': workload, 'bin/busybox': tool('busybox'),
        'usr/bin/sqlite3': tool('sqlite3')}
    for library in shared_libraries(tool('sqlite3')):
        files[str(library).lstrip('/')] = library
    files.update(module_members(module_files(modules)))
    write_archive(target, files, ('proc', 'sys', 'dev', 'mnt', 'tmp', 'apps'))


def module_members(modules: dict[str, pathlib.Path]) -> dict[str, pathlib.Path | bytes]:
    """These modules as files of an initramfs, and the list of them in this order."""
    names = {'%s.ko' % name: path for name, path in modules.items()}
    return {**{'modules/' + name: path for name, path in names.items()},
            'modules/order': '\n'.join(names).encode()}


def write_archive(target: pathlib.Path, files: dict[str, pathlib.Path | bytes],
                  directories: tuple[str, ...]) -> None:
    part = target.parent / (target.name + '.part')
    with gzip.open(part, 'wb', compresslevel=1) as out:
        out.write(cpio(files, directories))
    part.rename(target)


def tool(name: str) -> pathlib.Path:
    path = shutil.which(name)
    if not path:
        raise errors.TestbedError('%s is not installed; a guest runs it' % name)
    return pathlib.Path(path)


def module_files(modules: pathlib.Path,
                 wanted: typing.Sequence[str] = MODULES) -> dict[str, pathlib.Path]:
    """The modules a guest needs, in loading order, that are not built in."""
    found, needs = {}, {}
    for line in (modules / 'modules.dep').read_text().splitlines():
        path, _colon, needed = line.partition(':')
        found[_module(path)] = modules / path
        needs[_module(path)] = [_module(other) for other in reversed(needed.split())]
    return {name: found[name] for one in wanted if one in found for name in (*needs[one], one)}


def _module(path: str) -> str:
    return pathlib.PurePath(path).name.split('.')[0].replace('-', '_')


def shared_libraries(program: pathlib.Path) -> list[pathlib.Path]:
    listing = subprocess.run(['ldd', str(program)], check=True, capture_output=True, text=True)
    return [pathlib.Path(path) for path in re.findall(r'(/\S+) \(0x', listing.stdout)]


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


def database_disk(cache: pathlib.Path) -> pathlib.Path:
    """The disk of the database program, built unless it is cached."""
    path = cache / ('database-%d-%d.img' % (DATABASE_ROWS, DATABASE_BYTES))
    if not path.exists():
        write_database_disk(path)
    return path


def write_database_disk(target: pathlib.Path) -> None:
    """An ext4 disk with one SQLite table, larger than a guest's memory.

    A customer's sales lie scattered over the whole table, so a query reads
    one place of the index and about ten places of the table.
    """
    root = target.with_suffix('.root')
    root.mkdir(exist_ok=True)
    path = root / 'sales.db'
    path.unlink(missing_ok=True)
    generator = random.Random(1)
    customers = DATABASE_ROWS // ROWS_PER_CUSTOMER
    with sqlite3.connect(path) as db:
        db.execute('PRAGMA journal_mode=OFF')
        db.execute('PRAGMA synchronous=OFF')
        db.execute('CREATE TABLE sale (id INTEGER PRIMARY KEY, customer INTEGER, '
                   'amount REAL, note TEXT)')
        note = 'x' * 100
        db.executemany('INSERT INTO sale VALUES (?, ?, ?, ?)', (
            (n, int(generator.random() * customers), generator.random() * 100, note)
            for n in range(DATABASE_ROWS)))
        db.execute('CREATE INDEX sale_customer ON sale (customer)')
    db.close()
    part = target.parent / (target.name + '.part')
    with open(part, 'wb') as disk:
        disk.truncate(DATABASE_BYTES)
    subprocess.run(['mkfs.ext4', '-q', '-F', '-O', '^has_journal', '-d', str(root), str(part)],
                   check=True)
    shutil.rmtree(root)
    part.rename(target)


def written_file(path: pathlib.Path, size: int) -> None:
    """A file whose blocks are all written: holes answer too fast and grow while measured."""
    if path.exists() and path.stat().st_size == size:
        return
    part = path.with_suffix('.part')
    block = bytes(range(1, 256)) * 4112
    with open(part, 'wb') as out:
        left = size
        while left > 0:
            left -= out.write(block[:left])
        out.flush()
        os.fsync(out.fileno())
    part.rename(path)


def host_kernel() -> str:
    return platform.release()
