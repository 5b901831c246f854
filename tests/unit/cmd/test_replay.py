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

"""Recorded decisions are made again with other settings."""

import json
import pathlib
import tempfile
import time

from tests.unit import command_line
from tests.unit.engine.storage import base
from tracon_watcher.cmd import replay
from tracon_watcher.engine.storage import decisions
from tracon_watcher import errors


def host(name, score, bound, other_weights, breached=False, **more):
    """Return a host of a decision; its numbers are invented.

    :param bound: upper end of the limits that its VMs would breach
    """
    return {'host': name, 'mode': 'enforce', 'status': 'known', 'refused': breached,
            'weight': 0.5, 'rank': None, 'score': score, 'other_weights': other_weights,
            'slowdown': [1.0, 1.0 + score, 1.0 + 2.0 * score], 'iops_ratio': None,
            'worst': {'vm': 'resident', 'response': 'slowdown', 'before': 1.0,
                      'after': 1.0 + 3.0 * score, 'bound': None, 'limit': None},
            'breached_limits': [[1.0, bound]],
            'reasons': {'resident slowdown': 1} if breached else {}, **more}


#: Nova's own weighers prefer "full" by 1; harm of 0.2 there is 1/1.067 of a half.
EMPTY, FULL = host('empty', 0.0, 1.0, 0.0), host('full', 0.2, 1.3, 1.0)


def decision(*hosts, chosen='empty', **more):
    return base.decision(**{
        'at': time.time(), 'hosts': list(hosts), 'considered': len(hosts), 'chosen': chosen,
        'refused': sum(one['refused'] for one in hosts), 'weight_multiplier': 40.0,
        'on_all_refused': 'refuse', **more})


