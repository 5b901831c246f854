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

import json
import types
import unittest

from keystoneauth1 import exceptions
import requests

from tracon_watcher.inventory import cloud
from tracon_watcher.inventory import listing
from tracon_watcher.inventory import volume_limits

PARTIAL = {'id': 'lost', 'status': 'UNKNOWN', 'tenant_id': 'p', 'links': [],
           'created': '2026-01-01T00:00:00Z'}


def server(uuid, host='h1', **more):
    return {'id': uuid, 'name': uuid, 'tenant_id': 'p', 'OS-EXT-SRV-ATTR:host': host,
            'OS-EXT-STS:vm_state': 'active', 'image': '', 'flavor': {
                'original_name': 'm1', 'vcpus': 2, 'extra_specs': {}},
            'OS-SRV-USG:launched_at': '2026-01-01T00:00:10.000000',
            'os-extended-volumes:volumes_attached': [{'id': 'v1'}, {'id': 'v2'}], **more}


def service(host, **more):
    return {'binary': 'nova-compute', 'host': host, 'status': 'enabled', 'state': 'up',
            'zone': 'nova', **more}


DOWN = {'binary': 'nova-compute', 'host': 'h2', 'status': 'UNKNOWN'}


class Cloud:
    """Answers as Nova and Cinder do, and takes down what it was asked."""

    def __init__(self, answers):
        self.answers = answers
        self.asked = []
        self.microversions = {}
        self.compute = self.block_storage = self

    def get(self, path, params=None, microversion=None):
        self.asked.append(path)
        self.microversions[path] = microversion
        body = self.answers.get(path)
        if isinstance(body, list):
            body = body.pop(0) if len(body) > 1 else body[0]
        response = requests.Response()
        response.status_code = 404 if body is None else 200
        if isinstance(body, int):
            response.status_code = body
        response.headers['Content-Type'] = 'application/json'
        response._content = json.dumps(body or {'itemNotFound': {'message': 'none'}}).encode()
        response.request = types.SimpleNamespace(method='GET', url=path)
        return response


class Missing:
    """A service that the catalogue does not have."""

    def get(self, path, params=None, microversion=None):
        raise exceptions.EndpointNotFound('no endpoint')


def answers(services=None, servers=None):
    return {
        '/os-services': services or {'services': [service('h1'), service('h2', state='down')]},
        '/servers/detail': {'servers': servers or [server('a')]},
        '/os-hypervisors/detail': {'hypervisors': [
            {'service': {'host': 'h1'}, 'vcpus': 48, 'cpu_info': {'topology': {
                'sockets': 1, 'cores': 24, 'threads': 2}}},
            {'service': {'host': 'h2'}, 'vcpus': 0}]},
        '/os-aggregates': {'aggregates': []},
        '/volumes/detail': {'volumes': [{'id': 'v1', 'os-vol-host-attr:host': 'ceph'}]}}


