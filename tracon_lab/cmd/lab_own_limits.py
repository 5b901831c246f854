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

"""``tracon lab own limits``: are limits of VMs themselves told from what neighbours do?"""

import argparse
import datetime
import importlib.resources
import math
import os
import pathlib
import sys
import time
import typing

from cliff import lister

from tracon_watcher import numerals

_DATA = 'own-limits/{}.csv'
_HOST_TYPE = 'shared-slow-device'


class OwnLimits(lister.Lister):
    """Show how own limits and neighbours of real guests are distinguished, as a confusion matrix.

    Rows are true causes, columns the product's judgements from the hypervisor's counters. With
    --output the command measures: CPU quotas and limits of disks alone, neighbours alone, both,
    neither; ten seconds a window. Otherwise it reads windows from a file.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('file', nargs='?', metavar='FILE', type=pathlib.Path,
                            help='windows (CSV) (default: those in the package)')
        parser.add_argument('--slowdowns', action='store_true',
                            help='show the measured and the judged slowdown by each neighbour '
                                 'instead of the confusion matrix')
        parser.add_argument('--output', metavar='FILE', type=pathlib.Path,
                            help='measure, and write the windows to this file; needs root')
        parser.add_argument('--windows', type=numerals.whole(1), default=120, metavar='N',
                            help='least number of windows (default: %(default)s)')
        parser.add_argument('--window', type=numerals.number(0.1, 3600), default=6.0,
                            metavar='SECONDS',
                            help='length of a window (default: %(default)s)')
        parser.add_argument('--host-type', metavar='NAME', default=_HOST_TYPE,
                            help='host type of the guests (default: %(default)s)')
        parser.add_argument('--seed', type=numerals.whole(0), default=1, metavar='N')
        parser.add_argument('--core', type=numerals.whole(0), metavar='N',
                            help='core to measure (default: the last one)')
        parser.add_argument('--accelerator', choices=('auto', 'kvm', 'qemu'), default='auto')
        parser.add_argument('--cache', type=pathlib.Path, metavar='DIR',
                            help='folder of images')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...],
                                                                    list[tuple[typing.Any, ...]]]:
        from tracon_lab.testbed import causes

        if parsed_args.output is not None:
            _measure(parsed_args)
        source = parsed_args.output or parsed_args.file
        if source is None:
            source = (importlib.resources.files('tracon_lab.testbed') / 'data'
                      / _DATA.format(_HOST_TYPE))
        windows = causes.read(source)
        columns, rows = (
            (causes.SLOWDOWNS, causes.slowdowns(windows)) if parsed_args.slowdowns
            else (causes.MATRIX, causes.matrix(windows)))
        return columns, numerals.rows(rows, parsed_args)


def _report(line: str) -> None:
    print(datetime.datetime.now().strftime('%H:%M:%S'), line, file=sys.stderr, flush=True)


def _measure(parsed_args: argparse.Namespace) -> None:
    from tracon_lab.testbed import causes
    from tracon_lab.testbed import own_limits
    from tracon_watcher import progress

    own_limits.interruptible()
    cores = sorted(os.sched_getaffinity(0))
    shown: list[progress.Progress] = []

    def done(count: int, total: int) -> None:
        if not shown:
            shown.append(progress.Progress(total))
        shown[0].report(count, 1.0)

    head = {
        'command': f'tracon lab own limits --host-type {parsed_args.host_type} '
                   f'--windows {parsed_args.windows} --window {parsed_args.window:g} '
                   f'--seed {parsed_args.seed} --output {parsed_args.output.name}',
        'date': datetime.datetime.now(datetime.UTC).date().isoformat()}
    own_limits.measure(
        own_limits.Measurement(
            parsed_args.host_type, parsed_args.windows, parsed_args.window,
            cores[-1] if parsed_args.core is None else parsed_args.core, parsed_args.seed,
            parsed_args.accelerator, parsed_args.cache),
        Product(parsed_args.window), done, _report,
        lambda facts, taken: causes.write(parsed_args.output, {**head, **facts}, taken))


class Product:
    """Judges as the engine does: its pollster, its collector, its profiles.

    Windows of several VMs are taken of one guest, one after the other. Each VM is given the
    counters of its own windows, counted from the beginning of each, as if it were started there:
    what lies between two windows is unknown.

    :param seconds: length of a window, which stands for the interval of polls
    :param guest: the name of its domain
    """

    #: Of samples, in seconds, as readers of telemetry have it.
    resolution = 0.1
    ahead = 0.0

    def __init__(self, seconds: float, guest: str = 'tracon-target') -> None:
        import libvirt

        from tracon_watcher.contention import calibration
        from tracon_watcher.contention import profile_tracker
        from tracon_watcher.engine import collector
        from tracon_watcher.telemetry import libvirt as vendor

        self._uuid, self._guest = '', guest
        self._open = lambda: libvirt.open('qemu:///system')
        self._source = vendor.Source(self._open)
        self._collector = collector.Collector(
            self, profile_tracker.ProfileTracker(calibration.packaged(), 3600.0), seconds, 3600.0)
        self._specs: dict[str, typing.Mapping[str, str]] = {}
        self._samples: list[tuple[str, float, dict[str, int]]] = []
        self._vm = ''
        self._first: dict[str, int] = {}

    def begin(self, vm: str, extra_specs: typing.Mapping[str, str]) -> None:
        """Poll as a window of this VM begins; its flavor has these extra specs."""
        from tracon_watcher.telemetry import meters

        self._vm, self._specs[vm] = vm, extra_specs
        # It may have been restarted.
        connection = self._open()
        self._uuid = connection.lookupByName(self._guest).UUIDString()
        connection.close()
        self._first = self._poll()
        # The clock is the host's, which goes on.
        clock = self._first.pop(meters.CLOCK.name)
        self._samples.append((vm, time.time(), {
            meters.CLOCK.name: clock, **dict.fromkeys(self._first, 1)}))

    def end(self) -> typing.Any:
        """Poll as it ends, and judge.

        :rtype: tracon_lab.testbed.causes.Verdict
        """
        from tracon_lab.testbed import causes
        from tracon_watcher.inventory import cloud
        from tracon_watcher.telemetry import meters

        counted = self._poll()
        now = time.time()
        self._samples.append((self._vm, now, {
            name: value if name == meters.CLOCK.name else 1 + value - self._first[name]
            for name, value in counted.items()}))
        servers = {vm: cloud.Server(vm, vm, '', 'lab', vm, specs, 'image', 'active')
                   for vm, specs in self._specs.items()}
        found = self._collector.collect(cloud.Inventory(servers, {}, (), {}, now), now).profiles
        self._samples = [one for one in self._samples if one[1] > now - 600.0]
        row = found.vms.index(self._vm) if self._vm in found.vms else None
        if row is None or found.at[row] < now - 1.0:
            return causes.Verdict(None, math.nan)
        return causes.Verdict(bool(found.at_limit[row].any()), float(found.slowdown[row]))

    def read(self, since: float, until: float, names: typing.Sequence[str]) -> typing.Any:
        """Return the samples of a time, as a reader of telemetry does."""
        from tracon_watcher.telemetry import samples

        found = samples.Samples(names)
        for vm, at, counters in self._samples:
            for column, name in enumerate(names):
                if name in counters:
                    found.add(vm, column, [at], [counters[name]])
        return found.readings(since, until)

    def _poll(self) -> dict[str, int]:
        from tracon_watcher import errors

        counted = self._source.poll().get(self._uuid)
        if counted is None:
            raise errors.TraconError(f'libvirt does not report {self._guest}; see its log')
        return counted
