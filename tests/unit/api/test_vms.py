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

"""What is said of VMs, in which order, and in pages."""

import dataclasses

import numpy as np

from tests.unit.api import base
from tracon_watcher.engine import own_limits
from tracon_watcher.placement import assessment
from tracon_watcher.placement import attribution
from tracon_watcher.placement import cluster

NAMES = ('batch', 'cron', 'db', 'small', 'strange', 'web')


class Content(base.ApiCase):

    def vm(self, name, **query):
        return self.get(f'/v1/vms/{base.identity(name)}', **query)['vm']

    def test_as_predicted_observed_and_blamed(self):
        found = self.vm('web')
        row = self.view.assessor.cluster.resident_index[base.identity('web')]
        slow, ratio = self.view.assessor.log_responses()
        self.assertAlmostEqual(np.exp(slow[row]), found['slowdown']['predicted'], places=3)
        self.assertAlmostEqual(np.exp(-ratio[row]), found['iops_ratio']['predicted'], places=3)
        self.assertEqual((1.4, 1.4), (found['slowdown']['observed'], found['slowdown']['now']))
        self.assertEqual({'max_slowdown': 1.5, 'min_iops_ratio': 0.2}, found['limits'])
        self.assertIs(True, found['in_breach'])
        self.assertEqual('less', found['agreement'])
        self.assertEqual(('batch', 'alpha', base.OTHER, 1.0), tuple(
            found['culprit'][name] for name in ('name', 'host', 'project_id', 'share')))
        self.assertEqual({'read_requests_per_second': 300.0, 'write_requests_per_second': 50.0,
                          'guest_cpu': 0.5, 'host_cpu': 0.2}, found['demand'])
        (culprit,) = found['culprits']
        self.assertEqual(1.0, culprit['slowdown_without'])
        self.assertAlmostEqual(0.4, culprit['observed_part'])
        self.assertEqual({'epoch': base.EPOCH, 'version': base.VERSION, 'observed_error': 0.1,
                          'updated_at': found['updated_at']},
                         self.get('/v1/vms')['state'])

    def test_for_how_long_it_was_in_breach(self):
        self.decisions.counted = {base.identity('web'): 754.5}
        self.assertEqual([754.5, 0.0], [self.vm(name)['breach_seconds'] for name in ('web', 'db')])
        listed = {one['name']: one['breach_seconds'] for one in self.get('/v1/vms')['vms']}
        self.assertEqual({**dict.fromkeys(NAMES, 0.0), 'web': 754.5}, listed)
        # The database is away.
        self.decisions.counted = None
        self.assertIsNone(self.vm('web')['breach_seconds'])

    def test_shares_and_victims(self):
        found = self.vm('db')
        self.assertEqual(['cron', 'small'], [one['name'] for one in found['culprits']])
        self.assertAlmostEqual(1.0, found['joint'] + sum(
            one['share'] for one in found['culprits']), places=3)
        row = self.view.assessor.cluster.resident_index[base.identity('db')]
        self.assertAlmostEqual(attribution.find_culprits(self.view.assessor).harm[row],
                               found['harm_to_others'], places=3)
        harm = attribution.victims(self.view.assessor, row)
        self.assertAlmostEqual(harm.total.sum(), sum(one['harm'] for one in found['victims']),
                               places=3)
        for one in found['victims']:
            self.assertLess(one['slowdown_without'], one['slowdown'])

    def held_back(self, observed):
        """Show a web server that waits for its quota, and suffers so much from neighbours."""
        counters = self.view.observed.copy()
        counters[self.view.assessor.cluster.resident_index[base.identity('web')]] = observed
        self.view = dataclasses.replace(
            self.view, observed=counters, held_back=frozenset([base.identity('web')]),
            own_limits={base.identity('web'): (
                own_limits.OwnLimit('CPU quota', 30.0, '%', 0.8),
                own_limits.OwnLimit('disk reads', None, '1/s', None))})
        return self.vm('web')

    def test_limits_of_its_own(self):
        self.assertEqual([], self.vm('web')['own_limits'])
        self.assertEqual([{'name': 'CPU quota', 'value': 30.0, 'unit': '%', 'reached': 0.8},
                          {'name': 'disk reads', 'value': None, 'unit': '1/s', 'reached': None}],
                         self.held_back(1.0)['own_limits'])

    def test_no_vm_is_blamed_for_what_a_limit_of_the_victim_does(self):
        for observed in (1.0, np.nan):
            found = self.held_back(observed)
            self.assertEqual((None, None, []), (found['culprit'], found['joint'],
                                                found['culprits']))

    def test_a_neighbour_that_hurts_it_nevertheless_is(self):
        self.assertEqual('batch', self.held_back(1.9)['culprit']['name'])

    def test_unknown_is_null(self):
        found = self.vm('strange')
        self.assertEqual('unknown_cores', found['status'])
        for name in ('now', 'observed', 'predicted', 'lower', 'upper'):
            self.assertIsNone(found['slowdown'][name], name)
        for name in ('in_breach', 'culprit', 'joint', 'harm_to_others'):
            self.assertIsNone(found[name], name)
        self.assertEqual([], found['culprits'])

    def test_stale_is_unknown(self):
        self.now += 600
        self.assertEqual('known', self.vm('db')['status'])
        self.now += 1
        found = self.vm('db')
        self.assertEqual('stale', found['status'])
        self.assertIsNone(found['slowdown']['predicted'])
        self.assertIsNone(found['culprit'])
        self.assertIsNone(found['harm_to_others'])
        self.assertEqual([], found['culprits'] + found['victims'])

    def test_who_began_to_demand_more_a_moment_ago_is_named_before_it_counts(self):
        def judged(demand):
            return assessment.Assessor(cluster.build([cluster.Host('alpha', (
                cluster.Resident('victim', base.VM), cluster.Resident('quiet', base.VM),
                cluster.Resident('begun', demand)), 'synthetic', updated_at=self.now, cores=1)]))
        self.view = dataclasses.replace(
            self.view, assessor=judged(0.1 * base.VM), moment=judged(5 * base.VM),
            observed=np.full(3, np.nan))
        found = self.get('/v1/vms/victim')['vm']
        self.assertEqual(['begun', 'quiet'], [one['uuid'] for one in found['culprits']])
        self.assertGreater(found['culprits'][0]['share'], 0.5)

    def test_missing(self):
        self.assertIn('no VM missing', self.refused(404, '/v1/vms/missing')['detail'])


