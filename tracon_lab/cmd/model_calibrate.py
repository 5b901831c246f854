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

"""``tracon model calibrate``: learn what counters tell of slowdown and demand."""

import argparse
import pathlib
from typing import Any

from cliff import lister

from tracon_lab.cmd import packaged
from tracon_watcher.characteristics import NAMES
from tracon_watcher.contention import calibration
from tracon_watcher import numerals


class Calibrate(lister.Lister):
    """Learn from measurements how production's counters show slowdown and demand.

    The package contains one calibration; this command makes another from measurements of your own
    hosts, or of both. The engine uses it if [engine] calibration_file names it.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('file', nargs='*', metavar='FILE',
                            help='measurements (CSV) (default: those in the package)')
        parser.add_argument('--output', metavar='FILE', required=True, type=pathlib.Path,
                            help='JSON file to write')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...], list[Any]]:
        from tracon_lab.testbed import demand_calibration

        learnt = demand_calibration.calibrate(packaged.read(parsed_args.file))
        parsed_args.output.parent.mkdir(parents=True, exist_ok=True)
        calibration.save(learnt, parsed_args.output)
        return ('part', 'name', 'value'), [
            (part, name, numerals.shown(value, parsed_args))
            for part, name, value in describe(learnt)]


def describe(learnt: calibration.Calibrated) -> list[tuple[str, str, Any]]:
    """Return what a calibration consists of, as rows (part, name, value)."""
    rows: list[tuple[str, str, Any]] = [
        ('training', 'points', learnt.training['points']),
        *(('training', 'file', one['name']) for one in learnt.training['files']),
        ('curve', 'error of other programs', learnt.curve.error)]
    rows += [('curve', f'slowdown at a stretch of {signal:.2f}', float(slowdown))
             for signal, slowdown in zip(learnt.curve.signal, learnt.curve.slowdown)]
    widths = [('slowdown', learnt.of_slowdown), *zip(NAMES, learnt.of_demand.T)]
    rows += [(f'deviation of {name}', term, float(value)) for name, terms in widths
             for term, value in zip(('offset', 'slope'), terms)]
    return [*rows, ('demand', 'slack', learnt.slack),
            ('demand', 'delay alone for each second of running', float(learnt.self_delay[0])),
            ('demand', 'delay alone for each second of host CPU', float(learnt.self_delay[1])),
            ('demand', 'host CPU of a VM that does nothing', learnt.standing_host_cpu)]
