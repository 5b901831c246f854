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

"""The eight applications of TRACON's Table 3, as Debian has programs of their kind.

A unit of work is one whole run on one of a few inputs that differ in nothing but
chance; `guest/applications/NAME/run` is what runs, `application_inputs` makes the
inputs, `application_image` the disk that both lie on.
"""

import dataclasses

#: Inputs of each application; a guest goes through them in turn.
SHARDS = 8


@dataclasses.dataclass(frozen=True)
class Application:
    """One application.

    :param rank: of its I/O intensity among the eight in TRACON's Table 3
    :param packages: Debian's, without those they depend on
    :param programs: patterns of executables below the root; they are copied with the
        libraries they need
    :param trees: patterns of files and folders that are copied whole
    """

    name: str
    rank: int
    what: str
    packages: tuple[str, ...]
    programs: tuple[str, ...]
    trees: tuple[str, ...] = ()


CATALOGUE = {one.name: one for one in (
    Application('email', 1, 'small files delivered, read, deleted', ('postmark',),
                ('usr/bin/postmark',)),
    Application('web', 2, 'a web server and its clients', ('nginx-light', 'nghttp2-client'),
                ('usr/sbin/nginx', 'usr/bin/h2load')),
    Application('blastp', 3, 'protein sequences searched', ('ncbi-blast+',),
                ('usr/bin/blastp', 'usr/bin/makeblastdb')),
    Application('compile', 4, 'a C source compiled', ('gcc', 'libc6-dev', 'libstb-dev'),
                ('usr/bin/gcc', 'usr/bin/as', 'usr/lib*/gcc/*/*/cc1'),
                ('usr/include', 'usr/lib/gcc/*/*/include')),
    Application('freqmine', 5, 'frequent sets of items mined', ('sqlite3',),
                ('usr/bin/sqlite3',)),
    Application('blastn', 6, 'nucleotide sequences searched', ('ncbi-blast+',),
                ('usr/bin/blastn', 'usr/bin/makeblastdb')),
    Application('dedup', 7, 'equal files found', ('jdupes',), ('usr/bin/jdupes',)),
    Application('video', 8, 'raw frames encoded', ('x264',), ('usr/bin/x264',)),
)}
#: In the order of Table 3.
NAMES = tuple(CATALOGUE)