class Lists(base.ApiCase):

    def names(self, **query):
        return [one['name'] for one in self.get('/v1/vms', **query)['vms']]

    def test_filters(self):
        self.assertEqual(set(NAMES), set(self.names()))
        self.assertEqual({'web', 'db', 'cron'}, set(self.names(project_id=base.OWN)))
        self.assertEqual([], self.names(project_id='unknown'))
        self.assertEqual({'db', 'cron', 'small'}, set(self.names(host='beta')))
        self.assertEqual([], self.names(host='nowhere'))
        self.assertEqual({'batch', 'web'}, set(self.names(name='b')) - {'db'})
        self.assertEqual(['web'], self.names(in_breach='true'))
        # Of the one that is unknown it is not known whether it is in breach.
        self.assertEqual({'batch', 'cron', 'db', 'small'}, set(self.names(in_breach='false')))
        self.assertEqual({'cron', 'small'}, set(self.names(culprit=base.identity('db'))))
        self.assertEqual(['cron', 'db'], self.names(min_slowdown=1.2, host='beta'))

    def test_order(self):
        self.assertEqual(list(NAMES), self.names(sort_key='name'))
        self.assertEqual(list(NAMES[::-1]), self.names(sort_key='name', sort_dir='desc'))
        slow = self.names(sort_key='slowdown', sort_dir='desc')
        # What the counters show counts first; what is unknown comes last, either way.
        self.assertEqual(['batch', 'cron', 'db', 'web', 'small', 'strange'], slow)
        self.assertEqual('strange', self.names(sort_key='slowdown')[-1])
        self.assertEqual('batch', self.names(sort_key='harm_to_others', sort_dir='desc')[0])
        self.assertEqual('web', self.names(sort_key='observed')[0])
        both = self.get('/v1/vms?sort_key=host&sort_dir=desc&sort_key=name&sort_dir=asc')['vms']
        self.assertEqual(['strange', 'cron', 'db', 'small', 'batch', 'web'],
                         [one['name'] for one in both])

    def test_pages_are_the_list(self):
        for query in ({}, {'sort_key': 'slowdown', 'sort_dir': 'desc'}, {'host': 'beta'}):
            whole = self.get('/v1/vms', **query)
            self.assertEqual([], whole['links'])
            path, found = None, []
            for _page in range(10):
                page = (self.get('/v1/vms', limit=2, **query) if path is None
                        else self.get(path))
                found += page['vms']
                self.assertLessEqual(len(page['vms']), 2)
                if not page['links']:
                    break
                self.assertEqual('next', page['links'][0]['rel'])
                path = page['links'][0]['href'].removeprefix('http://localhost')
            self.assertEqual(whole['vms'], found)

    def test_no_page_is_larger_than_allowed(self):
        self.api = self.build(largest=4)
        self.assertEqual(4, len(self.names()))
        self.assertEqual(4, len(self.names(limit=1000)))
        self.assertEqual(3, len(self.names(limit=3)))

    def test_bad_parameters_are_named(self):
        for query, value, allowed in (
                ({'limit': '0'}, '0', 'whole number of at least 1'),
                ({'limit': '-1'}, '-1', 'whole number'), ({'limit': 'x'}, 'x', 'whole number'),
                ({'limit': '\u0663'}, '\u0663', 'whole number'),
                ({'sort_key': 'colour'}, 'colour', 'uuid, name'),
                ({'sort_key': 'name', 'sort_dir': 'up'}, 'up', 'asc, desc'),
                ({'sort_dir': ['asc', 'asc']}, 'asc', 'no more than there are sort keys'),
                ({'marker': 'gone'}, 'gone', 'the last of the page before'),
                ({'in_breach': 'maybe'}, 'maybe', 'true or false'),
                ({'min_slowdown': 'nan'}, 'nan', 'from 1 to'),
                ({'min_slowdown': '0.5'}, '0.5', 'from 1 to'),
                ({'host': ['a', 'b']}, 'a', 'one value'),
                ({'name': 'x' * 300}, 'xxx', 'up to 255 characters'),
                ({'colour': 'red'}, 'red', 'in_breach')):
            error = self.refused(400, '/v1/vms', **query)
            self.assertEqual('interference.parameter.invalid', error['code'])
            name = list(query)[-1]
            self.assertTrue(error['detail'].startswith(f'{name}='), error['detail'])
            self.assertIn(value, error['detail'])
            self.assertIn(allowed, error['detail'])
        self.assertIn('no parameters', self.refused(
            400, f'/v1/vms/{base.identity("web")}', limit=3)['detail'])

    def test_while_there_is_nothing(self):
        self.view = None
        for path in ('/v1/vms', '/v1/vms/x', '/v1/hosts', '/v1/host_types'):
            response = self.ask(path)
            self.assertEqual(503, response.status_int)
            self.assertEqual('10', response.headers['Retry-After'])
        self.assertEqual(403, self.ask('/v1/hosts', base.MEMBER).status_int)
