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

"""A decision is explained by what it says, and by judging again where that is possible."""

import json
import unittest

import numpy as np

from tests import synthetic
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import explanation
from tracon_watcher.placement import limits

VM = np.array([300.0, 50.0, 0.5, 0.2])
IDLE = VM / 10


def cloud():
    """Return a cloud with an idle, a busy and a strict host, and one of which nothing is known."""
    return assessment.Assessor(cluster.build([
        cluster.Host('idle', (cluster.Resident('asked', VM), cluster.Resident('small', IDLE)),
                     synthetic.HOST_TYPE, cores=1),
        cluster.Host('busy', (cluster.Resident('hog', VM * 3), cluster.Resident('tiny', IDLE / 2)),
                     synthetic.HOST_TYPE, cores=1),
        cluster.Host('strict', (cluster.Resident('touchy', VM, limits.Limits(1.2)),),
                     synthetic.HOST_TYPE, cores=1),
        cluster.Host('strange', (), synthetic.HOST_TYPE),
        cluster.Host('remote', (), synthetic.HOST_TYPE, 'pool', cores=1)]))


def recorded(assessor, snapshot=(3, 7), **changes):
    """Return a document as nova-scheduler records one of creating the VM ``asked``."""
    found = explanation.of_now(assessor, 'asked')
    for host in found['hosts']:
        host['mode'] = 'enforce'
        host['score'] = None if host['score'] is None else round(host['score'], 4)
    return json.loads(json.dumps({
        **found, 'id': 'some-id', 'request': 'req-1', 'operation': 'move', 'at': 1000.0,
        'snapshot': list(snapshot), 'outcome': 'refused 1 of 4', **changes}))


