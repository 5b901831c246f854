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

"""Audits of a cloud in which nothing happens: no migration, and after a plan no way back.

What telemetry says of a VM that does the same all the time scatters. Here it scatters as the
package's measurements do: a program that ran alone was measured again and again, and what each of
these windows of two seconds says, over the program's median, is what a profile is multiplied by.
Its standard deviation is 1 % of guest CPU and 10 to 20 % of the others
(``test_it_is_what_was_measured``); a pollster's minute scatters less, and a profile made of many
minutes far less.
"""

import csv
import dataclasses
import functools
import gzip
import unittest

import numpy as np

from tracon_lab.cmd import packaged
from tracon_watcher import assignment
from tracon_watcher.characteristics import NAMES
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import placement_constraints
from tracon_watcher.placement import plan
from tracon_watcher.placement import planner

HOST_TYPES = ('same-core-raw-disk', 'shared-slow-device')
#: As the strategy's, see tests.watcher.test_plugins.
PARAMETERS = plan.Parameters(noise=0.1)
PROGRAMS = ('blastp', 'blastn', 'video', 'dedup', 'email', 'web', 'compile')
#: Between audits, and after a migration, in seconds.
PERIOD, COOLDOWN = 600.0, 3600.0
#: Windows that a profile is made of, and how many of them are new at each audit.
WINDOWS, NEW = 15, 5


@functools.cache
def measured(host_type):
    """Return each program's median alone, and how windows scatter around it, (k, 4)."""
    path, = (path for path in packaged.measurements()
             if path.endswith(f'/{host_type}-applications.csv.gz'))
    windows = {}
    with gzip.open(path, 'rt', encoding='utf-8') as lines:
        for row in csv.DictReader(line for line in lines if not line.startswith('#')):
            if row['kind'] == 'solo' and row['target'] in PROGRAMS:
                windows.setdefault(row['target'], []).append(
                    [float(row[f'target_alone_{name}'] or 0) for name in NAMES])
    medians = {name: np.median(seen, axis=0) for name, seen in windows.items()}
    ratios = [np.where(medians[name] > 0, np.array(seen) / np.maximum(medians[name], 1e-9), 1.0)
              for name, seen in windows.items()]
    return medians, np.vstack(ratios)


def rules(state, slots, cooldown_until=None):
    """Return constraints that give each host so many slots."""
    taken = np.bincount(state.host, minlength=len(state.hosts))
    return placement_constraints.Constraints(
        needs=dict.fromkeys(state.uuids, (1.0, 0.0, 0.0)),
        free={name: (float(slots - count), 0.0, 0.0)
              for name, count in zip(state.hosts, taken)},
        cooldown_until=cooldown_until or {})


def audit(state, slots=4, cooldown_until=None, now=0.0):
    """Make a plan."""
    return planner.plan_moves(assessment.Assessor(state),
                              rules(state, slots, cooldown_until), PARAMETERS, now,
                              assignment.least_cost)


class NoiseTestCase(unittest.TestCase):

    def test_it_is_what_was_measured(self):
        for host_type in HOST_TYPES:
            _medians, ratios = measured(host_type)
            self.assertGreater(len(ratios), 100)
            deviation = np.std(ratios, axis=0)
            self.assertTrue((deviation > 0.003).all() and (deviation < 0.3).all(), deviation)
            self.assertTrue((deviation[[0, 1, 3]] > 0.08).all(), deviation)


class BalancedTestCase(unittest.TestCase):
    """Hosts that all run the same programs; tests/long has more audits."""

    hosts, audits = 12, 30

    def test_noise_moves_no_vm(self):
        for host_type in HOST_TYPES:
            medians, ratios = measured(host_type)
            state = cluster.build([cluster.Host(f'h{host}', tuple(
                cluster.Resident(f'vm-{host}-{name}', medians[name], limits.Limits(8.0)
                                 if name == 'web' else limits.NONE)
                for name in ('blastn', 'dedup', 'web')), host_type, cores=1)
                for host in range(self.hosts)])
            rng = np.random.default_rng(7)
            self.assertGreater(assessment.Assessor(state).log_responses()[0].min(),
                               0.1, 'they do slow each other down')
            for _audit in range(self.audits):
                drawn = ratios[rng.integers(len(ratios), size=len(state.uuids))]
                found = audit(dataclasses.replace(state, profiles=state.profiles * drawn))
                self.assertEqual((), found.moves)
                self.assertIn('no beneficial migration', found.reason)


class Journey:
    """A cloud at random that is audited again and again, and whose plans are carried out."""

    def __init__(self, host_type, seed):
        self.host_type = host_type
        self.rng = np.random.default_rng([seed, 5])
        self.medians, self.ratios = measured(host_type)
        self.state = cluster.build([cluster.Host(f'h{host}', tuple(
            cluster.Resident(f'vm-{host}-{row}', self.medians[str(self.rng.choice(PROGRAMS))],
                             limits.Limits(3.0) if self.rng.random() < 0.2 else limits.NONE)
            for row in range(int(self.rng.integers(1, 4)))), host_type, cores=1)
            for host in range(6)])
        self.left = {uuid: set() for uuid in self.state.uuids}
        self.moves = []             # number of the audit, uuid
        self.returns = 0

    def go(self, audits, parameters=PARAMETERS, windows=WINDOWS):
        cooldown = {}
        count = len(self.state.uuids)
        first = {uuid: row for row, uuid in enumerate(self.state.uuids)}
        truth = self.state.profiles
        seen = self._windows(windows, count)
        for number in range(audits):
            now = number * PERIOD
            seen = np.concatenate([seen[min(NEW, windows):],
                                   self._windows(min(NEW, windows), count)])
            rows = [first[uuid] for uuid in self.state.uuids]
            noisy = dataclasses.replace(
                self.state, profiles=(truth * seen.mean(axis=0))[rows])
            found = planner.plan_moves(
                assessment.Assessor(noisy),
                rules(self.state, 4, cooldown), parameters, now, assignment.least_cost)
            for move in found.moves:
                self.moves.append((number, move.uuid))
                self.returns += move.destination in self.left[move.uuid]
                self.left[move.uuid].add(move.source)
                cooldown[move.uuid] = now + COOLDOWN
            self.state = self.state.moved({move.uuid: move.destination for move in found.moves})

    def _windows(self, windows, count):
        return self.ratios[self.rng.integers(len(self.ratios), size=(windows, count))]


class ConvergenceTestCase(unittest.TestCase):
    """Plans are carried out, and the cloud audited every ten minutes; tests/long has more."""

    #: Of the second half of the audits so many may still move somebody.
    audits, late, seeds = 60, 1, 1

    def test_it_comes_to_rest_and_no_vm_goes_back(self):
        late = 0
        for host_type in HOST_TYPES:
            for seed in range(self.seeds):
                journey = Journey(host_type, seed)
                journey.go(self.audits)
                self.assertTrue(journey.moves, 'there was something to mend')
                self.assertEqual(0, journey.returns, (host_type, seed))
                self.assertLessEqual(len(journey.moves), len(journey.state.uuids))
                late += sum(number >= self.audits // 2 for number, _uuid in journey.moves)
        self.assertLessEqual(late, self.late)

    def test_noise_that_is_not_reckoned_with_moves_more(self):
        # Otherwise the tests here would show nothing.
        counts = []
        for noise in (0.0, PARAMETERS.noise):
            journey = Journey('shared-slow-device', 1)
            journey.go(60, dataclasses.replace(PARAMETERS, noise=noise), windows=1)
            counts.append(len(journey.moves))
        self.assertGreater(*counts)
