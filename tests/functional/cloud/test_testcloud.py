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

"""A whole OpenStack with real guests: everything runs, is used, breaks and ends."""

import dataclasses
import os
import pathlib
import sys
import time

from openstack import exceptions

from tests.functional.cloud import base
from tracon_lab.testbed import programs
from tracon_lab.testcloud import cloud
from tracon_lab.testcloud import errors
from tracon_lab.testcloud import settings


class TestTestCloud(base.CloudCase):

    port_base = 29000

    def boot(self, name, host=None, **more):
        made = self.cloud.boot(name, host, **more)
        self.addCleanup(self.cloud.servers.delete, made)
        return made

    def counters(self, server):
        with self.cloud.hosts[server.host].connect() as connection:
            domain = connection.lookupByUUIDString(server.id)
            (_domain, found), = connection.domainListGetStats([domain], 0)
        return found

    def test_every_service_runs_and_reports(self):
        states = {one.name: one.state for one in self.cloud.status()}
        self.assertEqual({'running'}, set(states.values()), states)
        connection = self.cloud.connection()
        agents = connection.compute.get('/os-services').json()['services']
        self.assertEqual({'nova-conductor', 'nova-scheduler', 'nova-compute'},
                         {one['binary'] for one in agents if one['state'] == 'up'})
        hypervisors = connection.compute.get('/os-hypervisors/detail').json()['hypervisors']
        self.assertEqual(set(self.settings.hosts),
                         {one['hypervisor_hostname'] for one in hypervisors})
        self.assertEqual({'QEMU'}, {one['hypervisor_type'] for one in hypervisors})

        def watchers():
            found = connection.session.get('/v1/services', endpoint_filter={
                'service_type': 'infra-optim'}).json()['services']
            return {'watcher-decision-engine', 'watcher-applier'} <= {
                one['name'] for one in found if one['status'] == 'ACTIVE'}
        self.wait("Watcher's services", watchers)

    def test_guests_on_each_host_work_and_are_counted(self):
        for host in self.settings.hosts:
            with self.subTest(host):
                server = self.boot('reader', host)
                self.assertEqual(host, server.host)
                guest = self.cloud.guest(server)
                self.addCleanup(guest.close)
                guest.begin(programs.programs(100, 100)['seqread'])
                before = self.counters(server)
                progress = guest.read()
                time.sleep(3)
                after = self.counters(server)
                done = guest.read().since(progress)
                self.assertGreater(done.units, 3)
                # What was read inside is what was read outside, but for the edges.
                reads = after['block.0.rd.reqs'] - before['block.0.rd.reqs']
                self.assertGreater(reads, 0.5 * done.reads)
                self.assertGreater(after['vcpu.0.time'], before['vcpu.0.time'])
                self.assertIn('vcpu.0.delay', after)
                cores = self.settings.host_cores(host).split(',')
                self.assertEqual(set(map(int, cores)), self.affinity(server))

    def affinity(self, server):
        for entry in pathlib.Path('/proc').glob('[0-9]*'):
            try:
                arguments = (entry / 'cmdline').read_bytes().split(b'\0')
            except OSError:
                continue
            if b'-uuid' in arguments and server.id.encode() in arguments:
                return os.sched_getaffinity(int(entry.name))
        self.fail('no QEMU process of %s' % server)

    def test_samples_of_a_guest_reach_gnocchi(self):
        server = self.boot('counted')
        connection = self.cloud.connection()

        def measures():
            answer = connection.session.get(
                f'/v1/resource/instance/{server.id}/metric/cpu/measures?refresh=true'
                f'&aggregation=last', endpoint_filter={'service_type': 'metric'},
                raise_exc=False)
            return answer.json() if answer.status_code == 200 else []
        found = self.wait('three samples', lambda: len(measures()) >= 3 and measures(), 120.0)
        values = [value for _at, granularity, value in found
                  if granularity == self.settings.polling_seconds]
        self.assertEqual(sorted(values), values)
        resource = connection.session.get(f'/v1/resource/instance/{server.id}', endpoint_filter={
            'service_type': 'metric'}).json()
        self.assertEqual(server.host, resource['host'])

    def test_a_guest_moves_while_it_works(self):
        here, there = self.settings.hosts
        server = self.boot('mover', here)
        guest = self.cloud.guest(server)
        guest.begin(programs.programs(100, 100)['seqread'])
        time.sleep(1)
        before = guest.read()
        guest.close()
        moved = self.cloud.servers.migrate(server, there)
        self.assertEqual(there, moved.host)
        guest = self.cloud.guest(moved)
        self.addCleanup(guest.close)
        self.assertGreater(guest.read().since(before).units, 0)
        # It needs what it finds on the disk that moved along.
        since = guest.read()
        time.sleep(1)
        self.assertGreater(guest.read().since(since).reads, 0)

    def test_users_may_do_what_their_roles_say(self):
        member = self.cloud.connection('demo', 'demo')
        member.compute.delete_server_group(
            member.compute.create_server_group(name='x', policy='affinity'))
        self.assertEqual([], list(member.compute.servers()))
        reader = self.cloud.connection('reader', 'demo')
        with self.assertRaises(exceptions.ForbiddenException):
            reader.compute.create_server_group(name='x', policy='affinity')
        self.assertEqual([], list(reader.compute.servers()))
        types = {one['type'] for one in member.session.auth.get_access(
            member.session).service_catalog.catalog}
        self.assertLessEqual(set(settings.CATALOGUE), types)

    def test_a_killed_service_is_seen_and_comes_back(self):
        server = self.boot('survivor', self.settings.hosts[0])
        guest = self.cloud.guest(server)
        before = guest.read().clock
        guest.close()
        victims = ['nova-scheduler', f'libvirtd-{server.host}', f'nova-compute-{server.host}']
        for name in victims:
            self.cloud.kill(name)
        states = {one.name: one.state for one in self.cloud.status()}
        self.assertEqual(sorted(victims),
                         sorted(name for name, state in states.items() if state == 'died'))
        self.assertFalse(self.cloud.up)
        self.cloud.start()
        self.assertTrue(self.cloud.up)
        # Its clock goes on: it was neither ended nor booted again.
        guest = self.cloud.guest(self.cloud.servers.wait(server.id))
        self.addCleanup(guest.close)
        self.assertGreater(guest.read().clock, before)

    def test_further_services_run_where_they_shall(self):
        report = self.settings.directory / 'who'
        text = (f'import pathlib, socket, time; '
                f'pathlib.Path({str(report)!r}).write_text(socket.gethostname()); time.sleep(600)')
        host = self.settings.hosts[1]
        self.cloud.extra_service('more', [sys.executable, '-c', text], host=host,
                                 ready=report.exists)
        self.assertEqual(host, report.read_text())
        # Somebody who has not started it can deal with it, too.
        other = cloud.TestCloud(settings.Settings.load(self.settings.directory))
        self.assertIn('more', {one.name for one in other.status()})
        report.unlink()
        other.restart('more')
        self.wait('the service again', report.exists)
        other.kill('more')
        self.wait('its end', lambda: {one.name: one.state for one in other.status()}[
            'more'] == 'died')

    def test_a_service_with_other_settings_is_restarted(self):
        def pid(name):
            return {one.name: one.pid for one in self.cloud.status()}[name]
        before = {name: pid(name) for name in ('nova-scheduler', 'nova-conductor')}
        other = cloud.TestCloud(dataclasses.replace(
            self.settings, scheduler_extra='[scheduler]\nmax_attempts = 2'))
        other.start()
        self.assertNotEqual(before['nova-scheduler'], pid('nova-scheduler'))
        self.assertEqual(before['nova-conductor'], pid('nova-conductor'))
        self.cloud.start()

    def test_what_cannot_be_is_said(self):
        with self.assertRaisesRegex(errors.CloudError, "no flavor 'huge'; there are tracon"):
            self.cloud.boot('x', flavor='huge')
        with self.assertRaisesRegex(errors.CloudError, "no service 'nova-cells'"):
            self.cloud.restart('nova-cells')
