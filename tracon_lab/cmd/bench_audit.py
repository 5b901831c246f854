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

"""``tracon bench audit``: what an audit of a large cloud costs, beside Watcher's own strategy."""

from __future__ import annotations

import argparse
import logging
import os
import pathlib
import statistics
import tempfile
from typing import Any
import warnings

from cliff import lister

from tracon_lab.cmd import bench_child
from tracon_watcher import numerals
from tracon_watcher import progress

_COLUMNS = ('what', 'seconds', 'MiB', 'requests', 'migrations')
#: Of the work to be shown: an audit of ours against Watcher's.
_SHARE = 0.2


class Audit(lister.Lister):
    """Time an audit of a synthetic cloud by this strategy, and by Watcher's own consolidation.

    Both run as in Watcher's decision engine, one after the other, on the same model of the
    cluster, each in a process of its own. The answers of Nova, Placement, Neutron and Gnocchi come
    from memory, and are counted, without delay unless --request-ms sets one. Memory is what an
    audit needs beyond Watcher's model. Needs Watcher (the extra "watcher").
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add = parser.add_argument
        add('--hosts', type=numerals.whole(2), default=113, metavar='N',
            help='number of hosts (default: %(default)s)')
        add('--vms', type=numerals.whole(2), default=15769, metavar='N',
            help='number of VMs (default: %(default)s)')
        add('--migrations', type=numerals.whole(1), default=5, metavar='N',
            help='largest number of migrations in our plan (default: %(default)s)')
        add('--rounds', type=numerals.whole(1), default=3, metavar='N',
            help='number of our audits, whose median is shown (default: %(default)s)')
        add('--reference-limit', type=numerals.number(0, 86400), default=900.0, metavar='SECONDS',
            help='time after which Watcher\'s own strategy is ended; 0: leave it out (default: '
                 '%(default)s)')
        add('--request-ms', type=numerals.number(0, 60000), default=0.0, metavar='MS',
            help='delay of each request to a service (default: %(default)s)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        os.environ.setdefault('OMP_NUM_THREADS', '1')
        with tempfile.TemporaryDirectory(prefix='tracon-bench-') as directory, \
                warnings.catch_warnings():
            rows = measure(parsed_args, pathlib.Path(directory),
                           progress.Progress(1.0, self.app.stderr))
        return _COLUMNS, numerals.rows(rows, parsed_args)


def measure(arguments: argparse.Namespace, directory: pathlib.Path,
            shown: progress.Progress) -> list[tuple[Any, ...]]:
    """Return the rows of the table."""
    # As Watcher's services do before all else. It is heavy, and only this command needs it here.
    from oslo_service import backend
    backend.register_backend_default_hook(lambda: backend.BackendType.THREADING)
    from tracon_lab.cmd import bench_audit_arms
    from tracon_lab.cmd import bench_audit_cloud
    from tracon_watcher.placement import snapshot

    _log_as_a_service()
    # Watcher has every warning shown, those of its libraries as well.
    warnings.simplefilter('ignore', DeprecationWarning)
    shown.say(f'A synthetic cloud of {arguments.hosts} hosts and {arguments.vms} VMs, and '
              "Watcher's model of it")
    cloud = bench_audit_cloud.build(arguments.hosts, arguments.vms)
    model = bench_audit_arms.watcher_model(cloud)
    path = directory / 'snapshot.jsonl'
    snapshot.write(path, cloud.state)
    wait = arguments.request_ms / 1000
    share = _SHARE if arguments.reference_limit else 1.0
    audit = bench_audit_arms.ours(cloud, model, str(path), arguments.migrations, wait)
    found = []
    for number in range(arguments.rounds):
        done = bench_child.run(audit, lambda part, number=number: shown.report(
            f'our audit {number + 1}', part, share / arguments.rounds))
        assert done is not None
        found.append(done)
    typical = sorted(found, key=lambda one: one['seconds'])[(len(found) - 1) // 2]
    rows: list[tuple[Any, ...]] = [
        ('this strategy, all of it', typical['seconds'],
         statistics.median(one['mebibytes'] for one in found), typical['requests'],
         typical['migrations'])]
    rows += [(f'of this, {what}', seconds, None, None, None)
             for what, seconds in typical['parts'].items()]
    if arguments.reference_limit:
        limit = arguments.reference_limit
        done = bench_child.run(
            bench_audit_arms.reference(cloud, model, wait),
            lambda part: shown.report("Watcher's", part, 1 - share), limit)
        name = "Watcher's vm_workload_consolidation"
        rows.append((name, f'>= {limit:g}', None, None, None) if done is None else (
            name, done['seconds'], done['mebibytes'], done['requests'], done['migrations']))
    return rows


def _log_as_a_service() -> None:
    """Have log records made as without debug, and written nowhere."""
    for name in ('watcher', 'tracon_watcher'):
        log = logging.getLogger(name)
        log.setLevel(logging.INFO)
        log.propagate = False
        log.addHandler(logging.NullHandler())
