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

"""Episodes that daemons tell of: recorded with slowdowns, or dropped and counted."""

import math

import numpy as np

from tests.unit.engine.storage import base
from tracon_watcher.engine import episode_tracker
from tracon_watcher.engine import ledger
from tracon_watcher.engine import migration_tracker
from tracon_watcher.engine import view as views
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster

LOG = 'tracon_watcher.engine.episode_tracker'


class EpisodeCase(base.StorageCase):

    def setUp(self):
        super().setUp()
        self.now, self.view = base.NOW, None
        self.tracker = self.another()

    def another(self):
        """Return a tracker on the same database, as after a restart."""
        return migration_tracker.MigrationTracker(
            self.storage, lambda: self.view, lambda: None, lambda: self.now)

    def observe(self, at, **slowdowns):
        """Have the counters of VMs on host h1 read; on h2 there is ``z``."""
        hosts = {'h1': slowdowns, 'h2': {'z': 3.0}}
        judged = assessment.Assessor(cluster.build([cluster.Host(name, tuple(
            cluster.Resident(vm, np.ones(4)) for vm in vms), cores=1, updated_at=at)
            for name, vms in hosts.items()]))
        self.view = views.View(1, judged, judged, {}, np.array(
            [slow for vms in hosts.values() for slow in vms.values()]), 0.1, self.now)

    def tell(self, **more):
        self.tracker.recommended([episode(**more)])

    def shown(self, vm='a', host='h1'):
        """Return the episodes of a VM as the ledger has them."""
        return ledger.remedies(vm, (), (), self.storage.episodes.of_vm(vm, host), ())

    def counts(self):
        return dict(self.tracker.episodes.counts)


def episode(**more):
    return {'schema': 'tracon-episode/1', 'host': 'h1', 'resource': 'processor', 'vm': 'a',
            'began_at': base.NOW - 5.0, 'ended_at': None, 'before': 2.0, 'least': 1.0, **more}


