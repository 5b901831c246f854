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

"""The lab's report: TRACON's tables and figures from our measurements, and what goes past them.

One HTML page that needs no other file, and a CSV file for each table.
"""

import csv
import html
import math
import pathlib
import typing

import numpy as np

from tracon_lab.models import dataset
from tracon_lab.models import evaluation
from tracon_lab.models import tables
from tracon_lab import page
from tracon_lab.testbed import counters
from tracon_lab.testbed import figures
from tracon_lab.testbed import paper
from tracon_lab.testbed import summary
from tracon_watcher.characteristics import RESPONSES

# Rows beyond which a table of the page is folded.
_FOLDED = 60


class Report:
    """What is worked out, one part after the other.

    :param datasets: files of measurements
    :param progress: is called with a line before each part
    """

    def __init__(self, datasets: typing.Sequence[dataset.Dataset],
                 progress: typing.Callable[[str], None]) -> None:
        self._datasets = datasets
        self._progress = progress
        self._study = tables.Study(datasets, lenient=True)
        self._parts: list[str] = []
        self.tables: dict[str, tuple[tuple[str, ...], tables.Rows]] = {}

    def write(self, folder: pathlib.Path) -> pathlib.Path:
        """Write report.html and the CSV files; returns the page's path."""
        steps = {
            'what was measured': self._measurements,
            'Table 1': self._table1,
            'Table 3': self._table3,
            'Fig. 3: errors of the models': self._errors,
            'Fig. 7: adaptation': self._adaptation,
            'observed slowdown': self._tracking,
            'hardware events and limits': self._events,
        }
        folder.mkdir(parents=True, exist_ok=True)       # before all the work
        for number, (title, step) in enumerate(steps.items(), 1):
            self._progress('%d/%d %s' % (number, len(steps), title))
            step()
        for name, (columns, rows) in self.tables.items():
            with open(folder / (name + '.csv'), 'w', newline='', encoding='utf-8') as out:
                writer = csv.writer(out, lineterminator='\n')
                writer.writerow(columns)
                writer.writerows([[_plain(value) for value in row] for row in rows])
        path = folder / 'report.html'
        parts = [page.begin('tracon-watcher: the interference lab'), *self._parts, page.END]
        path.write_text('\n'.join(parts), encoding='utf-8')
        return path

    def _add(self, title: str, text: str, name: str, columns: tuple[str, ...], rows: tables.Rows,
             drawings: typing.Sequence[str] = (), left_out: typing.Container[str] = ()) -> None:
        """A section with figures and a table, which is kept as CSV as well.

        :param left_out: columns that only the CSV has
        """
        if not rows:
            self._parts.append('<section><h2>%s</h2><p>%s</p><p><b>Nothing was measured for '
                               'this.</b></p></section>' % (html.escape(title), text))
            return
        self.tables[name] = (columns, rows)
        shown = [[_shown(value) for value in row] for row in rows]
        places = [place for place, column in enumerate(columns)
                  if column not in left_out and any(row[place] != '' for row in shown)]
        table = page.table([columns[place].replace('_', ' ') for place in places],
                           [[row[place] for place in places] for row in shown])
        if len(rows) > _FOLDED:
            table = '<details><summary>%d rows</summary>%s</details>' % (len(rows), table)
        self._parts.append('<section><h2>%s</h2><p>%s</p>%s%s</section>' % (
            html.escape(title), text, ''.join(drawings), table))

    def _measurements(self) -> None:
        rows = [(one.name, one.host_type, one.header.get('emulated', ''),
                 one.header.get('accelerator', ''), one.header.get('date', ''),
                 one.header.get('window_seconds', ''), len(one.text['kind']),
                 *(summary.of_plan(one) or ('', '')), one.header.get('command', ''))
                for one in self._datasets]
        self._parts.append('<h1>The interference lab</h1><p class="lead">Measured between real '
                           'virtual machines; published values of TRACON (Chiang and Huang, '
                           'SC’11) stand beside ours.</p>')
        # In columns of a table these would be a word wide.
        commands = ''.join('<li>%s<br><code>%s</code></li>' % (html.escape(one[0]),
                                                               html.escape(one[-1]))
                           for one in rows if one[-1])
        kinds = {one[1]: one[2].removeprefix('yes: ') for one in rows
                 if one[2].startswith('yes')}
        emulated = ''.join('<p>Emulated: <b>%s</b>, %s.</p>' % (html.escape(name),
                                                                html.escape(how))
                           for name, how in kinds.items())
        self._add('What was measured', 'Points are windows of the plan with the file’s name; '
                  'rows are both directions of them, and programs alone.', 'measurements',
                  ('file', 'host_type', 'emulated', 'accelerator', 'date', 'window_seconds',
                   'rows', 'points', 'planned', 'command'), rows,
                  left_out=('emulated', 'command'))
        self._parts.append(
            '<section><h2>How to measure it again</h2>%s<p>A limit of minutes only parts the '
            'work: call it again to go on.</p><ul>%s</ul></section>' % (emulated, commands))

    def _table1(self) -> None:
        self._add('Table 1: slowdown beside CPU and I/O', 'A computation (<i>Calc</i>) and a '
                  'sequential reader (<i>SeqRead</i>) beside the extremes of the workload '
                  'generator.', 'table1', paper.TABLE1, paper.table1(self._datasets))

    def _table3(self) -> None:
        rows = [row for one in self._datasets if (one.points.kind == 'background').any()
                for row in paper.table3(one)]
        self._add('Table 3: the applications alone', 'Rank is that of I/O operations a second '
                  'among the eight, the published one beside ours. <i>spread</i> is standard '
                  'deviation over mean of the time of a run, over the windows alone.', 'table3',
                  paper.TABLE3, rows)

    def _table(self, name: str, title: str, text: str,
               drawings: typing.Sequence[str] = ()) -> None:
        """A section with one of :data:`tracon_lab.models.tables.TABLES`."""
        table = tables.TABLES[name]
        self._add(title, text, name, table.columns, table.rows(self._study), drawings)

    def _errors(self) -> None:
        drawings = []
        for host_type in self._study.points:
            for response in RESPONSES:
                for test in (evaluation.CROSS_VALIDATION, evaluation.PAIRS):
                    panel = [row for row in self._study.errors if row.host_type == host_type
                             and row.response == response and row.tested_on == test]
                    if panel:
                        drawings.append(figures.errors(panel, ', '.join(
                            (host_type, response.replace('_', ' '), test))))
        self._table('errors', 'Fig. 3: prediction errors', '|predicted − actual| / actual. WMM, '
                    'LM and NLM are the paper’s, one for each application. The dashed line is '
                    'the error that a perfect prediction would have, since measurements scatter.',
                    drawings)

    def _adaptation(self) -> None:
        drawings = [figures.adaptation(found.errors, found.before, found.alarm, found.settled,
                                       response.replace('_', ' '))
                    for response, found in self._study.replays.items()]
        self._table('adaptation', 'Fig. 7: the disk changes', 'The NLM of each '
                    'application on %s meet points of %s.' % tables.MOVE, drawings)

    def _tracking(self) -> None:
        rows = [row for one in self._datasets for row in counters.tracking(one)]
        self._add('Slowdown seen from outside', 'How well signals that need no look into a VM '
                  'follow the slowdown measured inside. <i>both</i> combines vCPU delay and block '
                  'latency, each with its share of the time. The calibrated error is that of '
                  'programs which the calibration was not made from.', 'tracking',
                  counters.TRACKING, rows)

    def _events(self) -> None:
        self._add('Running time and hardware events', 'Time of a unit of work regressed on what '
                  'the host counts (Lim et al.).', 'events', counters.EVENTS,
                  [row for one in self._datasets for row in counters.events(one)])
        self._add('What limits each program', 'Shares of a virtual CPU’s time, alone and in the '
                  'median beside others.', 'limits', counters.LIMITS,
                  [row for one in self._datasets for row in counters.limits(one)])


def _plain(value: typing.Any) -> typing.Any:
    if isinstance(value, float):
        return '' if math.isnan(value) else '%.6g' % value
    return value


def _shown(value: typing.Any) -> typing.Any:
    if isinstance(value, float | np.floating):
        return '' if math.isnan(value) else '%.3g' % value
    return value
