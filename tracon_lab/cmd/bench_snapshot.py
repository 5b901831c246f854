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

"""``tracon bench snapshot``: what it costs to publish the state of a cloud, and to take it up."""

from __future__ import annotations

import argparse
import dataclasses
import gc
import json
import statistics
import time
import tracemalloc
from typing import Any, Callable, Iterator

from cliff import lister
import numpy as np

from tracon_lab.cmd import arguments as common
from tracon_watcher import errors
from tracon_watcher import numerals
from tracon_watcher.placement import assessment
from tracon_watcher.placement import delta
from tracon_watcher.placement import snapshot

_COLUMNS = ('what', 'seconds', 'peak MiB', 'bytes', 'messages', 'compared with',
            'reference seconds', 'reference bytes')
_MEBIBYTE = 2 ** 20


class Snapshot(lister.Lister):
    """Time snapshots and deltas of a synthetic cloud, beside plain JSON and whole snapshots.

    Seconds are of CPU, and the median of the rounds. The peak is the largest additional allocation
    of Python and numpy, in a round of its own. Bytes are compressed, and messages are those that
    carry them. Needs oslo.messaging.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        common.add_cloud_size(parser)
        parser.add_argument('--changed', type=numerals.number(0, 1), default=0.01, metavar='SHARE',
                            help='share of hosts that change in a delta (default: %(default)s)')
        parser.add_argument('--rounds', type=numerals.whole(1), default=3, metavar='N',
                            help='number of rounds, whose median is shown (default: %(default)s)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        return _COLUMNS, list(_measure(parsed_args))


@dataclasses.dataclass(frozen=True)
class _Cost:
    """What a piece of work has taken, and what came out."""

    seconds: float
    peak: float
    result: Any


def _measure(arguments: argparse.Namespace) -> Iterator[tuple[Any, ...]]:
    from tracon_lab.cmd import bench_cluster
    from tracon_watcher.messaging import chunked_payload

    def cost(work: Callable[[], Any]) -> _Cost:
        return _cost(work, arguments.rounds)

    def unpacked(made: Any) -> Iterator[str]:
        return chunked_payload.lines(made.label, made.data, 'it')

    cluster = bench_cluster.build(arguments.hosts, arguments.vms_per_host, 0.1)
    content = snapshot.Snapshot(cluster, 900.0, 1)
    objects = [json.loads(line) for line in snapshot.lines(content)]
    dumped = cost(lambda: chunked_payload.ChunkedPayload([json.dumps(objects) + '\n']))
    loaded = cost(lambda: json.loads(next(unpacked(dumped.result))))
    whole = cost(lambda: chunked_payload.ChunkedPayload(snapshot.lines(content)))
    read = cost(lambda: snapshot.decode(unpacked(whole.result), 'it'))
    base = read.result
    yield _row('whole: encode and compress', whole, 'json.dumps, compressed', dumped, True)
    yield _row('whole: decompress and decode', read, 'json.loads', loaded)
    ready = cost(lambda: _prepared(base))
    yield _row('prepare for requests', ready)
    for name, share in ((f'delta of {arguments.changed:.3g} of the hosts', arguments.changed),
                        ('delta of all hosts', 1.0)):
        new = _changed(base, share)
        _ = new.cluster.first
        made = cost(lambda new=new: chunked_payload.ChunkedPayload(delta.encode(base, new)))
        applied = cost(lambda made=made: delta.apply(base, unpacked(made.result), 'it'))
        if not np.array_equal(applied.result.cluster.profiles, new.cluster.profiles):
            raise errors.TraconError('a delta has led elsewhere: report this as a bug')
        yield _row(f'{name}: encode and compress', made, 'whole', whole, True)
        yield _row(f'{name}: decompress and apply', applied, 'whole', read)


def _changed(base: snapshot.Snapshot, share: float) -> snapshot.Snapshot:
    """Return the next snapshot: all hosts refreshed, and a share of them with other demand."""
    cluster = base.cluster
    hosts = np.linspace(0, 1, len(cluster.hosts), endpoint=False) < share
    profiles = np.where(hosts[cluster.host, None], cluster.profiles * 0.9, cluster.profiles)
    return dataclasses.replace(base, cluster=dataclasses.replace(
        cluster, profiles=profiles, version=base.version + 1,
        updated_at=cluster.updated_at + 60.0))


def _prepared(content: snapshot.Snapshot) -> assessment.Assessor:
    # Without what was made lazily before, as it comes out of a delta.
    fresh = dataclasses.replace(content.cluster)
    _ = (fresh.host_index, fresh.resident_index, fresh.request_rate)
    return assessment.Assessor(fresh)


def _cost(work: Callable[[], Any], rounds: int) -> _Cost:
    times = []
    for _round in range(rounds):
        gc.collect()
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    tracemalloc.start()
    result = work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return _Cost(statistics.median(times), peak / _MEBIBYTE, result)


def _row(what: str, cost: _Cost, compared: str | None = None, reference: _Cost | None = None,
         sent: bool = False) -> tuple[Any, ...]:
    label = cost.result.label if sent else None
    return (what, round(cost.seconds, 4), round(cost.peak, 1),
            label.packed if label is not None else None,
            label.chunks if label is not None else None, compared,
            round(reference.seconds, 4) if reference is not None else None,
            reference.result.label.packed if sent and reference is not None else None)