class TestTracker(EpisodeCase):

    def test_slowdowns_before_and_after(self):
        self.observe(base.NOW - 40.0, a=1.5, b=1.0)
        self.tell()
        (one,) = self.shown()
        self.assertEqual(('throttle', base.NOW - 5.0, 'a', 'h1', 1.5, None), tuple(
            one[name] for name in ('remedy', 'at', 'vm', 'host', 'before', 'after')))
        self.assertEqual({'resource': 'processor', 'until': None, 'before': 2.0, 'least': 1.0,
                          'unit': 'cores', 'reason': 'after: its end was not told'},
                         one['episode'])
        self.now += 120.0
        self.observe(base.NOW + 20.0, a=1.9, b=1.0)
        self.tell(ended_at=base.NOW + 60.0, least=0.5)
        self.tracker.measure()
        (one,) = self.shown()
        self.assertEqual(('after: not measured, or not yet', 0.5, base.NOW + 60.0), tuple(
            one['episode'][name] for name in ('reason', 'least', 'until')))
        self.observe(base.NOW + 80.0, a=1.1, b=1.0)
        self.tracker.measure()
        (one,) = self.shown()
        self.assertEqual((1.5, 1.1, None), (one['before'], one['after'], one['episode']['reason']))
        self.assertEqual([], self.shown('b'))
        self.assertEqual({'recorded': 2, 'dropped': 0}, self.counts())

    def test_the_end_of_one_whose_vm_has_left_the_host(self):
        self.observe(base.NOW - 40.0, a=1.5)
        self.tell()
        self.observe(base.NOW + 20.0, b=1.0)
        self.tell(ended_at=base.NOW + 10.0)
        self.tracker.measure()
        (one,) = self.shown()
        self.assertEqual((1.5, None, base.NOW + 10.0, 'after: no counters of it there'), (
            one['before'], one['after'], one['episode']['until'], one['episode']['reason']))

    def test_what_is_not_known_has_a_reason(self):
        # The counters were read after the beginning, and later there are none.
        self.observe(base.NOW - 1.0, a=1.5)
        self.tell(ended_at=base.NOW - 2.0)
        self.observe(base.NOW, a=math.nan)
        self.tracker.measure()
        (one,) = self.shown()
        self.assertEqual((None, None), (one['before'], one['after']))
        self.assertEqual('before: no counters of it from just before; after: no counters of it '
                         'there', one['episode']['reason'])

    def test_an_episode_without_a_vm_is_for_all_that_were_there(self):
        self.observe(base.NOW - 40.0, a=1.5, b=1.2)
        self.tell(vm=None, resource='memory', ended_at=base.NOW)
        self.observe(base.NOW + 1.0, a=1.1, c=1.0)
        self.tracker.measure()
        self.assertEqual([[(1.5, 1.1)], [(1.2, None)], []], [
            [(one['before'], one['after']) for one in self.shown(vm)] for vm in 'abc'])
        self.assertEqual([], self.shown('a', 'h2'))

    def test_what_is_not_plausible_is_dropped_counted_and_logged_once(self):
        self.observe(base.NOW - 40.0, a=1.5)
        wrong = [{'host': 'h9'}, {'host': 7}, {'host': ''}, {'host': 'h' * 256},
                 {'vm': 'z'}, {'vm': 'gone'}, {'vm': ['a']}, {'vm': 'a' * 65},
                 {'resource': 'sight'}, {'resource': None}, {'began_at': 'now'},
                 {'began_at': base.NOW + 1000.0}, {'began_at': True}, {'ended_at': 5.0},
                 {'ended_at': base.NOW + 1000.0}, {'before': -1.0}, {'least': math.nan},
                 {'least': {}}]
        with self.assertLogs(LOG, 'WARNING') as logged:
            self.tracker.recommended([episode(**one) for one in wrong])
            self.tracker.recommended([{'schema': 'tracon-episode/1'}])
        self.assertEqual(1, len(logged.output))
        self.assertIn('set [background] host', logged.output[0])
        self.assertEqual({'recorded': 0, 'dropped': len(wrong) + 1}, self.counts())
        self.tracker.recommended([episode(host='h9'), episode(unknown='x' * 100000)])
        self.assertEqual({'recorded': 1, 'dropped': len(wrong) + 2}, self.counts())
        self.assertNotIn('unknown', self.storage.episodes.of_vm('a', 'h1')[0])

    def test_before_the_first_view_the_daemon_has_to_wait(self):
        self.assertRaises(episode_tracker.NoView, self.tell)
        self.assertEqual({'recorded': 0, 'dropped': 0}, self.counts())

    def test_a_beginning_that_comes_again_after_the_end_changes_nothing(self):
        self.observe(base.NOW - 40.0, a=1.5)
        for more in ({}, {'ended_at': base.NOW}, {}):
            self.tell(**more)
        self.assertEqual([base.NOW], [one['episode']['until'] for one in self.shown()])
        self.assertEqual({'recorded': 3, 'dropped': 0}, self.counts())

    def test_it_is_there_after_a_restart(self):
        self.observe(base.NOW - 40.0, a=1.5)
        self.tell()
        self.tracker = self.another()
        self.observe(base.NOW - 4.0, a=1.8)
        self.tell(ended_at=base.NOW)
        self.observe(base.NOW, a=1.2)
        self.tracker.measure()
        self.assertEqual([(1.5, 1.2)], [(one['before'], one['after']) for one in self.shown()])

    def test_what_is_measured_too_late_is_not_waited_for(self):
        self.observe(base.NOW - 40.0, a=1.5)
        self.tell(ended_at=base.NOW)
        self.now += 7200.0
        self.tracker.measure()
        self.observe(self.now, a=1.0)
        self.tracker.measure()
        self.assertIsNone(self.shown()[0]['after'])
