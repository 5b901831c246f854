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

"""Adds our meters to the files of a Ceilometer that is there already.

Usage: merge_ceilometer.py FROM TO, the folders of our files and of ceilometer.conf. What is in
Ceilometer's files stays, but for its comments; what takes all meters does not take ours as well.
Doing it twice changes nothing.
"""

import pathlib
import shutil
import sys

import yaml

OURS = 'tracon'
EVERYTHING, EXCEPT_OURS = '*', '!tracon.*'
DEFINITIONS = 'tracon_gnocchi_resources.yaml'


def merged(theirs, ours):
    """Return the content of polling.yaml or pipeline.yaml with our sources and sinks."""
    result = dict(theirs)
    for kind in ('sources', 'sinks'):
        own = [one for one in ours.get(kind, ()) if one['name'].startswith(OURS)]
        others = [one for one in theirs.get(kind, ()) if not one['name'].startswith(OURS)]
        if own or others:
            result[kind] = [_narrowed(one) for one in others] + own
    return result


def _narrowed(source):
    meters = source.get('meters', ())
    if EVERYTHING not in meters or EXCEPT_OURS in meters:
        return source
    return {**source, 'meters': [*meters, EXCEPT_OURS]}


def main(ours, theirs):
    """Merge what is there: not every host runs both agents."""
    for name in ('polling.yaml', 'pipeline.yaml'):
        path = theirs / name
        if path.exists():
            content = merged(yaml.safe_load(path.read_text()),
                             yaml.safe_load((ours / name).read_text()))
            path.write_text(yaml.safe_dump(content, sort_keys=False))
    shutil.copy(ours / DEFINITIONS, theirs / DEFINITIONS)


if __name__ == '__main__':
    main(*map(pathlib.Path, sys.argv[1:]))
