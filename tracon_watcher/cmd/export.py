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

"""``tracon export``: how much CPU the VMs of a cloud used, for simulations."""

from __future__ import annotations

import argparse
import collections
import contextlib
import csv
import dataclasses
import datetime
import lzma
import pathlib
import time
from typing import Any, Callable

from cliff import command
import numpy as np

from tracon_watcher.characteristics import FloatArray
from tracon_watcher.cmd import probe
from tracon_watcher import errors
from tracon_watcher import numerals
from tracon_watcher.telemetry import samples

#: Seconds of an interval, and intervals of a day.
SECONDS, STEPS = 300.0, 288
#: Columns of a line before its intervals.
NAMES = ('vm', 'begins', 'project', 'vcpus')
#: Intervals that are read at a time: Prometheus has a sample for each scrape.
_AT_ONCE = 36
#: Seconds between two samples from which on it is not known what a VM did.
_GAP = 3 * SECONDS
#: Seconds that the telemetry service may take for one reading.
_PATIENCE = 3600.0


class Export(command.Command):
    """Write how much CPU each VM of a cloud used, for ``tracon simulate cloud --vms``.

    VMs that were deleted meanwhile are included. The file has a line for each VM and day: its
    uuid, when the day begins, its project, its vCPUs, and the CPU use of all its vCPUs in per cent
    for every five minutes; cells are empty where it did not run. Days end now. Nothing of this
    product needs to be installed in the cloud: Ceilometer's own meter "cpu" will do.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        add = parser.add_argument
        add('file', type=pathlib.Path, metavar='FILE',
            help='CSV file to write; .csv.xz compresses it')
        add('--days', type=numerals.whole(1, 365), default=1, metavar='N',
            help='days of 24 hours up to now (default: %(default)s)')
        add('--meter', default='cpu',
            help='cumulative meter of CPU time in ns (default: %(default)s)')
        add('--granularity', type=numerals.number(1, SECONDS), default=SECONDS, metavar='SECONDS',
            help='of the meter\'s archive policy in Gnocchi (default: %(default)g)')
        add('--aggregation', default='mean',
            help='of the meter\'s archive policy in Gnocchi (default: %(default)s)')
        add('--os-cloud', metavar='NAME',
            help='cloud in clouds.yaml, of an administrator (default: OS_CLOUD, or the variables '
                 'OS_*)')
        add('--config-file', action='append', default=[], metavar='FILE',
            help='configuration file of the engine, of which [engine] telemetry, [gnocchi] and '
                 '[prometheus] are read (default: the engine\'s own; without one Gnocchi is read)')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        from tracon_watcher.cmd import services
        from tracon_watcher.inventory import listing
        from tracon_watcher import progress
        from tracon_watcher.telemetry import gnocchi
        from tracon_watcher.telemetry import meters
        conf = services.telemetry_configuration(parsed_args.config_file)
        sdk = probe.connect(parsed_args.os_cloud)
        reader: Any = services.telemetry_reader(conf, sdk)
        # What was polled last may not be stored yet.
        end = time.time() // SECONDS * SECONDS - _GAP
        days = [end - 86400.0 * count for count in range(parsed_args.days, 0, -1)]
        given: dict[str, Any] = {'seconds': _PATIENCE}
        if isinstance(reader, gnocchi.GnocchiReader):
            given |= {name: getattr(parsed_args, name) for name in ('granularity', 'aggregation')}
            reader.lists[meters.VM].ended_since = days[0]
        reader.settings = dataclasses.replace(reader.settings, **given)
        servers = _servers(listing.Service('Nova', sdk.compute, listing.MICROVERSION), days[0])
        path, lines, strange = parsed_args.file, 0, set[str]()
        shown = progress.Progress(len(days))
        part = path.with_name('part-' + path.name)
        with contextlib.ExitStack() as stack:
            stack.callback(part.unlink, missing_ok=True)
            with (lzma.open if path.suffix == '.xz' else open)(
                    part, 'wt', encoding='utf-8', newline='') as stream:
                writer = csv.writer(stream, lineterminator='\n')
                writer.writerow([*NAMES, *(f'm{5 * step}' for step in range(STEPS))])
                for number, begin in enumerate(days, 1):
                    used, asked = _day(reader, parsed_args.meter, begin, lambda share: (
                        shown.report(f'day {number}', share)))
                    known = sorted(used.keys() & servers.keys())
                    strange |= used.keys() - servers.keys()
                    lines += len(known)
                    writer.writerows(_line(uuid, begin, *servers[uuid], used[uuid])
                                     for uuid in known)
            if not lines:
                raise errors.InvalidOption('--meter', parsed_args.meter, (
                    f'it has no samples of VMs that Nova lists; {asked}'))
            part.replace(path)
        self.app.stdout.write(f'{path}: {lines} lines, each a VM and a day\n')
        if strange:
            self.app.LOG.warning('%d resources have samples and are left out, since Nova lists no '
                                 'such VMs: %s', len(strange), min(strange))


def _servers(nova: Any, since: float) -> dict[str, tuple[str, int]]:
    """Return by uuid the project and vCPUs of all VMs, and of those deleted since then."""
    from tracon_watcher.inventory import cloud
    from tracon_watcher.inventory import listing
    changed = datetime.datetime.fromtimestamp(since, datetime.timezone.utc).isoformat()
    return {one.uuid: (one.project, one.vcpus) for more in ({}, {'changes-since': changed})
            for one in (cloud.server(entry) for entry in nova.pages(
                '/servers/detail', 'servers', {'all_tenants': 'True', **more})
                if not listing.is_partial(entry))}


def _day(reader: samples.Reader, meter: str, begin: float,
         report: Callable[[float], None]) -> tuple[dict[str, FloatArray], str]:
    """Return by uuid the cores that a VM used in each interval, and what was asked for."""
    found: dict[str, FloatArray] = collections.defaultdict(lambda: np.full(STEPS, np.nan))
    for first in range(0, STEPS, _AT_ONCE):
        at = begin + SECONDS * first
        readings = reader.read(at - _GAP, at + SECONDS * _AT_ONCE + _GAP, (meter,))
        for uuid, used in zip(readings.resources, cores_used(readings, at, _AT_ONCE)):
            if not np.isnan(used).all():
                found[uuid][first:first + _AT_ONCE] = used
        report((first + _AT_ONCE) / STEPS)
    return found, readings.asked


def cores_used(readings: samples.Readings, begin: float, count: int) -> FloatArray:
    """Return the cores that resources used in each interval, (resources, count).

    NaN where that is unknown: samples are missing, or the counter was reset.

    :param readings: of one meter, CPU time in ns
    :param begin: of the first interval, seconds since the epoch
    """
    ends = begin + SECONDS * np.arange(count + 1)
    found = np.full((len(readings.resources), count), np.nan)
    order = np.lexsort((readings.at, readings.row))
    bounds = np.searchsorted(readings.row[order], np.arange(len(found) + 1))
    for used, first, last in zip(found, bounds, bounds[1:]):
        some = order[first:last]
        if len(some) > 1:
            at, value = readings.at[some], readings.values[some, 0]
            used[:] = np.diff(np.interp(ends, at, value, np.nan, np.nan)) / (1e9 * SECONDS)
            for one in np.flatnonzero((np.diff(value) < 0.0) | (np.diff(at) > _GAP)):
                used[(ends[1:] > at[one]) & (ends[:-1] < at[one + 1])] = np.nan
    return found


def _line(uuid: str, begin: float, project: str, vcpus: int, used: FloatArray) -> list[str]:
    at = datetime.datetime.fromtimestamp(begin, datetime.timezone.utc)
    shares = np.clip(100.0 * used / vcpus, 0.0, 100.0)
    return [uuid, at.isoformat(timespec='minutes'), project, str(vcpus), *(
        '' if np.isnan(one) else f'{one:.4g}' for one in shares.tolist())]
