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

"""The disk with the eight applications: built from Debian packages, kept in the cache.

Packages are downloaded by apt, with all they depend on and without being installed;
of their files only the programs, the libraries those load and what the catalogue names
are kept. Nothing else is downloaded.
"""

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import pathlib
import re
import shutil
import stat
import subprocess
import typing

from tracon_lab.testbed import application_inputs
from tracon_lab.testbed import applications
from tracon_lab.testbed import errors
from tracon_lab.testbed import image
from tracon_watcher.probe import images

SOURCES = pathlib.Path(__file__).parent
SCRIPTS = SOURCES / 'guest' / 'applications'
LOADER = 'lib64/ld-linux-x86-64.so.2'
WORK_BYTES = 256 << 20
MIB = 1 << 20
# Programs that only make the inputs.
_MAKEBLASTDB = {'blastn': 'nucl', 'blastp': 'prot'}


@dataclasses.dataclass(frozen=True)
class ApplicationImage:
    """A read-only disk, and the versions of the packages on it."""

    disk: pathlib.Path
    versions: dict[str, str]


def tag() -> str:
    """Names what the disk is made of; another text of scripts or inputs is another disk."""
    digest = hashlib.sha256()
    for path in (*sorted(SCRIPTS.glob('*/*')), SOURCES / 'applications.py',
                 SOURCES / 'application_inputs.py', SOURCES / 'application_image.py'):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def build(cache: pathlib.Path, report: typing.Callable[[str], None]) -> ApplicationImage:
    """Build the disk unless the cache has it.

    :param report: is called with a line before each step that takes its time
    :raises TestbedError: naming what is missing
    """
    name = 'applications-%s' % tag()
    disk, facts = cache / (name + '.img'), cache / (name + '.json')
    cache.mkdir(parents=True, exist_ok=True)
    with _only_builder(cache, report):
        if not (disk.exists() and facts.exists()):
            folder = cache / (name + '.build')
            shutil.rmtree(folder, ignore_errors=True)
            try:
                versions = _build(cache, folder, disk, report)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            part = facts.with_suffix('.part')
            part.write_text(json.dumps(versions, indent=1))
            part.rename(facts)
    return ApplicationImage(disk, json.loads(facts.read_text()))


@contextlib.contextmanager
def _only_builder(cache: pathlib.Path,
                  report: typing.Callable[[str], None]) -> typing.Iterator[None]:
    """Wait until nobody else builds in the same cache."""
    with open(cache / 'build.lock', 'w') as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            report('waiting for another process that builds the disk in %s' % cache)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build(cache: pathlib.Path, folder: pathlib.Path, disk: pathlib.Path,
           report: typing.Callable[[str], None]) -> dict[str, str]:
    wanted = sorted({name for one in applications.CATALOGUE.values() for name in one.packages})
    report('1/4 downloading %s and what they need' % ', '.join(wanted))
    packages = download(cache / 'packages', wanted)
    report('2/4 unpacking %d packages' % len(packages))
    unpacked, root = folder / 'unpacked', folder / 'root'
    for package in packages:
        _run(['dpkg-deb', '-x', str(package), str(_made(unpacked))])
    select(unpacked, root)
    report('3/4 making the inputs')
    scripts(root)
    application_inputs.write(root)
    databases(root)
    report('4/4 writing the disk')
    write_disk(root, disk)
    return {name: version for name, version in map(_version, packages) if name in wanted}


def download(archives: pathlib.Path, wanted: typing.Sequence[str]) -> list[pathlib.Path]:
    """Fetch packages with all that they depend on, as if nothing were installed.

    :returns: the package files
    """
    (_made(archives) / 'partial').mkdir(exist_ok=True)
    command = ['apt-get', '-q', '-y', '--no-install-recommends', '-o',
               'Dir::State::status=/dev/null', '-o', 'Debug::NoLocking=1', '-o',
               'APT::Sandbox::User=root', '-o', 'Dir::Cache::archives=%s' % archives]
    try:
        planned = _run([*command, '--simulate', 'install', *wanted])
        _run([*command, '--download-only', 'install', *wanted])
    except errors.TestbedError as exc:
        raise errors.TestbedError('%s; run `apt-get update` and try again' % exc) from None
    # What an earlier run downloaded in another version lies there as well.
    found = []
    for name, version in re.findall(r'^Inst (\S+) \((\S+) ', planned, re.MULTILINE):
        found += archives.glob('%s_%s_*.deb' % (name.partition(':')[0],
                                                version.replace(':', '%3a')))
    return sorted(found)


def _version(package: pathlib.Path) -> tuple[str, str]:
    name, version = _run(['dpkg-deb', '--show', '--showformat', '${Package}\t${Version}',
                          str(package)]).split('\t')
    return name, version


