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

import html.parser
import pathlib
import tempfile
import unittest

from tests.unit.tracon_lab.demo import synthetic
from tracon_lab.demo import arms
from tracon_lab.demo import comparison
from tracon_lab.demo import outcome
from tracon_lab.demo import report
from tracon_lab.demo import settings


class Checker(html.parser.HTMLParser):
    """Remembers text, references to other files, and tags that are not closed."""

    VOID = {'meta', 'link', 'br', 'img', 'input', 'hr'}

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.references, self.drawings = [], [], [], 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.drawings += tag == 'svg'
        if tag not in self.VOID:
            self.open.append(tag)
        self.references += [value for name, value in attributes
                            if name in ('src', 'href', 'xlink:href')
                            and not value.startswith(('#', 'data:'))]

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise AssertionError(f'</{tag}> closes nothing')

    def handle_data(self, data):
        self.text.append(data)


class TestReport(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / 'report.html'
        self.truth = synthetic.small_truth()

    def arm(self, hosts, **more):
        """Return a result in which a, b and c run on these hosts; None is refused."""
        vms = [synthetic.vm(name, program, host, flavor) for (name, program, flavor), host in zip(
            (('a', 'touchy', 'swift'), ('b', 'loud', 'plain'), ('c', 'calm', 'plain')), hosts)]
        judged = outcome.judged(vms, self.truth)
        for one in judged:
            one.update(predicted_slowdown=1.2, predicted_low=1.1, predicted_high=1.4)
        return {'vms': judged, 'requests': 3, 'refusals': [], 'warnings': [], **more}

    def written(self, seeds=1, **arms_of_a_seed):
        results = {seed: {name.replace('_', ', '): result
                          for name, result in arms_of_a_seed.items()}
                   for seed in range(1, seeds + 1)}
        report.write(self.path, settings.Settings((), 'synthetic', hosts=2, vms=3),
                     self.truth, {'emulated': 'yes: one <slow> spindle', 'date': '2026-01-01'},
                     results, comparison.rows(results),
                     comparison.repair(results, report.AUDITED))
        found = Checker(self.path.read_text(encoding='utf-8'))
        self.assertEqual([], found.open, 'tags that are not closed')
        self.assertEqual([], found.references, 'it needs other files')
        return found

    def test_one_seed(self):
        found = self.written(
            stock=self.arm(('host01', 'host01', 'host02')),
            enforce_history=self.arm(('host01', None, 'host01'),
                                     refusals=[synthetic.refusal('b', 2, 2)]))
        text = ' '.join(found.text)
        self.assertEqual(5, found.drawings)
        for part in ('one seed', '2.10 times', 'Refusals', 'not placed', '2 of 2', 'SYNTHETIC',
                     'one <slow> spindle', 'better than stock'):
            with self.subTest(part=part):
                self.assertEqual(part != 'better than stock', part in text)

    def test_several_seeds_have_intervals(self):
        found = self.written(seeds=3, **{name.replace(', ', '_'): self.arm(
            ('host01', 'host01', 'host02')) for name in arms.ARMS})
        text = ' '.join(found.text)
        self.assertEqual(6, found.drawings)
        self.assertIn('no difference seen', text)
        self.assertIn('3 seeds', text)
        self.assertIn('No host was refused', text)

    def audited(self, seeds=1, **more):
        before = self.arm(('host01', 'host02', 'host01'))['vms']
        during = self.arm(('host01', 'host01', 'host02'))['vms']
        after = self.arm(('host01', 'host02', 'host02'))['vms']
        audit = synthetic.audit(before, during, after, after, **more)
        return ' '.join(self.written(
            seeds, stock=self.arm(('host01', 'host01', 'host02')),
            enforce_history=self.arm(('host01', 'host01', 'host02'), audit=audit)).text)

    def test_the_migration_that_heals_is_named(self):
        text = self.audited()
        for part in ('b from host01 to host02', 'a 4.00 → 1.00', '0.75', 'after 2 audits, 1 migr',
                     'oracle’s best, 1 migr', 'healed in 1 of 1 seed',
                     'No VM is in breach after the audits'):
            with self.subTest(part=part):
                self.assertIn(part, text)

    def test_what_is_left_has_a_reason(self):
        one = {'vm': 'a', 'neighbour': 'b', 'flavor': 'swift', 'slowdown': 1.6,
               'iops_ratio': None, 'predicted_slowdown': 1.43, 'predicted_iops_ratio': None,
               'seen': False, 'oracle_avoids': True}
        text = self.audited(moves=[], left=[one, {**one, 'seen': True, 'oracle_avoids': False}])
        for part in ('recommends no migration', 'Predictions expect 1.43×: no breach',
                     'no single migration that is allowed', 'oracle’s assignment too'):
            with self.subTest(part=part):
                self.assertIn(part, text)

    def test_several_seeds_are_listed(self):
        text = self.audited(3)
        self.assertIn('seed by seed', text)
        self.assertIn('the neighbour is healed in 3', text)