class ReplayTest(base.StorageCase):

    def run_command(self, *arguments):
        """Return the rows, by their setting."""
        return {row['setting']: row for row in command_line.rows(replay.Replay, *arguments)}

    def replay(self, documents, *arguments):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        path = pathlib.Path(folder, 'decisions.jsonl')
        path.write_text(''.join(f'{json.dumps(one)}\n' for one in documents), encoding='utf-8')
        return self.run_command(str(path), *arguments)

    def test_another_multiplier(self):
        rows = self.replay([decision(EMPTY, FULL)], '--weight-multiplier', '0,40')
        self.assertEqual(['as it was', 'decided again', 'weight_multiplier=0',
                          'weight_multiplier=40'], list(rows))
        self.assertEqual([0, 0, 1, 0], [row['changed'] for row in rows.values()])
        self.assertEqual([1.0, 1.0, 1.2, 1.0],
                         [round(row['slowdown_mean'], 6) for row in rows.values()])
        found = rows['weight_multiplier=0']
        self.assertEqual((1.4, 1.6, 1), tuple(round(found[name], 6) for name in (
            'upper_bound_p99', 'worst_vm_p99', 'compared')))

    def test_the_order_is_that_of_the_scheduler(self):
        # Half of 40, less what 0.2 of harm takes: 40 · (1 − 1 / (1 + 0.2 / 3)) / 2 = 1.25.
        for others, changed in ((1.2, 0), (1.3, 1)):
            rows = self.replay([decision(EMPTY, {**FULL, 'other_weights': others})])
            self.assertEqual(changed, rows['decided again']['changed'], others)

    def test_another_limit(self):
        listed = [decision(EMPTY, FULL), decision(FULL, chosen='full')]
        rows = self.replay(listed, '--max-slowdown', '1.2,1.4')
        self.assertEqual((1, 1), tuple(rows['max_slowdown=1.2'][name]
                                       for name in ('changed', 'refused')))
        self.assertEqual((0, 0), tuple(rows['max_slowdown=1.4'][name]
                                       for name in ('changed', 'refused')))
        # What is refused in one row is compared in none.
        self.assertEqual({1}, {row['compared'] for row in rows.values()})

    def test_nothing_is_refused_where_least_harm_decides(self):
        rows = self.replay([decision(FULL, chosen='full', on_all_refused='least_harm')],
                           '--max-slowdown', '1.2')
        self.assertEqual((0, 0), tuple(rows['max_slowdown=1.2'][name]
                                       for name in ('changed', 'refused')))

    def test_the_new_vm_and_the_iops_ratio_have_limits_too(self):
        own = {**FULL, 'slowdown': [1.5, 1.6, 1.7]}
        for one, more, refused in (
                (own, {}, 1),
                (own, {'newcomer': {'limits': {'background': True}}}, 0),
                ({**FULL, 'reasons': {'resident iops_ratio': 1}}, {}, 1)):
            rows = self.replay([decision(one, chosen='full', **more)], '--max-slowdown', '1.4')
            self.assertEqual(refused, rows['max_slowdown=1.4']['refused'], more)

    def test_another_mode(self):
        refused = host('refused', 0.1, 1.3, None, breached=True)
        listed = [decision({**EMPTY, 'score': 5.0, 'slowdown': [1.0, 6.0, 7.0]}, refused)]
        rows = self.replay(listed, '--mode', 'advise,enforce')
        self.assertEqual([0, 0, 0, 0], [row['refused'] for row in rows.values()])
        self.assertEqual(0, rows['mode=enforce']['changed'])
        # Nova did not weigh what was refused: it counts like the others.
        self.assertEqual((1, 0), (rows['mode=advise']['assumed'],
                                  rows['decided again']['assumed']))

    def test_combinations(self):
        rows = self.replay([decision(EMPTY, FULL)], '--mode', 'weigh,enforce',
                           '--max-slowdown', '1.2')
        self.assertIn('mode=enforce, max_slowdown=1.2', rows)
        self.assertEqual(4, len(rows))

    def test_what_is_not_recorded(self):
        old = {key: value for key, value in FULL.items()
               if key not in ('other_weights', 'breached_limits')}
        rows = self.replay([decision(EMPTY, old)], '--max-slowdown', '1.2')
        self.assertEqual((1, 0), (rows['decided again']['assumed'],
                                  rows['decided again']['unknown']))
        self.assertEqual(1, rows['max_slowdown=1.2']['unknown'])
        rows = self.replay([decision(FULL, chosen='full', considered=60)],
                           '--max-slowdown', '1.2')
        self.assertEqual((1, 0), tuple(rows['max_slowdown=1.2'][name]
                                       for name in ('unknown', 'refused')))
        rows = self.replay([decision(EMPTY, chosen='another', considered=60)])
        self.assertEqual((1, 0, 0), tuple(rows['decided again'][name] for name in (
            'unknown', 'changed', 'compared')))

    def test_an_unknown_host_ranks_by_the_median(self):
        unknown = {**host('unknown', 0.0, 1.0, 0.5), **dict.fromkeys(
            ('score', 'slowdown', 'worst', 'breached_limits')), 'status': 'stale'}
        rows = self.replay([decision(host('a', 0.0, 1.0, 0.0), unknown,
                                     host('b', 9.0, 1.0, 0.0), chosen='a')])
        self.assertEqual(0, rows['decided again']['changed'])

    def test_what_came_to_nothing_is_left_out(self):
        rows = self.replay([decision(EMPTY), decision(EMPTY, chosen=None),
                            decision({**FULL, 'refused': True}, chosen=None)])
        self.assertEqual((2, 1), (rows['as it was']['decisions'], rows['as it was']['refused']))

    def test_the_database(self):
        given = [decision(EMPTY, FULL, chosen=None, at=time.time() - 86400.0 * age)
                 for age in (1, 3, 20)]
        self.storage.decisions.add([decisions.Decision.of(one) for one in given])
        for one in given:
            self.storage.decisions.settle(base.settled(one['at'] + 1.0, 'empty', id=one['id']))
        folder = self.enterContext(tempfile.TemporaryDirectory())
        path = pathlib.Path(folder, 'tracon.conf')
        path.write_text(f'[database]\nconnection = {self.address}\n', encoding='utf-8')
        for days, count in (('2', 1), ('7', 2), ('30', 3)):
            rows = self.run_command('--config-file', str(path), '--days', days)
            self.assertEqual((count, 0), tuple(rows['decided again'][name] for name in (
                'decisions', 'changed')))
        with self.assertRaisesRegex(errors.InvalidDocument, '--days'):
            self.run_command('--config-file', str(path), '--days', '0.5')

    def test_files_that_are_none(self):
        with self.assertRaisesRegex(errors.InvalidDocument, 'line 2.*tracon-decision/1'):
            self.replay([decision(EMPTY), {'schema': 'another'}])
        with self.assertRaisesRegex(errors.InvalidDocument, 'JSON'):
            self.run_command('/nonexistent')
