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

import dataclasses
import math
import threading
from unittest import mock

import numpy as np

from tests import synthetic
from tests.unit.engine import engines
from tracon_watcher.engine import engine
from tracon_watcher.engine import inventory_cache
from tracon_watcher.engine import listener
from tracon_watcher.engine import probes
from tracon_watcher.inventory import cloud
from tracon_watcher.inventory import listing
from tracon_watcher.placement import assessment
from tracon_watcher.placement import queues
from tracon_watcher.telemetry import samples


class EngineTest(engines.EngineCase):

    def test_an_engine_whose_broker_does_not_answer_works_says_so_and_ends(self):
        self.enterContext(mock.patch.object(listener, '_END', 0.01))
        engines.Listener.broker.clear()
        self.addCleanup(engines.Listener.broker.set)
        began = threading.Thread(target=self.engine.lead, daemon=True)
        began.start()
        began.join(120.0)
        self.assertFalse(began.is_alive(), 'it waits for the broker')
        self.source.vm('a', reads=100.0, guest=0.2)
        self.source.run(5)
        self.engine.repair()
        self.engine.collect()
        self.assertEqual(1, len(self.published))
        listens = self.engine.activities['listen']
        listens.once()
        self.assertIsNone(listens.failure)
        self.engine._listening._since -= listener.PATIENCE
        with self.assertLogs('tracon_watcher.engine.periodic_task', 'ERROR'):
            listens.once()
        self.assertIn('broker', listens.failure)
        ended = threading.Thread(target=self.engine.stop, daemon=True)
        ended.start()
        ended.join(120.0)
        self.assertFalse(ended.is_alive(), 'it waits for the broker')
        self.assertEqual(0, engines.Listener.listening)
        # Another one may lead at once.
        other = self.make()
        self.lead(other)
        self.assertIsNotNone(other.publisher)

    def test_an_engine_without_a_lead_does_nothing(self):
        self.source.vm('a', reads=100.0, guest=0.2)
        self.source.run(3)
        self.engine.repair()
        self.engine.collect()
        self.assertIsNone(self.engine.view)
        self.assertEqual(0, engines.Listener.listening)

    def test_what_was_learnt_survives_all_engines(self):
        known = queues.LearnedParameters(gain=1.2, disk=4.0, spread=0.3, vm_hours=48.0, error=0.1,
                                         constant_error=0.2, coverage=0.8)
        self.storage.learnt.save({'other': known}, {}, self.source.now - 86400.0)
        self.lead()
        self.source.run(3)
        self.engine.collect()
        # A day halves what it counts, not what it is.
        self.assertEqual({'other': dataclasses.replace(known, vm_hours=24.0)},
                         self.published[-1].learnt)
        self.engine._checking.adopt({'another': known}, {})
        self.source.run(1)
        self.engine.collect()
        self.assertEqual({'other'}, set(self.storage.learnt.load()[0]))
        self.source.run(6)
        self.engine.collect()
        self.assertEqual({'another'}, set(self.storage.learnt.load()[0]))

    def test_where_hosts_of_vms_are_hidden_it_is_not_ready_and_publishes_nothing(self):
        server = {'id': 'a', 'OS-EXT-STS:vm_state': 'active'}

        def list_cloud():
            listing.shown(server, "the engine's user")
            return self.inventory()
        one = engine.Engine(dataclasses.replace(self.engine._parts, list_cloud=list_cloud),
                            self.engine._settings, lambda: self.source.now)
        one.lead()
        self.addCleanup(one.stop)
        with self.assertLogs('tracon_watcher.engine', 'ERROR') as logs:
            for _minute in range(3):
                one.activities['list'].once()
                one.activities['collect'].once()
        (line,) = logs.output
        self.assertIn('os_compute_api:os-extended-server-attributes', line)
        self.assertFalse(one.activities['list'].works())
        self.assertEqual(([], None, 1), (self.published, one.view, len(one.reports)))
        server['OS-EXT-SRV-ATTR:host'] = 'h1'
        one.activities['list'].once()
        self.assertEqual((True, 0), (one.activities['list'].works(), len(one.reports)))

    def test_telemetry_without_anything_new_is_told_once_and_takes_readiness(self):
        self.lead()
        collecting = self.engine.activities['collect']
        with self.assertLogs('tracon_watcher.engine', 'INFO') as logs:
            for _poll in range(60):
                self.source.run(1)
                collecting.once()
        (line,) = logs.output
        self.assertIn('WARNING:tracon_watcher.engine.engine:Telemetry has had nothing new', line)
        self.assertEqual((1, False, 60), (
            len(self.engine.reports), collecting.works(), len(self.published)))
        for uuid in 'abc':
            self.source.vm(uuid, guest=0.5)
        self.source.run(2)
        with self.assertLogs('tracon_watcher.engine', 'INFO') as logs:
            collecting.once()
        self.assertIn('Collecting works again', logs.output[-1])
        self.assertEqual((0, True), (len(self.engine.reports), collecting.works()))

    def test_a_clock_that_is_off_is_told_once_and_what_is_known_goes_on(self):
        read = self.source.read

        def skewed(since, until, names):
            found = read(since, until, names)
            ahead = 600.0 * (np.array(found.resources) == 'c')
            return dataclasses.replace(found, at=found.at + ahead[found.row])
        self.source.read = skewed
        for uuid in 'abc':
            self.source.vm(uuid, guest=0.5)
        self.lead()
        with self.assertLogs('tracon_watcher.engine', 'INFO') as logs:
            for _poll in range(10):
                self.source.run(1)
                self.engine.collect()
        (line,) = logs.output
        self.assertIn('host h2: its clock is 600 s ahead', line)
        self.assertEqual(1, len(self.engine.reports))
        cluster = self.published[-1].cluster
        self.assertEqual(self.source.now, cluster.updated_at[cluster.host_index['h2']])

    def test_notifications_do_not_make_it_list_again_and_again(self):
        listings, asked = [], []
        parts = dataclasses.replace(
            self.engine._parts,
            list_cloud=lambda: listings.append(1) or self.inventory(),
            volumes_of=lambda uuid, known: asked.append(uuid) or cloud.Volumes(('v',), {}))
        one = engine.Engine(parts, self.engine._settings, lambda: self.source.now)
        self.lead(one)
        self.assertEqual(1, len(listings))
        residency = parts.residency
        # The rounds of both threads, without their pauses.
        pauses = {name: one.activities[name].once() for name in ('list', 'look up')}
        self.assertEqual((2, []), (len(listings), asked))
        for number in range(30):
            residency.tell('aggregate.update_metadata.end', {'name': 'x'}, 1e9 + number)
            residency.tell('instance.volume_attach.end', {
                'uuid': 'abc'[number % 3], 'state': 'active'}, 1e9 + number)
        self.assertTrue(residency.repair_wanted.is_set() and residency.lookup_wanted.is_set())
        # Whatever is told, it comes first that they wait for so long.
        for name, least in (('list', 30.0), ('look up', 1.0)):
            waiting = one.activities[name]
            with mock.patch.object(waiting._at_once, 'wait', autospec=True,
                                   return_value=False) as wait:
                waiting.wait(pauses[name])
            wait.assert_called_once()
            self.assertGreaterEqual(wait.call_args.args[0], least)
        # A new lead does not wait.
        one.activities['list'].wake()
        one.activities['list'].wait(pauses['list'])
        one.look_up()
        self.assertEqual(['a', 'b', 'c'], sorted(asked))
        self.assertEqual({}, residency.questions(20))

    def looking_up(self, failing):
        """Return an engine with questions on all VMs, and which VMs it has asked for."""
        asked = []

        def volumes_of(uuid, _known):
            asked.append(uuid)
            if uuid in failing:
                raise listing.CloudUnavailable(f'Nova: GET /servers/{uuid}: 500')
            return cloud.Volumes(('v',), {})

        one = engine.Engine(dataclasses.replace(self.engine._parts, volumes_of=volumes_of),
                            self.engine._settings, lambda: self.source.now)
        self.lead(one)
        for uuid in sorted(self.servers):
            one._parts.residency.tell('instance.volume_attach.end', {
                'uuid': uuid, 'state': 'active'}, self.source.now + 1)
        return one, asked

    def test_a_vm_that_cannot_be_looked_up_keeps_no_other_waiting(self):
        one, asked = self.looking_up({'a'})
        one.look_up()
        self.assertEqual(['a', 'b', 'c'], asked)
        self.assertEqual(['a'], list(one._parts.residency.questions(20)))
        with self.assertRaisesRegex(listing.CloudUnavailable, '/servers/a'):
            one.look_up()

    def test_a_cloud_that_does_not_answer_is_not_asked_for_all_vms(self):
        self.servers.update(d='h1', e='h2')
        one, asked = self.looking_up(set(self.servers))
        for first in ('a', 'd'):
            with self.assertRaisesRegex(listing.CloudUnavailable, f'/servers/{first}'):
                one.look_up()
        # Those that failed come last.
        self.assertEqual(['a', 'b', 'c', 'd', 'e', 'a'], asked)

    def test_what_is_collected_is_published_and_shown(self):
        for name in 'abc':
            self.source.vm(name, reads=100.0, guest=0.2)
        self.source.run(5)
        self.lead()
        self.engine.collect()
        published, = self.published
        self.assertEqual((1, 1), published.identity)
        self.assertEqual(('h1', 'h2'), published.cluster.hosts)
        np.testing.assert_allclose(published.cluster.profiles[:, 0], 100.0, rtol=0.02)
        self.assertEqual(self.source.now, published.cluster.updated_at[0])
        view = self.engine.view
        self.assertIs(published.cluster, view.assessor.cluster)
        self.assertEqual(('vm b', 'h1'), (view.vms['b'].name, view.vms['b'].host))
        self.assertTrue((view.observed >= 1).all())

    def test_contention_that_a_probe_feels_is_published_and_shown(self):
        class Reader:
            resolution = 60.0
            ahead = 3600.0

            def read(inner, since, until, names):
                return samples.Readings(
                    ('h1',), tuple(names), np.array([0]), np.array([self.source.now]),
                    np.array([[1.0, 1.0, 1.8, 1.6, 1.0, 1.0]]))
        self.engine = self.make(probes=probes.Probes(Reader(), 900.0))
        for vm in 'abc':
            self.source.vm(vm, guest=0.1)
        self.lead()
        self.source.run(5)
        self.engine.collect()
        self.assertEqual(probes.CONTENDED, self.engine.view.felt['h1']['memory'].state)
        # What the host's own VMs explain of it is known from the next time on.
        self.assertIsNone(self.published[-1].cluster.contention)
        self.source.run(1)
        self.engine.collect()
        cluster = self.published[-1].cluster
        felt = dict(zip(cluster.hosts, cluster.felt[:, 0]))
        self.assertEqual(0.0, felt['h2'])
        self.assertAlmostEqual(math.log(1.8) / 2, felt['h1'], delta=0.05)
        slow = dict(zip(cluster.uuids, self.engine.view.assessor.log_responses()[0]))
        self.assertGreater(slow['a'], slow['c'] + 0.2)

    def test_versions_rise_and_small_changes_are_not_told(self):
        self.source.vm('a', reads=100.0, guest=0.2)
        self.source.run(5)
        self.lead()
        self.engine.collect()
        self.source.vm('a', reads=101.0, guest=0.2)
        self.source.run(5)
        self.engine.collect()
        first, second = self.published
        self.assertEqual([(1, 1), (1, 2)], [first.identity, second.identity])
        row = first.cluster.resident_index['a']
        np.testing.assert_array_equal(first.cluster.profiles[row], second.cluster.profiles[row])

    def test_what_begins_is_felt_after_one_poll_and_counts_after_two(self):
        for name in 'ab':
            self.source.vm(name, reads=10.0, guest=0.05)
        self.source.run(20)
        self.lead()
        self.engine.collect()
        self.assertIs(self.engine.view.assessor, self.engine.view.moment)
        self.source.vm('a', reads=2000.0, guest=0.5)
        seen = []
        for _poll in range(2):
            self.source.run(1)
            self.engine.collect()
            view = self.engine.view
            row = view.assessor.cluster.resident_index['a']
            seen.append([float(one.cluster.profiles[row, 0])
                         for one in (view.assessor, view.moment)])
        (first, moment), (second, _same) = seen
        self.assertLess(first, 100.0)
        self.assertGreater(moment, 1500.0)
        self.assertGreater(second, 1500.0)

    def test_a_vm_that_telemetry_never_told_of_has_no_observed_slowdown(self):
        self.source.vm('a', reads=100.0, guest=0.2)
        self.source.run(5)
        self.lead()
        self.engine.collect()
        view = self.engine.view
        observed = dict(zip(view.assessor.cluster.uuids, view.observed))
        self.assertFalse(np.isnan(observed['a']))
        self.assertTrue(np.isnan(observed['b']))

    def test_one_of_two_leads_and_the_other_takes_over(self):
        other = self.make()
        self.lead()
        other.lead()
        other.collect()
        self.engine.collect()
        self.assertEqual([(1, 1)], [one.identity for one in self.published])
        self.assert_one_listens()
        # The first is stopped, as by SIGSTOP, and the second watches the lease for long enough.
        other.lead()
        self.monotonic += 1.2 * engines.LEASE
        other.lead()
        self.lead(other)
        other.collect()
        self.assertEqual((2, 2), self.published[-1].identity)
        # The first goes on where it stood, and cannot publish any more.
        with self.assertRaisesRegex(Exception, 'lead'):
            self.engine.collect()
        with self.assertLogs('tracon_watcher.engine.leadership'):
            self.engine.lead()
        self.assertIsNone(self.engine.view)
        self.assert_one_listens()

    def interrupted(self, one):
        """Let another engine lead for a while, in which a VM moves, one ends and one begins."""
        other = self.make()
        other.lead()
        self.monotonic += 1.2 * engines.LEASE
        self.lead(other)
        with self.assertLogs('tracon_watcher.engine.leadership'):
            one.lead()
        self.servers = {'a': 'h2', 'd': 'h1'}
        other.repair()
        other.collect()
        other.stop()
        one.lead()

    def moving(self, list_cloud):
        """Return an engine that leads, and the moves that it is told of."""
        moved = []
        parts = dataclasses.replace(
            self.engine._parts, list_cloud=list_cloud,
            residency=inventory_cache.InventoryCache(lambda vm, host: moved.append((vm, host))))
        one = engine.Engine(parts, self.engine._settings, lambda: self.source.now)
        self.lead(one)
        return one, moved

    def test_who_leads_a_second_time_knows_nothing_until_it_has_listed(self):
        one, moved = self.moving(self.inventory)
        one.collect()
        self.assertEqual(('a', 'b', 'c'), self.published[-1].cluster.uuids)
        self.interrupted(one)
        one.collect()
        self.assertEqual([1, 2], [told.epoch for told in self.published])
        one.repair()
        one.collect()
        told = self.published[-1]
        self.assertEqual((3, ('d', 'a')), (told.epoch, told.cluster.uuids))
        # When it moved is not known.
        self.assertEqual([], moved)

    def test_a_listing_that_began_in_a_former_term_is_left_out(self):
        meanwhile = []

        def list_cloud():
            found = self.inventory()
            while meanwhile:
                meanwhile.pop()(one)
            return found

        one, _moved = self.moving(list_cloud)
        meanwhile.append(self.interrupted)
        one.repair()
        self.assertIsNone(one._parts.residency.current())
        one.repair()
        self.assertEqual(['a', 'd'], list(one._parts.residency.current().servers))

    def test_who_takes_over_goes_on_from_what_was_told_last(self):
        test = self

        class Standby:
            started = ended = 0

            def start(self):
                Standby.started += 1

            def stop(self):
                Standby.ended += 1
                return test.published[-1]

        other = self.make(make_standby=Standby)
        self.source.vm('a', reads=100.0, guest=0.2)
        self.source.run(5)
        self.lead()
        self.engine.collect()
        for _poll in range(2):
            other.lead()
        self.assertEqual((1, 0), (Standby.started, Standby.ended))
        self.engine.stop()
        self.lead(other)
        self.assertEqual((1, 1), (Standby.started, Standby.ended))
        # Demands that differ by next to nothing are those that were told.
        before = self.published[-1].cluster.profiles.copy()
        self.source.vm('a', reads=101.0, guest=0.2)
        self.source.run(3)
        other.collect()
        self.assertEqual(2, self.published[-1].epoch)
        np.testing.assert_array_equal(before, self.published[-1].cluster.profiles)
        # Who has the snapshot of the first needs no whole one.
        _here, steps = other.publisher._shelf.way((1, 1))
        self.assertEqual(1, len(steps))

    def test_what_had_drifted_is_so_for_who_takes_over_too(self):
        self.source.vm('a', reads=100.0, guest=0.2)
        self.source.run(5)
        self.lead()
        self.engine.collect()
        drifted = queues.LearnedParameters(vm_hours=100.0, coverage=0.1)
        heard = dataclasses.replace(self.published[-1], learnt={synthetic.HOST_TYPE: drifted})
        other = self.make(make_standby=lambda: mock.Mock(**{'stop.return_value': heard}))
        other.lead()
        self.engine.stop()
        self.lead(other)
        other.collect()
        self.assertEqual({synthetic.HOST_TYPE: drifted}, self.published[-1].learnt)
        self.assertEqual([assessment.Status.DRIFTED] * 2, other.view.assessor.status.tolist())

    def test_an_engine_that_is_stopped_lets_another_lead_at_once(self):
        self.lead()
        self.engine.stop()
        other = self.make()
        self.lead(other)
        other.collect()
        self.assertEqual((2, 1), self.published[-1].identity)

    def test_what_was_published_stays_while_telemetry_does_not_answer(self):
        self.source.vm('a', reads=100.0, guest=0.2)
        self.source.run(5)
        self.lead()
        self.engine.collect()
        before = self.engine.view
        self.source.broken = True
        with self.assertRaises(samples.TelemetryUnavailable):
            self.engine.collect()
        self.assertIs(before, self.engine.view)
        self.assertEqual(1, len(self.published))