class OfNow(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.assessor = cloud()
        self.found = explanation.explain(explanation.of_now(self.assessor, 'asked'),
                                         self.assessor)
        self.hosts = {one['host']: one for one in self.found['hosts']}

    def test_hosts_with_storage_of_its_kind(self):
        self.assertEqual({'idle', 'busy', 'strict', 'strange'}, set(self.hosts))
        self.assertEqual((4, 1, 1), (self.found['considered'], self.found['refused'],
                                     self.found['unknown']))
        self.assertEqual('idle', self.found['chosen'])
        json.dumps(self.found, allow_nan=False)

    def test_it_is_no_neighbour_of_itself(self):
        here = self.hosts['idle']
        self.assertTrue(here['chosen'])
        self.assertEqual(['small'], [one['vm'] for one in here['residents']])
        before, after = here['residents'][0]['slowdown']
        self.assertAlmostEqual(1.0, before)
        self.assertGreater(after, before)
        self.assertIsNone(here['behind'])

    def test_why_it_is_behind(self):
        busy = self.hosts['busy']
        self.assertFalse(busy['refused'])
        self.assertAlmostEqual(busy['score'] - self.hosts['idle']['score'], busy['behind'])
        self.assertEqual('hog', busy['most']['vm'])
        self.assertTrue(busy['most']['ahead_without'])
        self.assertTrue(0.9 < busy['most']['share'] <= 1)
        text = explanation.why(busy, {'hog': 'batch-7'}.get)
        self.assertIn(f'{busy["behind"]:.3f} more than on the chosen host', text)
        self.assertIn('batch-7 accounts for', text)
        self.assertIn('would be ahead', text)
        self.assertEqual('', explanation.what_would_differ(busy))

    def test_why_it_is_refused_and_what_would_differ(self):
        strict = self.hosts['strict']
        self.assertTrue(strict['refused'])
        self.assertIsNone(strict['rank'])
        self.assertEqual(('touchy', 'slowdown', 1.2), tuple(
            strict['worst'][name] for name in ('vm', 'response', 'limit')))
        passing = strict['would_pass']
        self.assertTrue(passing['judged_again'])
        self.assertEqual(['touchy'], passing['without'])
        self.assertAlmostEqual(strict['worst']['bound'], passing['limits'][0]['needed'], places=6)
        self.assertIn('refused: the slowdown of touchy would be at least', explanation.why(strict))
        text = explanation.what_would_differ(strict)
        self.assertIn('slowdown limit of touchy at', text)
        self.assertIn('without touchy', text)
        # The limit that is named, rounded as it is, lets it pass.
        named = float(text.split(' at ')[1].split(' ')[0])
        self.assertGreaterEqual(named, passing['limits'][0]['needed'])

    def test_unknown_stays_unknown(self):
        strange = self.hosts['strange']
        for name in ('score', 'slowdown', 'iops_ratio', 'worst', 'behind', 'would_pass', 'most'):
            self.assertIsNone(strange[name], name)
        self.assertEqual('unknown_cores', strange['status'])
        self.assertIn('not known how many cores', explanation.why(strange))

    def test_own_limits_stand_in_the_way_too(self):
        state = self.assessor.cluster
        state.max_slowdown[state.resident_index['asked']] = 1.05
        found = explanation.explain(explanation.of_now(self.assessor, 'asked'), self.assessor)
        busy = {one['host']: one for one in found['hosts']}['busy']
        self.assertTrue(busy['refused'])
        self.assertEqual('newcomer', busy['worst']['vm'])
        self.assertIn('limit of the VM itself at', explanation.what_would_differ(busy))

    def test_vm_that_is_not_there(self):
        self.assertRaises(KeyError, explanation.of_now, self.assessor, 'missing')


class Recorded(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.assessor = cloud()
        self.decision = recorded(self.assessor)

    def host(self, found, name):
        return next(one for one in found['hosts'] if one['host'] == name)

    def test_on_its_own_snapshot_it_is_judged_again(self):
        found = explanation.explain(self.decision, self.assessor, (3, 7))
        self.assertEqual('yes', found['judged_again'])
        for name in ('id', 'request', 'vm', 'at', 'operation', 'snapshot', 'outcome', 'chosen'):
            self.assertEqual(self.decision[name], found[name])
        strict = self.host(found, 'strict')
        self.assertEqual(['touchy'], strict['would_pass']['without'])
        self.assertEqual('enforce', strict['mode'])
        self.assertEqual('hog', self.host(found, 'busy')['most']['vm'])

    def test_on_another_snapshot_only_what_was_recorded(self):
        for assessor, identity in ((self.assessor, (3, 8)), (self.assessor, None), (None, None)):
            found = explanation.explain(self.decision, assessor, identity)
            self.assertTrue(found['judged_again'].startswith('no: '), found['judged_again'])
            passing = self.host(found, 'strict')['would_pass']
            self.assertFalse(passing['judged_again'])
            self.assertIsNone(passing['without'])
            self.assertEqual(self.host(self.decision, 'strict')['worst']['bound'],
                             passing['limits'][0]['needed'])
            self.assertIsNone(self.host(found, 'busy')['most'])
            self.assertGreater(self.host(found, 'busy')['behind'], 0)
            self.assertIn('as far as was recorded',
                          explanation.what_would_differ(self.host(found, 'strict')))

    def test_host_that_was_judged_otherwise_is_left_as_recorded(self):
        self.host(self.decision, 'busy')['score'] += 0.5
        found = explanation.explain(self.decision, self.assessor, (3, 7))
        self.assertIsNone(self.host(found, 'busy')['most'])
        self.assertNotIn('residents', self.host(found, 'busy'))
        self.assertIn('residents', self.host(found, 'strict'))

    def test_advice_is_explained_like_a_refusal(self):
        strict = self.host(self.decision, 'strict')
        strict.update(refused=False, mode='advise', rank=4)
        found = explanation.explain(self.decision, self.assessor, (3, 7))
        strict = self.host(found, 'strict')
        self.assertEqual(['touchy'], strict['would_pass']['without'])
        self.assertIn('though the slowdown of touchy', explanation.why(strict))

    def test_documents_that_miss_things(self):
        for decision in ({}, {'hosts': None}, {'hosts': ['x', {}]}, {'newcomer': 'x'},
                         {'newcomer': {'mean': [1, 2]}, 'hosts': [{'host': 'idle'}]},
                         {'newcomer': {'mean': [1, None, 2, 3]}, 'hosts': [{'host': 'gone'}]},
                         {'hosts': [{'host': 'strict', 'refused': True, 'worst': None}]},
                         {'hosts': [{
                             'host': 'idle', 'refused': False, 'status': 'known', 'worst': {
                                 'vm': 'small', 'response': 'slowdown', 'before': 1.0,
                                 'after': 1.2, 'bound': None, 'limit': None}}]},
                         {'hosts': [{'host': 'x', 'status': 'drifted'}]}):
            decision.setdefault('snapshot', [3, 7])
            found = explanation.explain(decision, self.assessor, (3, 7))
            for host in found['hosts']:
                explanation.why(host)
                explanation.what_would_differ(host)
