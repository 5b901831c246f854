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
import hashlib
import os
import pathlib
import platform
import random
import re
import shutil
import sqlite3
import subprocess

from tracon_watcher.probe import images

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


def build(cache: pathlib.Path, boot: pathlib.Path = pathlib.Path('/boot'),
          modules: pathlib.Path = pathlib.Path('/lib/modules')) -> Image:
    """Build what is not cached yet.

    :raises TestbedError: when a package this needs is not installed
    """
    cache.mkdir(parents=True, exist_ok=True)
    kernel, release = images.find_kernel(boot, modules)
    sources = b''.join((HERE / name).read_bytes() for name in (
        'guest/workload.c', 'guest/workload.h', 'guest/schedule.c', 'guest/init',
        'host/canary.c', 'image.py'))
    tag = '%s-%s' % (release, hashlib.sha256(sources).hexdigest()[:12])
    initramfs = cache / ('initramfs-%s.gz' % tag)
    canary = cache / ('canary-%s' % tag)
    if not canary.exists():
        images.compile_c(HERE / 'host/canary.c', canary, '-fno-tree-vectorize')
    if not initramfs.exists():
        write_initramfs(initramfs, cache, modules / release)
    return Image(kernel, release, initramfs, canary)


def write_initramfs(target: pathlib.Path, cache: pathlib.Path, modules: pathlib.Path) -> None:
    workload = cache / 'workload'
    images.compile_c(HERE / 'guest/workload.c', workload, str(HERE / 'guest/schedule.c'),
                     '-static', '-pthread')
    files: dict[str, pathlib.Path | bytes] = {
        'init': HERE / 'guest/init', 'workload': workload,
        'bin/busybox': images.tool('busybox'), 'usr/bin/sqlite3': images.tool('sqlite3')}
    for library in shared_libraries(images.tool('sqlite3')):
        files[str(library).lstrip('/')] = library
    files.update(images.module_members(images.module_files(modules, MODULES)))
    images.write_archive(target, files, ('proc', 'sys', 'dev', 'mnt', 'tmp', 'apps'))


def shared_libraries(program: pathlib.Path) -> list[pathlib.Path]:
    listing = subprocess.run(['ldd', str(program)], check=True, capture_output=True, text=True)
    return [pathlib.Path(path) for path in re.findall(r'(/\S+) \(0x', listing.stdout)]


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
