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

import tempfile
import unittest

from tests.unit.tracon_lab.profiling import synthetic
from tracon_lab.profiling import errors
from tracon_lab.profiling import schedule
from tracon_lab.profiling import site

TENANT = {'id': 'x', 'name': 'tracon-measure-cmp1-target', 'tenant_id': 'theirs',
          'OS-EXT-SRV-ATTR:host': 'cmp1', 'metadata': {site.MARK: 'cmp1'}, 'status': 'ACTIVE'}


class SiteTestCase(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.built = synthetic.built(self.enterContext(tempfile.TemporaryDirectory()))
        self.cloud = synthetic.Cloud()

    def site(self, host='cmp1', **size):
        return site.Site(self.cloud, host, site.Size(**size), self.built, clock=self.cloud.clock,
                         sleep=self.cloud.sleep)


class TestSite(SiteTestCase):

    def test_vms_have_what_measuring_needs(self):
        made = self.site()
        made.boot({site.TARGET: schedule.CALIBRATE})
        server, = self.cloud.servers.values()
        self.assertEqual('cmp1', server['OS-EXT-SRV-ATTR:host'])
        # Watcher is to leave it where it is.
        self.assertEqual({'tracon_measure': 'cmp1', 'tracon:exclude': 'true'}, server['metadata'])
        flavor = self.cloud.flavors['f1']
        self.assertEqual((1, 512, 2, False), (flavor['vcpus'], flavor['ram'], flavor['disk'],
                                              flavor['os-flavor-access:is_public']))
        disk, = (one for one in self.cloud.images.values() if one['disk_format'] == 'raw')
        self.assertIn('console=ttyS0', disk['os_command_line'])
        kernel = self.cloud.images[disk['kernel_id']]
        self.assertEqual((b'the kernel', 'aki'), (kernel['content'], kernel['container_format']))
        self.assertEqual('', made.console(site.TARGET).partition('tracon wind')[0].replace(
            '[    0.1] Linux\r\n', ''))

    def test_the_kernel_is_uploaded_once(self):
        made = self.site()
        for _turn in range(2):
            made.boot({site.TARGET: schedule.CALIBRATE, site.BACKGROUND: schedule.CALIBRATE})
        self.assertEqual(2, len(self.cloud.servers))
        self.assertEqual(5, len(self.cloud.images))
        made.clear()
        self.assertEqual(1, len(self.cloud.images))
        made.remove()
        self.assertEqual(({}, {}), (self.cloud.servers, self.cloud.images))
        self.assertEqual({'small'}, set(self.cloud.flavors))

    def test_a_flavor_that_is_there_stays(self):
        with self.site(flavor='small') as made:
            made.boot({site.TARGET: schedule.CALIBRATE})
            self.assertEqual({'small'}, set(self.cloud.flavors))
        self.assertEqual({'small'}, set(self.cloud.flavors))
        with self.assertRaisesRegex(errors.ProfilingError, 'flavor large: there is none'):
            with self.site(flavor='large') as made:
                made.boot({site.TARGET: schedule.CALIBRATE})
        self.assertEqual({}, self.cloud.images)

    def test_consoles_and_deletions_are_of_our_own_vms_only(self):
        self.cloud.servers['x'] = dict(TENANT)
        self.cloud.servers['y'] = dict(TENANT, id='y', tenant_id='ours', metadata={})
        self.cloud.images['z'] = {'id': 'z', 'owner': 'theirs', 'name': 'tracon-measure-cmp1-z',
                                  site.MARK: 'cmp1'}
        with self.site() as made:
            made.boot({site.TARGET: schedule.CALIBRATE, site.BACKGROUND: schedule.CALIBRATE})
            for role in site.ROLES:
                made.console(role)
            self.assertEqual(['tracon-measure-cmp1-target (x)', 'tracon-measure-cmp1-target (y)'],
                             made.others())
        self.assertEqual({'x', 'y'}, set(self.cloud.servers))
        self.assertEqual({'z'}, set(self.cloud.images))
        touched = {path.split('/')[2] for method, path, _what in self.cloud.asked
                   if path.startswith('/servers/') and path != '/servers/detail'}
        self.assertEqual(set(self.cloud.guests), touched)

    def test_what_an_earlier_run_left_is_removed(self):
        self.site().boot({site.TARGET: schedule.CALIBRATE})
        other = self.site('cmp2')
        other.boot({site.TARGET: schedule.CALIBRATE})
        # Two VMs' disks and ramdisks, kernels and flavors; one host's are another's business.
        self.assertEqual(5, self.site().remove())
        self.assertEqual({'tracon-measure-cmp2-target'},
                         {one['name'] for one in self.cloud.servers.values()})
        self.assertEqual(5, other.remove())
        self.assertEqual(0, other.remove())

    def test_what_cannot_be_removed_is_named_and_the_rest_is(self):
        made = self.site()
        made.boot({site.TARGET: schedule.CALIBRATE})
        self.cloud.refused['delete', '/servers'] = 500
        with self.assertRaisesRegex(errors.CloudRefused,
                                    'could not be removed: server tracon-measure-cmp1-target'):
            made.remove()
        self.assertEqual({}, self.cloud.images)

    def test_a_vm_that_does_not_come_or_go(self):
        self.cloud.faults = ['No valid host was found.']
        with self.assertRaisesRegex(errors.CloudRefused, 'the target VM on cmp1 is ERROR: No '
                                                         'valid host was found.'):
            self.site().boot({site.TARGET: schedule.CALIBRATE})
        self.cloud.servers.clear()
        made = self.site()
        made.boot({site.TARGET: schedule.CALIBRATE})
        uuid, = self.cloud.servers
        self.cloud.servers[uuid]['status'] = 'BUILD'
        with self.assertRaisesRegex(errors.CloudRefused, 'BUILD still, 300 s after'):
            made._wait(site.TARGET, uuid)
        del self.cloud.servers[uuid]
        with self.assertRaisesRegex(errors.CloudRefused, 'is gone'):
            made._wait(site.TARGET, uuid)


class TestRefusals(SiteTestCase):

    def test_each_has_its_remedy(self):
        for status, remedy in ((403, 'needs an administrator'), (406, 'microversion 2.74'),
                               (401, 'password'), (500, 'see whether Nova runs')):
            with self.subTest(status):
                self.cloud.refused = {('post', '/flavors'): status}
                with self.assertRaisesRegex(errors.CloudRefused,
                                            f'Nova: POST /flavors: .*{remedy}'):
                    with self.site() as made:
                        made.boot({site.TARGET: schedule.CALIBRATE})
                self.assertEqual({}, self.cloud.images)
