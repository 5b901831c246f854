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

"""TRACON's tables of programs from our measurements, as rows; published values beside ours."""

import typing

import numpy as np

from tracon_lab.models import dataset
from tracon_lab.models import tables
from tracon_lab.testbed import application_plans
from tracon_lab.testbed import applications
from tracon_lab.testbed import host_types
from tracon_lab.testbed import summary
from tracon_watcher.characteristics import NAMES
from tracon_watcher import tie_breaking

TABLE1 = ('host_type', 'target', 'beside', 'published', 'measured', 'standard_deviation',
          'points')
#: Slowdowns of TRACON's Table 1, in the order of its columns; SeqRead is our `seqread`.
PUBLISHED_TABLE1 = {'calc': (1.96, 1.26, 1.77, 2.52), 'seqread': (1.03, 10.23, 1.78, 16.11)}

TABLE3 = ('host_type', 'application', 'published_rank', 'rank', 'iops', 'reads_per_second',
          'writes_per_second', 'guest_cpu', 'host_cpu', 'seconds', 'spread', 'windows')


def table1(datasets: typing.Iterable[dataset.Dataset]) -> tables.Rows:
    """A computation and a sequential reader beside the extremes of the generator."""
    rows: tables.Rows = []
    by_host = {}
    for data in datasets:
        by_host.setdefault(data.host_type, []).append(data)
    for host_type, parts in by_host.items():
        if host_type not in host_types.HOST_TYPES:
            continue        # not of this lab, whose settings are the columns
        for target, published in PUBLISHED_TABLE1.items():
            for (beside, shares), paper in zip(application_plans.EXTREMES.items(), published):
                name = application_plans.setting(host_types.named(host_type), shares)
                found = np.concatenate([part.numbers['slowdown'][
                    (part.text['target'] == target) & (part.text['background'] == name)
                    & (part.text['kind'] == 'repeat')] for part in parts])
                if len(found):
                    rows.append((host_type, target, beside, paper, float(found.mean()),
                                 float(found.std(ddof=1)) if len(found) > 1 else float('nan'),
                                 len(found)))
    return rows


def table3(data: dataset.Dataset) -> tables.Rows:
    """The applications alone: what they ask for, and how well a run repeats."""
    alone = data.text['kind'] == 'solo'
    found = []
    for name, application in applications.CATALOGUE.items():
        own = alone & (data.text['target'] == name)
        if own.any() and 'iops' in data.numbers:
            def mean(column: str, own: np.ndarray = own) -> float:
                return float(data.numbers[column][own].mean())
            found.append((name, application.rank, mean('iops'), *(
                mean('target_observed_' + one) for one in NAMES),
                mean('time_per_unit'), summary.solo_spread(data, name), int(own.sum())))
    order = tie_breaking.argsort([one[2] for one in found]).tolist()
    return [(data.host_type, *found[n][:2], order.index(n) + 1, *found[n][2:])
            for n in range(len(found))]
