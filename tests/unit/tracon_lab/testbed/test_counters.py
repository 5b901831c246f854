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

"""What counters tell of a file (made-up rows)."""

import unittest

import numpy as np

from tracon_lab.models import dataset
from tracon_lab.testbed import application_plans
from tracon_lab.testbed import counters
from tracon_lab.testbed import host_types
from tracon_lab.testbed import paper

FOUR = ('read_requests_per_second', 'write_requests_per_second', 'guest_cpu', 'host_cpu')


def data(rows, name='made-up.csv', host_type='same-core-raw-disk'):
    """Return a file of (kind, target, background, {column: number}); other numbers are NaN."""
    text = {column: np.array([row[place] for row in rows], dtype=np.str_)
            for place, column in enumerate(('kind', 'target', 'background'))}
    numbers = {column: np.array([row[3].get(column, np.nan) for row in rows])
               for column in dataset.COLUMNS
               if column not in ('point', 'kind', 'target', 'background', 'started_at')}
    return dataset.Dataset(name, '0' * 64, {'host_type': host_type}, text, numbers)


def seen(prefix, cpu, delay=0.0, reads=0.0, latency=np.nan):
    own = 'target_' if prefix == 'target_observed_' else prefix
    return {prefix + 'guest_cpu': cpu, prefix + 'read_requests_per_second': reads,
            prefix + 'write_requests_per_second': 0.0, own + 'vcpu_delay': delay,
            own + 'read_latency': latency}


class TestCounters(unittest.TestCase):

    def test_now_is_beside_others_and_alone_is_alone(self):
        one = data([('pair', 'web', 'email', seen('target_observed_', 0.4, 0.3, 50.0, 0.02)
                     | seen('target_alone_', 0.6, 0.1, 80.0, 0.01))])
        now, alone = counters.now(one), counters.alone(one)
        self.assertEqual([0.4, 0.3, 50.0, 0.02], [float(values[0]) for values in (
            now.running, now.delay, now.reads, now.read_latency)])
        self.assertEqual([0.6, 0.1, 80.0, 0.01], [float(values[0]) for values in (
            alone.running, alone.delay, alone.reads, alone.read_latency)])

    def test_what_a_file_does_not_have_is_unknown(self):
        one = data([('pair', 'web', 'email', {})])
        for column in ('target_vcpu_delay', 'time_per_unit', 'units', 'window_seconds'):
            del one.numbers[column]
        self.assertTrue(np.isnan(counters.now(one).delay).all())
        self.assertEqual(counters.TOO_FEW, counters.events(one)[0][4])
        self.assertEqual({0}, {row[3] for row in counters.tracking(one)})

    def test_limits_alone_and_beside_others(self):
        idle, delayed = seen('target_observed_', 0.1), seen('target_observed_', 0.2, 0.7)
        rows = [dict(zip(counters.LIMITS, row)) for row in counters.limits(data(
            [('solo', 'web', '', idle)] * 3 + [('pair', 'web', 'email', delayed)] * 3
            + [('pair', 'web', 'blastn', {})]))]
        self.assertEqual([('none', 'nothing'), ('others', 'core')],
                         [(row['beside'], row['limited_by']) for row in rows])
        self.assertAlmostEqual(0.7, rows[1]['waiting_for_core'])
        self.assertEqual({'made-up.csv'}, {row['file'] for row in rows})

    def test_a_microsecond_of_delay_takes_a_microsecond(self):
        # A paced unit of 4 ms every 20 ms; each migration costs it 3 us, each delay itself.
        rng = np.random.default_rng(1)
        rows = []
        for _ in range(40):
            migrations, delay = rng.poisson(500), rng.uniform(0, 0.2)      # a second
            each = 0.02
            rows.append(('background', 'openread', 'gen-c050-r0-w0', {
                'window_seconds': 2.0, 'units': 100.0, 'target_cpu_migrations': migrations,
                'target_vcpu_delay': delay,
                'time_per_unit': 0.004 + each * (3e-6 * migrations + delay)}))
        found = {row[3]: dict(zip(counters.EVENTS, row)) for row in counters.events(data(rows))}
        self.assertAlmostEqual(3.0, found['cpu_migrations']['microseconds_per_event'])
        self.assertAlmostEqual(1.0, found['vcpu_delay']['microseconds_per_event'])
        self.assertEqual('not available', found['cache_misses']['status'])
        self.assertAlmostEqual(1.0, found['cache_misses']['r_squared'])

    def test_signals_of_named_programs_only(self):
        rng = np.random.default_rng(2)
        rows = []
        for target in ('web', 'gen-c050-r0-w0'):
            for delay in rng.uniform(0, 0.5, 40):
                rows.append(('background', target, 'gen-c100-r0-w0', {
                    'slowdown': 1 / (1 - delay), **seen('target_observed_', 1 - delay, delay),
                    **seen('target_alone_', 1.0)}))
        found = {row[2]: dict(zip(counters.TRACKING, row))
                 for row in counters.tracking(data(rows))}
        stretch = next(row for row in found.values() if row['points'])
        self.assertEqual(40, stretch['points'])
        self.assertGreater(stretch['correlation'], 0.999)


class TestPaperTables(unittest.TestCase):

    def test_table1_has_the_published_beside_ours(self):
        high = 'gen-c100-r0-w0'
        rows = [('repeat', 'calc', high, {'slowdown': value}) for value in (2.0, 2.2)]
        rows += [('pair', 'calc', high, {'slowdown': 9.0}),
                 ('repeat', 'seqread', high, {'slowdown': 1.1})]
        found = [dict(zip(paper.TABLE1, row)) for row in paper.table1([data(rows)])]
        self.assertEqual([('calc', 'CPU high', 1.96, 2), ('seqread', 'CPU high', 1.03, 1)],
                         [(row['target'], row['beside'], row['published'], row['points'])
                          for row in found])
        self.assertAlmostEqual(2.1, found[0]['measured'])
        self.assertAlmostEqual(0.1 * 2 ** 0.5, found[0]['standard_deviation'])
        self.assertEqual([], paper.table1([data(rows, host_type='mine')]))

    def test_all_settings_of_table1_are_in_its_plan(self):
        for kind in host_types.HOST_TYPES.values():
            windows = {(window.target, window.background)
                       for window in application_plans.table1(kind, 1).windows}
            rows = [('repeat', *window, {'slowdown': 1.5}) for window in windows]
            found = paper.table1([data(rows, host_type=kind.name)])
            self.assertEqual(8, len(found), kind.name)
            # published: the reader suffers most from everything at once
            self.assertEqual(16.11, max(row[3] for row in found))

    def test_table3_ranks_by_iops_alone(self):
        def alone(name, iops):
            return ('solo', name, '', {'iops': iops, 'time_per_unit': 0.5} | {
                'target_observed_' + one: iops for one in FOUR})
        rows = [alone('web', 300.0), alone('email', 20.0), alone('email', 30.0),
                alone('video', 100.0), ('pair', 'web', 'email', {'iops': 1.0}),
                alone('gen-c050-r0-w0', 900.0)]
        found = {row[1]: dict(zip(paper.TABLE3, row)) for row in paper.table3(data(rows))}
        self.assertEqual({'email': 1, 'video': 2, 'web': 3},
                         {name: row['rank'] for name, row in found.items()})
        self.assertEqual((25.0, 2), (found['email']['iops'], found['email']['windows']))
        self.assertEqual(2, found['web']['published_rank'])
