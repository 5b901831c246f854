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

"""What the applications work on: made here, equal in kind and size from shard to shard.

The same seed makes the same files. Random sequences, baskets and pictures stand for
real ones; how much there is to read, write and compute is what matters here.
"""

import pathlib
import typing

import numpy as np

from tracon_lab.testbed import applications

NUCLEOTIDES, AMINO_ACIDS = 'ACGT', 'ACDEFGHIKLMNPQRSTVWY'
FRAME = (288, 352)
Rng = np.random.Generator


def write(root: pathlib.Path, seed: int = 1) -> None:
    """Write srv/NAME/SHARD of every application below `root`."""
    for name, maker in MAKERS.items():
        for shard in range(applications.SHARDS):
            folder = root / 'srv' / name / str(shard)
            folder.mkdir(parents=True)
            maker(folder, np.random.default_rng((seed, applications.NAMES.index(name), shard)))


def _sequences(folder: pathlib.Path, rng: Rng, letters: str, count: int, length: int,
               queries: int, query: int) -> None:
    """Sequences to search, and pieces of some of them to search for."""
    alphabet = np.frombuffer(letters.encode(), 'u1')
    drawn = alphabet[rng.integers(0, len(alphabet), (count, length))]
    _fasta(folder / 'sequences.fa', drawn)
    _fasta(folder / 'queries.fa', drawn[rng.choice(count, queries, replace=False), :query])


def _fasta(path: pathlib.Path, sequences: np.ndarray) -> None:
    with open(path, 'wb') as out:
        for number, sequence in enumerate(sequences):
            out.write(b'>s%d\n%s\n' % (number, sequence.tobytes()))


def _blastn(folder: pathlib.Path, rng: Rng) -> None:
    _sequences(folder, rng, NUCLEOTIDES, 400, 100_000, 1, 300)


def _blastp(folder: pathlib.Path, rng: Rng) -> None:
    _sequences(folder, rng, AMINO_ACIDS, 300, 400, 1, 60)


def _compile(folder: pathlib.Path, rng: Rng) -> None:
    """One of the libraries that consist of a single header."""
    library = (folder.parents[2] / 'usr/include/stb/stb_perlin.h').read_text()
    (folder / 'library.h').write_text(library)
    (folder / 'unit.c').write_text('#define STB_PERLIN_IMPLEMENTATION\n#include "library.h"\n'
                                   'int number = %d;\n' % rng.integers(1 << 30))


def _dedup(folder: pathlib.Path, rng: Rng) -> None:
    """Files of one size, every other one of which occurs twice."""
    for number in range(6):
        content = rng.bytes(2 << 20)
        (folder / ('file%d' % number)).write_bytes(content)
        if number % 2:
            (folder / ('copy%d' % number)).write_bytes(content)


def _email(folder: pathlib.Path, rng: Rng) -> None:
    (folder / 'transactions').write_text(
        'set location /work\nset size 500 10000\nset number 60\nset transactions 60\n'
        'set seed %d\nrun\nquit\n' % rng.integers(1 << 30))


def _freqmine(folder: pathlib.Path, rng: Rng) -> None:
    """Baskets of items of which few are bought often."""
    share = 1 / np.arange(1, 301) ** 0.9
    share /= share.sum()
    with open(folder / 'baskets.csv', 'w') as out:
        out.write('number,item\n')
        for number in range(700):
            for item in np.unique(rng.choice(len(share), 8, p=share)):
                out.write('%d,%d\n' % (number, item))


def _video(folder: pathlib.Path, rng: Rng) -> None:
    """A picture that stands still but for a square that moves, in planes of 4:2:0."""
    y, x = np.mgrid[:FRAME[0], :FRAME[1]]
    still = (128 + 60 * np.sin(x / 17) + 50 * np.cos(y / 11)).clip(0, 255).astype('u1')
    top, left = rng.integers(0, 200, 2)
    with open(folder / 'frames.yuv', 'wb') as out:
        for step in range(80):
            luma = still.copy()
            luma[top:top + 32, left + step:left + step + 32] = 255
            out.write(luma.tobytes() + bytes([128]) * (FRAME[0] * FRAME[1] // 2))


def _web(folder: pathlib.Path, rng: Rng) -> None:
    """Files of 4 to 32 KiB, and the list of those to fetch."""
    with open(folder / 'urls', 'w') as urls:
        for number in range(64):
            (folder / str(number)).write_bytes(rng.bytes(4096 * (1 + number % 8)))
            urls.write('http://127.0.0.1:8080/%s/%d\n' % (folder.name, number))


MAKERS: dict[str, typing.Callable[[pathlib.Path, Rng], None]] = {
    'blastn': _blastn, 'blastp': _blastp, 'compile': _compile, 'dedup': _dedup,
    'email': _email, 'freqmine': _freqmine, 'video': _video, 'web': _web}
