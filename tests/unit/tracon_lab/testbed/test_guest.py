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

import pathlib
import shutil
import subprocess
import unittest
from xml.etree import ElementTree

from tests.unit import folder
from tracon_lab.testbed import domain
from tracon_lab.testbed import image
from tracon_watcher import errors
from tracon_watcher.probe import images


class TestDefinition(unittest.TestCase):

    def definition(self, *disks):
        path = pathlib.Path('/images/a & b')
        return ElementTree.fromstring(domain.definition(
            'tracon-target', 'qemu', '3', path, path, list(disks), path, path))

    def test_one_vcpu_all_threads_on_the_measured_core(self):
        xml = self.definition()
        self.assertEqual('1', xml.findtext('vcpu'))
        self.assertEqual('512', xml.findtext('memory'))
        self.assertEqual('3', xml.find('vcpu').get('cpuset'))
        self.assertEqual('3', xml.find('cputune/emulatorpin').get('cpuset'))
        self.assertEqual('/images/a & b', xml.findtext('os/kernel'))

    def test_clock_and_acpi(self):
        xml = self.definition()
        self.assertIsNotNone(xml.find('features/acpi'))
        self.assertEqual('hpet', xml.find('clock/timer').get('name'))

    def test_without_a_port_and_with_more(self):
        path = pathlib.Path('/a')
        xml = ElementTree.fromstring(domain.definition(
            'other', 'qemu', '0', path, path, [], None, path, memory=80,
            more='<interface type="ethernet"/>', options='one=1'))
        self.assertIsNone(xml.find('devices/channel'))
        self.assertIsNotNone(xml.find('devices/interface'))
        self.assertEqual('80', xml.findtext('memory'))
        self.assertTrue(xml.findtext('os/cmdline').endswith(' one=1'))

    def test_disks_bypass_the_page_cache(self):
        xml = self.definition(domain.Disk('scratch', pathlib.Path('/a')),
                              domain.Disk('work', pathlib.Path('/b.sock'), 'data', read_only=True))
        first, second = xml.findall('devices/disk')
        self.assertEqual('none', first.find('driver').get('cache'))
        self.assertEqual('/a', first.find('source').get('file'))
        self.assertEqual('data', second.find('source').get('name'))
        self.assertEqual('/b.sock', second.find('source/host').get('socket'))
        self.assertEqual(['vda', 'vdb'], [d.find('target').get('dev') for d in (first, second)])
        self.assertEqual(['scratch', 'work'], [d.findtext('serial') for d in (first, second)])
        self.assertIsNone(first.find('readonly'))
        self.assertIsNotNone(second.find('readonly'))


class TestImage(folder.OwnFolderCase):

    def kernel(self, release):
        (self.folder / ('vmlinuz-' + release)).touch()
        (self.folder / release).mkdir()
        (self.folder / release / 'modules.dep').write_text(
            'kernel/drivers/virtio/virtio.ko: kernel/drivers/virtio/virtio_ring.ko\n'
            'kernel/drivers/virtio/virtio_ring.ko:\n'
            'kernel/drivers/block/virtio_blk.ko.xz: kernel/drivers/virtio/virtio.ko\n')

    def test_cloud_kernel_first_then_the_newest(self):
        for release in ('6.1.0-9-cloud-amd64', '6.1.0-56-cloud-amd64', '6.12.1-amd64'):
            self.kernel(release)
        self.assertEqual('6.1.0-56-cloud-amd64',
                         images.find_kernel(self.folder, self.folder)[1])

    def test_no_kernel(self):
        with self.assertRaisesRegex(errors.NotInstalled, 'linux-image-cloud-amd64'):
            images.find_kernel(self.folder, self.folder)

    def test_ring_is_loaded_before_virtio_and_built_in_modules_are_left_out(self):
        self.kernel('1')
        found = images.module_files(self.folder / '1', image.MODULES)
        self.assertEqual(['virtio_ring', 'virtio', 'virtio_blk'], list(found))
        self.assertEqual('virtio_blk.ko.xz', found['virtio_blk'].name)

    def test_what_a_module_needs_is_loaded_before_it(self):
        self.kernel('1')
        (self.folder / '1/modules.dep').write_text(
            'drivers/virtio_net.ko: net/net-failover.ko net/failover.ko\n'
            'net/net-failover.ko: net/failover.ko\nnet/failover.ko:\nunwanted.ko:\n')
        self.assertEqual(['failover', 'net_failover', 'virtio_net'],
                         list(images.module_files(self.folder / '1', ['virtio_net'])))

    def test_missing_program(self):
        with self.assertRaisesRegex(errors.NotInstalled, 'no-such-program is not installed'):
            images.tool('no-such-program')

    @unittest.skipUnless(shutil.which('cpio'), 'needs cpio, to read what was written')
    def test_archive(self):
        source = self.folder / 'program'
        source.write_bytes(b'abcde')
        archive = images.cpio({'init': source, 'a/b/text': b'some text'}, ('proc',))
        listing = subprocess.run(['cpio', '-t', '--quiet'], input=archive, check=True,
                                 capture_output=True).stdout.decode().split()
        self.assertEqual(['a', 'a/b', 'proc', 'init', 'a/b/text'], listing)
        text = subprocess.run(['cpio', '-i', '--quiet', '--to-stdout', 'a/b/text'],
                              input=archive, check=True, capture_output=True).stdout
        self.assertEqual(b'some text', text)
