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

"""``tracon lab demand``: how well is known what a disturbed VM would do undisturbed."""

import argparse
import sys
import typing

from cliff import lister

from tracon_lab.cmd import packaged
from tracon_watcher import numerals


class Demand(lister.Lister):
    """Show the errors of estimates of uncontended demand.

    There is a row for each file, kind of program and estimator; it takes half a minute. The
    training data of an estimator never contains the program that it estimates.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument('file', nargs='*', metavar='FILE',
                            help='measurements (CSV) (default: those in the package)')
        parser.add_argument('--seed', type=numerals.whole(0), default=1, metavar='N',
                            help='random seed for sampling windows (default: %(default)s)')
        parser.add_argument('--changes', action='store_true',
                            help='report the detection delay of demand changes instead')
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[tuple[str, ...],
                                                                    list[tuple[typing.Any, ...]]]:
        import threadpoolctl

        from tracon_lab.testbed import demand
        from tracon_lab.testbed import demand_changes

        datasets = packaged.read(parsed_args.file)
        # The matrices are small: threads only wait for each other.
        with threadpoolctl.threadpool_limits(1):
            if parsed_args.changes:
                columns = demand_changes.COLUMNS
                rows = demand_changes.evaluate(datasets, parsed_args.seed)
            else:
                columns = demand.COLUMNS
                rows = demand.evaluate(datasets, parsed_args.seed,
                                       lambda line: print(line, file=sys.stderr, flush=True))
        return columns, numerals.rows(rows, parsed_args)
