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

"""The snapshot: one text with all that a scheduler or a strategy must know to judge.

It consists of JSON lines (:mod:`tracon_watcher.placement.snapshot_lines`), whether it is a file or
comes from the engine:

* the first line is the header: schema, epoch and version, time, and what the law of queueing has
  learnt of host types and of pools;
* then a line for each host with its residents, and one for each kind of newcomer;
* the last line seals them.

A snapshot is told from others by its epoch and version. The epoch rises each time another engine
takes the lead, the version with each publication; a file that was written by hand has epoch 0.
"""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Iterable, Iterator, Mapping

from tracon_watcher import document
from tracon_watcher import errors
from tracon_watcher import files
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import queues
from tracon_watcher.placement import snapshot_lines

SCHEMA = 'tracon-snapshot/2'
_REWRITE = 'write the snapshot again'


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """A cluster, and what to judge it by.

    :param maximum_age_seconds: after which a host's data is stale, thus unknown
    :param epoch: of the engine that published it, 0 for a file
    :param learnt: by host type, what the law of queueing has learnt of it
    :param pools: by name, what is known of storage backends that hosts share
    """

    cluster: cluster_module.ClusterState
    maximum_age_seconds: float
    epoch: int = 0
    learnt: Mapping[str, queues.LearnedParameters] = dataclasses.field(default_factory=dict)
    pools: Mapping[str, queues.Pool] = dataclasses.field(default_factory=dict)

    @property
    def version(self) -> int:
        """Rises with every snapshot of an epoch."""
        return self.cluster.version

    @property
    def identity(self) -> tuple[int, int]:
        """Epoch and version: of two snapshots the one with the greater is the newer."""
        return self.epoch, self.version

    def settings(self, **others: float) -> assessment.Settings:
        """Return how hosts are to be judged.

        :param others: settings that the snapshot says nothing of, and ``maximum_age`` where
            another one is wanted than the snapshot's
        """
        return assessment.Settings(**{
            'maximum_age': self.maximum_age_seconds, **others,
            'learnt': self.learnt, 'pools': self.pools})  # type: ignore[arg-type]


def lines(content: Snapshot) -> Iterator[str]:
    """Yield the lines of a snapshot, each with its line feed."""
    return snapshot_lines.sealed(_contents(content))


def decode(lines: Iterable[str], source: str) -> Snapshot:
    """Build a snapshot from its lines.

    :param source: the file's name, for the errors
    :raises tracon_watcher.errors.InvalidDocument: naming file, line, field and value
    """
    with snapshot_lines.bounded(source):
        reader = _Reader(source)
        for fields in snapshot_lines.unsealed(lines, source, _REWRITE):
            reader.take(fields)
        return reader.finish()


def write(path: str | os.PathLike[str], cluster: cluster_module.ClusterState,
          maximum_age_seconds: float = 900.0,
          pools: Mapping[str, queues.Pool] | None = None) -> None:
    """Write a snapshot file atomically: a reader sees the old one or the new one, whole.

    :raises tracon_watcher.errors.InvalidDocument: where it cannot be written
    """
    with files.replaced(path) as stream:
        stream.writelines(lines(Snapshot(cluster, maximum_age_seconds, pools=pools or {})))


def read(path: str | os.PathLike[str]) -> Snapshot:
    """Read a snapshot file.

    :raises tracon_watcher.errors.InvalidDocument: naming file, line, field and value
    """
    source = os.fspath(path)
    with files.readable(path, _REWRITE), open(source, encoding='utf-8-sig') as stream:
        return decode(stream, source)


def _contents(content: Snapshot) -> Iterator[dict[str, Any]]:
    cluster = content.cluster
    header = {'schema': SCHEMA, 'version': cluster.version, 'generated_at': cluster.generated_at,
              'maximum_age_seconds': content.maximum_age_seconds}
    if content.epoch:
        header['epoch'] = content.epoch
    if content.learnt:
        header['learnt'] = snapshot_lines.of_learnt(content.learnt)
    if content.pools:
        header['pools'] = snapshot_lines.of_learnt(content.pools)
    yield header
    for index in range(len(cluster.hosts)):
        yield snapshot_lines.of_host(cluster, index)
    for key, profile in cluster.history.items():
        yield snapshot_lines.of_history(key, profile)


class _Reader:
    """Takes the objects of the lines one by one."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._header: document.Fields | None = None
        self._epoch = self._version = 0
        self._learnt: dict[str, queues.LearnedParameters] = {}
        self._pools: dict[str, queues.Pool] = {}
        self._columns = snapshot_lines.Columns()
        self._history: dict[str, newcomer_profiles.Profile] = {}

    def take(self, fields: document.Fields) -> None:
        if self._header is None:
            self._start(fields)
        elif fields.has('host'):
            self._columns.add(fields)
        elif fields.has('history'):
            key, profile = snapshot_lines.history(fields)
            self._history[key] = profile

    def finish(self) -> Snapshot:
        header = self._header
        if header is None:
            raise errors.InvalidDocument(self._source, 'the first line', None,
                                         f'the header is missing; {_REWRITE}')
        try:
            cluster = self._columns.state(self._history, self._version,
                                          header.number('generated_at', 0))
            cluster_module.check_names(cluster)
            if not self._epoch:
                # Written by hand. Of an engine's, Nova has both.
                cluster_module.check_case(cluster.hosts)
        except ValueError as error:
            raise errors.InvalidDocument(self._source, 'hosts', str(error), _REWRITE) from None
        return Snapshot(cluster, header.number('maximum_age_seconds', 1), self._epoch,
                        self._learnt, self._pools)

    def _start(self, fields: document.Fields) -> None:
        # Fields and kinds of lines that a later release has added are passed over; it changes the
        # schema's number where they matter to those who do not know them.
        fields.string('schema', (SCHEMA,))
        self._version = snapshot_lines.whole(fields, 'version')
        self._epoch = snapshot_lines.whole(fields, 'epoch') if fields.has('epoch') else 0
        fields.number('generated_at', 0)
        fields.number('maximum_age_seconds', 1)
        self._learnt = snapshot_lines.learnt(fields)
        self._pools = snapshot_lines.pools(fields)
        self._header = fields