def select(unpacked: pathlib.Path, root: pathlib.Path) -> None:
    """Copy what the catalogue names, and the libraries it needs, to an empty root."""
    if not (unpacked / LOADER).is_symlink() and not (unpacked / LOADER).exists():
        raise errors.TestbedError('no %s in the packages: this distribution has its loader '
                                  'elsewhere' % LOADER)
    _copy(unpacked, unpacked / LOADER, root)
    for one in applications.CATALOGUE.values():
        for pattern in one.programs:
            for path in _found(unpacked, pattern, one):
                _copy(unpacked, path, root)
                for library in libraries(unpacked, path):
                    _copy(unpacked, library, root)
        for pattern in one.trees:
            for path in _found(unpacked, pattern, one):
                for inner in path.rglob('*') if path.is_dir() else (path,):
                    if inner.is_file():
                        _copy(unpacked, inner, root)


def _found(unpacked: pathlib.Path, pattern: str,
           one: applications.Application) -> list[pathlib.Path]:
    found = sorted(unpacked.glob(pattern))
    if not found:
        raise errors.TestbedError('no %s in the packages of %s (%s): this distribution has it '
                                  'elsewhere' % (pattern, one.name, ', '.join(one.packages)))
    return found


def libraries(unpacked: pathlib.Path, program: pathlib.Path) -> list[pathlib.Path]:
    """What the loader loads for a program, seen from within the unpacked root."""
    listing = _run(['chroot', str(unpacked), '/' + LOADER, '--list',
                    '/' + str(_within(unpacked, program).relative_to(unpacked))])
    if 'not found' in listing:
        raise errors.TestbedError('%s: %s' % (program.name, listing.strip()))
    return [unpacked / path.lstrip('/') for path in re.findall(r'=> (/\S+) \(0x', listing)]


def _copy(unpacked: pathlib.Path, path: pathlib.Path, root: pathlib.Path) -> None:
    """Copy a file to the same place; a link becomes what it leads to."""
    target = root / path.relative_to(unpacked)
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(_within(unpacked, path), target)


def _within(unpacked: pathlib.Path, path: pathlib.Path) -> pathlib.Path:
    """Follow links as a process would that has `unpacked` as its root."""
    for _ in range(16):
        if not path.is_symlink():
            return path
        goal = path.readlink()
        path = unpacked / str(goal).lstrip('/') if goal.is_absolute() else path.parent / goal
    raise errors.TestbedError('%s is a link that leads nowhere' % path)


def scripts(root: pathlib.Path) -> None:
    """The scripts with the shell that runs them, and the folders they expect."""
    for path in SCRIPTS.glob('*/*'):
        target = _made(root / 'srv' / path.parent.name) / path.name
        shutil.copyfile(path, target)
    shutil.copyfile(images.tool('busybox'), _made(root / 'bin') / 'busybox')
    (root / 'bin/busybox').chmod(0o755)
    for name in ('work', 'proc', 'dev', 'tmp'):
        _made(root / name)
    _made(root / 'etc')
    (root / 'etc/passwd').write_text('root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n')
    (root / 'etc/group').write_text('root:x:0:\nnogroup:x:65534:\nnobody:x:65534:\n')


def databases(root: pathlib.Path) -> None:
    """Turn the sequences into databases; the program that does it is not needed any more."""
    for name, kind in _MAKEBLASTDB.items():
        for shard in range(applications.SHARDS):
            folder = '/srv/%s/%d/' % (name, shard)
            _run(['chroot', str(root), '/usr/bin/makeblastdb', '-dbtype', kind, '-in',
                  folder + 'sequences.fa', '-out', folder + 'sequences', '-blastdb_version',
                  '4'])
            (root / folder.lstrip('/') / 'sequences.fa').unlink()
    (root / 'usr/bin/makeblastdb').unlink()


def write_disk(root: pathlib.Path, disk: pathlib.Path) -> None:
    """An ext4 disk that is no larger than it has to be."""
    size = sum(path.lstat().st_size + 4096 for path in root.rglob('*')
               if not stat.S_ISDIR(path.lstat().st_mode))
    part = disk.with_suffix('.part')
    with open(part, 'wb') as out:
        out.truncate((int(size * 1.1) // MIB + 32) * MIB)
    _run(['mkfs.ext4', '-q', '-F', '-O', '^has_journal', '-d', str(root), str(part)])
    part.rename(disk)


def write_work_disk(path: pathlib.Path) -> None:
    """An empty ext4 disk for what a guest's applications write."""
    image.written_file(path, WORK_BYTES)
    _run(['mkfs.ext4', '-q', '-F', '-E', 'lazy_itable_init=0,lazy_journal_init=0,nodiscard',
          str(path)])


def _made(folder: pathlib.Path) -> pathlib.Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              stdin=subprocess.DEVNULL)
    except FileNotFoundError:
        raise errors.TestbedError('%s is not installed; the applications\' disk is built with '
                                  'it' % command[0]) from None
    if done.returncode:
        raise errors.TestbedError('%s failed: %s' % (
            ' '.join(command[:2]), done.stderr.strip()[-400:] or done.returncode))
    return done.stdout