class CollectTest(unittest.TestCase):

    def test_no_request_makes_nova_ask_a_host(self):
        found = Cloud(answers())
        inventory = cloud.collect(found)
        # From 2.88 on a listing of hypervisors asks each of them how long it has been up.
        self.assertEqual({'2.87'}, {version for path, version in found.microversions.items()
                                    if 'hypervisor' in path})
        self.assertEqual({'h1': True, 'h2': False},
                         {name: one.up for name, one in inventory.hypervisors.items()})
        self.assertEqual(frozenset(), inventory.unreachable)
        self.assertEqual(1767225610.0, inventory.servers['a'].launched_at)

    def test_what_the_user_may_not_see_of_servers_is_not_taken_for_nothing(self):
        def without(key, parent=None):
            one = server('a')
            del (one if parent is None else one[parent])[key]
            return one
        for one, what in ((without('OS-EXT-SRV-ATTR:host'), 'os-extended-server-attributes'),
                          (without('extra_specs', 'flavor'), 'servers:show:flavor-extra-specs')):
            with self.assertRaisesRegex(listing.Forbidden, f"engine's user.*role admin.*{what}"):
                cloud.collect(Cloud(answers(servers=[one])))
        # Of a VM whose flavor Nova has lost there is nothing to be seen.
        self.assertEqual({}, cloud.collect(Cloud(answers(
            servers=[server('a', flavor={})]))).servers['a'].extra_specs)

    def test_vms_that_are_on_no_host_that_there_is_do_not_make_all_hosts_empty(self):
        strange = answers(servers=[server('a', 'h9'), server('b', None)])
        with self.assertRaisesRegex(
                listing.CloudUnavailable, 'VM a is on h9, compute services are h1: see'):
            cloud.collect(Cloud(strange))
        with self.assertRaisesRegex(listing.CloudUnavailable, 'compute services are none'):
            cloud.collect(Cloud({**strange, '/os-services': {'services': []}}))
        # One on such a host, and those that need none, cost the others nothing.
        found = cloud.collect(Cloud(answers(servers=[server('a', 'h9'), server('b')])))
        self.assertEqual({'a': 'h9', 'b': 'h1'},
                         {uuid: one.host for uuid, one in found.servers.items()})
        cloud.collect(Cloud(answers(servers=[
            server('a', None, **{'OS-EXT-STS:vm_state': 'shelved_offloaded'}),
            server('b', None, **{'OS-EXT-STS:vm_state': 'building'})])))

    def test_an_answer_that_was_cut_short_is_refused(self):
        full = {'servers': [server(f's{number}') for number in range(listing.PAGE)]}
        with self.assertRaisesRegex(listing.CloudUnavailable, '1000 servers came, and no link'):
            cloud.collect(Cloud(answers(servers=full['servers'])))
        for none in (None, {}):
            with self.assertRaisesRegex(listing.CloudUnavailable, 'not a list'):
                cloud.collect(Cloud({**answers(), '/servers/detail': {'servers': none}}))

    def test_cores_are_those_that_nova_shares(self):
        found = cloud.collect(Cloud(answers())).hypervisors
        self.assertEqual({'h1': (48, 2), 'h2': (None, 1)},
                         {name: (one.cores, one.threads) for name, one in found.items()})

    def test_a_cpu_without_a_description_has_a_thread_a_core(self):
        for described in (None, '', {}, {'topology': None}, {'topology': {'threads': 0}},
                          {'topology': {'threads': 'two'}}):
            found = cloud.collect(Cloud({**answers(), '/os-hypervisors/detail': {'hypervisors': [
                {'service': {'host': 'h1'}, 'vcpus': 8, 'cpu_info': described}]}})).hypervisors
            self.assertEqual((8, 1), (found['h1'].cores, found['h1'].threads))

    def test_who_gets_no_listing_of_hypervisors_does_not_know_their_cores(self):
        # The right may be lacking, and Nova fails while a cell is down.
        for status in (403, 500):
            found = cloud.collect(Cloud({**answers(), '/os-hypervisors/detail': status}))
            self.assertEqual([None, None], [one.cores for one in found.hypervisors.values()])
            self.assertEqual(['a'], list(found.servers))

    def test_services_that_stand_for_several_machines_are_not_judged_nor_are_their_vms(self):
        for kind in ('ironic', 'VMware vCenter Server'):
            found = cloud.collect(Cloud({
                **answers(servers=[server('a'), {**server('b'), 'OS-EXT-SRV-ATTR:host': 'h2'}]),
                '/os-hypervisors/detail': {'hypervisors': [
                    {'service': {'host': 'h1'}, 'vcpus': 48, 'hypervisor_type': 'QEMU'},
                    *[{'service': {'host': 'h2'}, 'vcpus': 0, 'hypervisor_type': kind}] * 2]}}))
            judged = found.judged()
            self.assertEqual((['h1'], ['a']), (list(judged.hypervisors), list(judged.servers)))
        self.assertEqual({'h1', 'h2'}, set(found.hypervisors))
        self.assertIs(judged, judged.judged())

    def test_a_cell_that_is_down_does_not_fail_the_listing(self):
        inventory = cloud.collect(Cloud(answers(
            {'services': [service('h1'), DOWN]}, [server('a'), PARTIAL])))
        self.assertEqual(['a'], list(inventory.servers))
        self.assertEqual({'h2'}, inventory.unreachable)
        self.assertFalse(inventory.hypervisors['h2'].up)

    def test_a_cell_that_comes_back_meanwhile_counts_as_down(self):
        up = {'services': [service('h1'), service('h2')]}
        down = {'services': [service('h1'), DOWN]}
        for services in ([down, up], [up, down]):
            self.assertEqual({'h2'}, cloud.collect(Cloud(answers(services))).unreachable)

    def test_cinder_tells_of_vms_that_nova_does_not_list(self):
        asked = answers()
        asked['/volumes/detail'] = {'volumes': [
            {'id': name, 'os-vol-host-attr:host': host,
             'attachments': [{'server_id': uuid} for uuid in uuids]}
            for name, host, uuids in (
                ('v1', 'ceph', ['a', 'lost']), ('v2', 'nvme', ['lost']), ('v3', 'lvm', []),
                ('v4', None, ['lost']), ('v5', 'lvm', ['a']))]}
        self.assertEqual({'lost': {'ceph', 'nvme'}}, cloud.collect(Cloud(asked)).strangers)

    def test_limits_that_are_refused_do_not_count_and_others_are_unknown(self):
        volumes = {'volumes': [{'id': 'v1', 'volume_type': 'fast', 'size': 1}]}
        for status, found in ((403, None), (404, None), (500, {})):
            refusing = Cloud({**answers(), '/volumes/detail': volumes, '/qos-specs': status})
            limits = volume_limits.VolumeLimits(lambda text: None)
            self.assertEqual(found, cloud.collect(refusing, volume_limits=limits).volume_limits)

    def test_without_cinder_limits_of_volumes_do_not_count(self):
        found = Cloud(answers())
        found.block_storage = Missing()
        limits = volume_limits.VolumeLimits()
        self.assertIsNone(cloud.collect(found, volume_limits=limits).volume_limits)


