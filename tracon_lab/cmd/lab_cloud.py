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

"""``tracon lab measure --cloud``: puts a measurement in a cloud together."""

from __future__ import annotations

import argparse
import datetime
import shlex
import sys
from typing import Any, Callable

from tracon_watcher.cmd import probe
from tracon_watcher import errors as common
from tracon_watcher import numerals

# Of tracon_lab.profiling.plan, which takes a second to import.
_DEFAULT_POINTS = 50


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that belong to ``--cloud``."""
    add = parser.add_argument_group(
        'in a cloud', 'With --cloud, hosts of an OpenStack are measured with VMs that are booted '
                      'and deleted through its APIs alone. --output is a folder then, with a file '
                      'for each host type; --limit-minutes holds for each host.').add_argument
    add('--cloud', action='store_true', help='measure empty hosts of a cloud')
    add('--host', action='append', default=[], metavar='NAME[=TYPE]',
        help='empty compute host, with its type by default from the metadata tracon:host_type of '
             'its aggregate; may be repeated (default: an empty host of each type)')
    add('--points', type=numerals.whole(1), default=_DEFAULT_POINTS, metavar='N',
        help='number of pairs of programs to measure, up to 150; 25 have each setting of the '
             'generator once (default: %(default)s)')
    add('--os-cloud', metavar='NAME',
        help='cloud in clouds.yaml, of an administrator (default: OS_CLOUD, or the variables '
             'OS_*)')
    add('--config-file', action='append', default=[], metavar='FILE',
        help='configuration file of the engine, of which [engine] telemetry, [gnocchi] and '
             '[prometheus] are read (default: the engine\'s own)')
    add('--polling-interval', type=numerals.number(1, 86400), metavar='SECONDS',
        help='time between two polls of Ceilometer (default: [engine] polling_interval_seconds)')
    add('--window-polls', type=numerals.whole(3), default=4, metavar='N',
        help='polling intervals of a window, 3 or more: two polls in it, and the time that '
             'programs need to settle (default: %(default)s)')
    add('--flavor', metavar='NAME',
        help='flavor of the VMs (default: a temporary one with one virtual CPU)')
    add('--memory-mib', type=numerals.whole(1), default=512, metavar='N',
        help='memory of the temporary flavor (default: %(default)s)')
    add('--disk-gib', type=numerals.whole(1), default=2, metavar='N',
        help='disk of the temporary flavor, which is written once before the measurements; choose '
             'more than the storage caches of a VM (default: %(default)s)')


def measure(parsed_args: argparse.Namespace, report: Callable[[str], None]) -> bool:
    """Measure what was asked for; say whether nothing is missing."""
    from tracon_lab.profiling import hosts
    from tracon_lab.profiling import site
    from tracon_lab.testbed import image
    from tracon_watcher.cmd import services
    from tracon_watcher.probe import images

    _check(parsed_args)
    conf = services.telemetry_configuration(parsed_args.config_file)
    if parsed_args.polling_interval is not None:
        conf.set_override('polling_interval_seconds', parsed_args.polling_interval, 'engine')
    connection = probe.connect(parsed_args.os_cloud)
    built = image.build((parsed_args.cache or images.default_cache()).absolute())
    size = site.Size(parsed_args.memory_mib, parsed_args.disk_gib, parsed_args.flavor)
    found = hosts.chosen(_inventory(connection), parsed_args.host, connection.current_project_id,
                         conf.engine.default_host_type)
    parsed_args.output.mkdir(parents=True, exist_ok=True)
    finished = True
    for host, kind in found:
        report(f'host {host}, type {kind}')
        with site.Site(connection, host, size, built) as made:
            left = made.remove()
            if left:
                report('%d things are removed that an earlier measurement has left' % left)
            finished &= _measure_one(parsed_args, report, conf, connection, made, kind)
    return finished


def _inventory(connection: Any) -> Any:
    from tracon_lab.profiling import errors
    from tracon_watcher.inventory import cloud
    from tracon_watcher.inventory import listing
    try:
        return cloud.collect(connection).judged()
    except listing.CloudUnavailable as error:
        raise errors.ProfilingError(f'{error}. Here that is the user of --os-cloud or OS_*, who '
                                    f'has to be an administrator') from None


def _measure_one(parsed_args: argparse.Namespace, report: Callable[[str], None], conf: Any,
                 connection: Any, made: Any, kind: str) -> bool:
    from tracon_lab.models import dataset
    from tracon_lab.profiling import plan
    from tracon_lab.profiling import record
    from tracon_lab.profiling import run
    from tracon_lab.profiling import sampling
    from tracon_lab.profiling import schedule
    from tracon_watcher.cmd import services

    timing = schedule.Timing(conf.engine.polling_interval_seconds, parsed_args.window_polls)
    reader = services.telemetry_reader(conf, connection)
    # Gnocchi's samples have the begin of the bucket they are in; those of Prometheus are what an
    # exporter had from its last poll.
    sampler = (sampling.Sampler(reader, timing.polling) if conf.engine.telemetry == 'gnocchi' else
               sampling.Sampler(reader, timing.polling, timing.polling, 0.0))
    journal = record.Journal(parsed_args.output / f'{kind}.csv', timing.length - timing.settle)
    worker = run.Run(made, sampler, journal, timing, report)
    speed = journal.speed
    if speed is None:
        report('%d points take about %s; first one VM is booted, to find out how fast it is' % (
            parsed_args.points, run.duration(plan.windows(parsed_args.points) * timing.length)))
        speed = worker.calibrate()
        report('a VM alone does %.0f reads or %.0f writes a second' % (speed.reads, speed.writes))
    speed = journal.begin({
        'schema': dataset.SCHEMA, 'host_type': kind, 'seed': '1', 'plan': 'cloud',
        'accelerator': 'as the cloud has it', 'emulated': 'no',
        'guests': '2, booted by Nova with 1 vCPU, or flavor %s' % parsed_args.flavor
                  if parsed_args.flavor else '2, booted by Nova, each 1 vCPU and %d MiB'
                  % parsed_args.memory_mib,
        'telemetry': conf.engine.telemetry,
        'polling_interval_seconds': '%g' % timing.polling,
        'window_seconds': '%g' % timing.length,
        'date': datetime.datetime.now(datetime.UTC).date().isoformat(),
        'generator_period_seconds': '0.02',
        'command': 'tracon ' + shlex.join(sys.argv[1:]).replace(
            str(parsed_args.output), parsed_args.output.name)}, speed)
    limit = parsed_args.limit_minutes
    return worker.work(speed, parsed_args.points, None if limit is None else limit * 60)


def _check(parsed_args: argparse.Namespace) -> None:
    from tracon_lab.profiling import plan
    if parsed_args.points > plan.MOST_POINTS:
        raise common.InvalidOption('--points', parsed_args.points,
                                   f'expected {plan.MOST_POINTS} at most')
