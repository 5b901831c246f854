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

"""``python -m tests.soak``: a week of a cloud in an hour; see doc/source/admin/soak.rst."""

from __future__ import annotations

import argparse
import gzip
import json
import pathlib
import signal
import sys
from typing import Any

from tests.functional import databases
from tests.functional import messaging
from tests.soak import cloud as clouds
from tests.soak import report
from tests.soak import run
from tests.soak import world as worlds
from tracon_watcher import progress


def main(arguments: list[str] | None = None) -> int:
    """Run the soak; return the exit code."""
    parser = argparse.ArgumentParser(
        prog='python -m tests.soak',
        description='Run a week of a cloud in an hour: real engines, RabbitMQ with quorum queues, '
                    'MariaDB or PostgreSQL, workers of nova-scheduler and audits beside a '
                    'synthetic compute side. Needs RabbitMQ and the database server on this '
                    'machine.')
    default = run.Plan()
    for name, kind, text in (
            ('hosts', int, 'synthetic compute hosts'), ('vms', int, 'small VMs for each host'),
            ('hours', float, 'of simulated time'),
            ('warm-up', float, 'hours of simulated time before these'),
            ('creations', float, 'of VMs an hour of simulated time, and as many deletions'),
            ('minutes', float, 'that the hours are to take'),
            ('candidates', int, 'hosts that Placement offers for a request'),
            ('polling', float, 'seconds between two polls of agents'),
            ('audit', float, 'seconds between two audits')):
        parser.add_argument(f'--{name}', type=kind, metavar='N',
                            default=getattr(default, name.replace('-', '_')),
                            help=f'{text} (default: %(default)s)')
    parser.add_argument('--database', choices=clouds.DATABASES, default=default.database,
                        help='server (default: %(default)s)')
    parser.add_argument('--output', type=pathlib.Path, metavar='FILE',
                        help='write the record there, as JSON')
    parser.add_argument('--plot', type=pathlib.Path, metavar='FILE', help='draw it there')
    parser.add_argument('--logs', type=pathlib.Path, metavar='FOLDER',
                        help='a new folder for configurations and logs, which are kept')
    parser.add_argument('--from', type=pathlib.Path, dest='recorded', metavar='FILE',
                        help='run nothing: show and draw a record, which may be gzipped')
    given = parser.parse_args(arguments)
    # Who is started in the background is deaf to the first; both end with what there is.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    if given.recorded is None:
        missing = messaging.missing() or databases.missing(clouds.DATABASES[given.database])
        if missing:
            print(f'The soak cannot run here: {missing}', file=sys.stderr)
            return 2
        record = soak(run.Plan(
            hosts=given.hosts, vms=given.vms, hours=given.hours, warm_up=given.warm_up,
            creations=given.creations, minutes=given.minutes, candidates=given.candidates,
            polling=given.polling, audit=given.audit, database=given.database), given.logs)
    else:
        content = given.recorded.read_bytes()
        if given.recorded.suffix == '.gz':
            content = gzip.decompress(content)
        record = json.loads(content)
    if given.output is not None:
        given.output.write_text(json.dumps(record, indent=1) + '\n')
    print(report.text(record))
    if given.plot is not None:
        report.plot(record, given.plot)
    return 1 if record['wrong'] else 0


def soak(plan: run.Plan, logs: pathlib.Path | None = None) -> dict[str, Any]:
    """Run it and return the record.

    :param logs: folder for configurations and logs; None: they are not kept
    """
    shown = progress.Progress(1.0)
    world = worlds.World(plan.hosts, plan.vms)
    with clouds.Cloud(world, plan.polling, plan.candidates, logs, plan.database) as cloud:
        ours = run.Soak(plan, cloud, shown.say)
        ours.prepare()
        ours.run(lambda share: shown.report('soak', share))
        return report.record(ours, cloud)


if __name__ == '__main__':
    sys.exit(main())