class VolumesOfTest(unittest.TestCase):

    def test_only_what_is_not_known_is_asked(self):
        found = Cloud({'/servers/a': {'server': server('a')},
                       '/volumes/v2': {'volume': {'id': 'v2', 'os-vol-host-attr:host': 'lvm'}}})
        self.assertEqual(cloud.Volumes(('v1', 'v2'), {'v1': 'ceph', 'v2': 'lvm'}),
                         cloud.volumes_of(found, 'a', {'v1': 'ceph'}))
        self.assertEqual(['/servers/a', '/volumes/v2'], found.asked)

    def test_a_volume_that_is_gone_has_no_backend(self):
        found = Cloud({'/servers/a': {'server': server('a')}})
        self.assertEqual(cloud.Volumes(('v1', 'v2'), {}), cloud.volumes_of(found, 'a', {}))

    def test_of_a_vm_that_is_gone_or_in_a_cell_that_is_down_nothing_is_said(self):
        self.assertIsNone(cloud.volumes_of(Cloud({}), 'a', {}))
        self.assertIsNone(cloud.volumes_of(Cloud({'/servers/a': {'server': PARTIAL}}), 'a', {}))

    def test_a_service_that_fails_is_told(self):
        found = Cloud({'/servers/a': {'nonsense': 1}})
        with self.assertRaisesRegex(listing.CloudUnavailable, 'GET /servers/a'):
            cloud.volumes_of(found, 'a', {})


class ServerTestCase(unittest.TestCase):

    def test_disks_that_are_no_volumes(self):
        for image, ephemeral, swap, count in (
                (True, 0, 0, 1), (True, 20, 512, 3), (False, 0, 0, 0), (False, None, '', 0),
                (False, 0, 512, 1)):
            self.assertEqual(count, cloud.local_disks(image, ephemeral, swap))

    def test_they_are_known_from_a_listing(self):
        found = cloud.server({
            'id': 'a', 'name': 'a', 'tenant_id': 'p', 'OS-EXT-STS:vm_state': 'active',
            'image': {'id': 'i'}, 'flavor': {'original_name': 'm1', 'vcpus': 2, 'ephemeral': 10,
                                             'swap': 0, 'extra_specs': {
                                                 'quota:cpu_quota': '5', 'hw:x': 'y'}}})
        self.assertEqual((2, {'quota:cpu_quota': '5'}), (found.local_disks, found.quotas))

    def test_servers_with_the_same_flavor_are_equal_whatever_was_asked_of_them(self):
        first, second = (cloud.Server('a', 'a', 'p', 'h', 'm1', {'quota:cpu_quota': '5'}, 'i',
                                      'active') for _number in range(2))
        self.assertTrue(first.quotas)
        self.assertEqual(first, second)
