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

import csv
import datetime
import lzma
from unittest import mock

import numpy as np

from tests.unit import command_line
from tests.unit.folder import FolderCase
from tracon_watcher.cmd import export
from tracon_watcher.cmd import probe
from tracon_watcher.cmd import services
from tracon_watcher import errors
from tracon_watcher.inventory import listing
from tracon_watcher.telemetry import gnocchi
from tracon_watcher.telemetry import rest
from tracon_watcher.telemetry import samples

NOW = datetime.datetime(2026, 3, 2, 12, 7, 13, tzinfo=datetime.timezone.utc).timestamp()
#: End of the last day: what may not be stored yet is left out.
END = datetime.datetime(2026, 3, 2, 11, 50, tzinfo=datetime.timezone.utc).timestamp()


def readings(**counters):
    """Return synthetic samples: by resource, times and CPU time in seconds."""
    table = samples.Samples(('cpu',))
    for name, (at, value) in counters.items():
        table.add(name, 0, at, np.array(value) * 1e9)
    return table.readings(-1e12, 1e12)


class CoresUsedTest(FolderCase):

    def used(self, at, value):
        return export.cores_used(readings(vm=(at, value)), 0.0, 4)[0].tolist()

    def test_a_counter_between_samples(self):
        # 0.5 cores, then 1.5, by samples that are not at the ends of intervals
        self.assertEqual([0.5, 1.0, 1.5, 1.5], self.used([0, 450, 1200], [0, 225, 1350]))

    def test_unknown_beyond_samples_across_gaps_and_resets(self):
        unknown = np.full(4, np.nan).tolist()
        np.testing.assert_equal([np.nan, 1.0, 1.0, np.nan],
                                self.used([200, 600, 1100], [0, 400, 900]))
        np.testing.assert_equal(unknown, self.used([0, 1200], [0, 100]))
        np.testing.assert_equal([1.0, np.nan, 1.0, 1.0],
                                self.used([0, 300, 600, 1200], [900, 1200, 0, 600]))
        np.testing.assert_equal(unknown, self.used([300], [0]))

    def test_resources_apart(self):
        found = export.cores_used(readings(a=([0, 600], [0, 600]), b=([0, 600], [0, 60])), 0.0, 2)
        np.testing.assert_allclose([[1.0, 1.0], [0.1, 0.1]], found)


class ServersTest(FolderCase):

    def test_those_that_run_and_those_that_were_deleted(self):
        nova = mock.create_autospec(listing.Service, instance=True)

        def entry(name, vcpus):
            return {'id': name, 'name': name, 'tenant_id': 'p', 'OS-EXT-STS:vm_state': 'active',
                    'flavor': {'original_name': 'f', 'vcpus': vcpus}}

        nova.pages.side_effect = [[entry('a', 1), {'id': 'd', 'status': 'UNKNOWN'}],
                                  [entry('b', 4)]]
        self.assertEqual({'a': ('p', 1), 'b': ('p', 4)}, export._servers(nova, END))
        self.assertEqual([{'all_tenants': 'True'}, {
            'all_tenants': 'True', 'changes-since': '2026-03-02T11:50:00+00:00'}],
            [one.args[2] for one in nova.pages.call_args_list])


class Reader(gnocchi.GnocchiReader):
    """Stands where Gnocchi is read: synthetic VMs a and b, and a resource that is none."""

    def __init__(self):
        super().__init__(mock.create_autospec(rest.Service, instance=True))

    def read(self, since, until, meters):
        at = np.arange(since, until, 300.0)
        young = at[at >= END - 3600.0]
        return readings(a=(at, at), b=(young, 0.5 * young), c=(at, at))


class ExportTest(FolderCase):

    def setUp(self):
        super().setUp()
        self.reader = Reader()
        self.servers = {'a': 4, 'b': 2}
        self.enterContext(mock.patch.object(probe, 'connect', autospec=True))
        self.enterContext(mock.patch.object(services, 'telemetry_reader', autospec=True,
                                            return_value=self.reader))
        self.enterContext(mock.patch.object(export.time, 'time', autospec=True, return_value=NOW))
        self.listed = self.enterContext(mock.patch.object(
            export, '_servers', autospec=True,
            side_effect=lambda *_given: {name: ('p', vcpus)
                                         for name, vcpus in self.servers.items()}))

    def export(self, name, *options, opened=open):
        path = self.folder / name
        said = command_line.output(export.Export, path, *options)
        with opened(path, 'rt', encoding='utf-8') as stream:
            return said, list(csv.DictReader(stream))

    def test_a_line_for_each_vm_and_day(self):
        said, found = self.export('vms.csv', '--days', '2')
        self.assertEqual(
            [('a', '2026-02-28T11:50+00:00'), ('a', '2026-03-01T11:50+00:00'),
             ('b', '2026-03-01T11:50+00:00')], [(one['vm'], one['begins']) for one in found])
        self.assertEqual(('p', '4', '25', '25'),
                         tuple(found[0][name] for name in ('project', 'vcpus', 'm0', 'm1435')))
        # b ran for the last hour: half a core of its two.
        self.assertEqual(['', '25'], [found[2][name] for name in ('m1370', 'm1380')])
        self.assertIn('3 lines', said)
        self.assertEqual(END - 2 * 86400.0, self.listed.call_args.args[1])

    def test_what_gnocchi_is_asked_for(self):
        self.export('vms.csv', '--granularity', '60', '--aggregation', 'last')
        self.assertEqual((60.0, 'last'),
                         (self.reader.settings.granularity, self.reader.settings.aggregation))

    def test_compressed(self):
        self.assertEqual(2, len(self.export('vms.csv.xz', opened=lzma.open)[1]))

    def test_without_samples_a_file_is_left_as_it_was(self):
        self.servers = {}
        (self.folder / 'vms.csv').write_text('before')
        with self.assertRaisesRegex(errors.InvalidOption, '--meter.*no samples of VMs'):
            self.export('vms.csv')
        self.assertEqual([], list(self.folder.glob('part-*')))
        self.assertEqual('before', (self.folder / 'vms.csv').read_text())
