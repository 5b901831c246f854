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

"""What each command asks, shows to people and gives to programs."""

import dataclasses
import json

import numpy as np

from tests.unit.api import base
from tests.unit.osc import base as osc
from tests.unit.osc import documented
from tracon_watcher.engine import idle_shares
from tracon_watcher.engine import probes
from tracon_watcher.placement import assessment
from tracon_watcher.placement import explanation
from tracon_watcher.placement import queues

WEB, BATCH, DB = (base.identity(name) for name in ('web', 'batch', 'db'))


class VMs(osc.OscCase):

    def test_table_for_people(self):
        text = self.told('vm', 'list')
        head = text.splitlines()[1]
        self.assertEqual(['Name', 'UUID', 'Project', 'Host', 'Slowdown', 'Efficiency', 'Predicted',
                          'Limit', 'Culprit', 'Harm to Others'],
                         [one.strip() for one in head.strip('| ').split('|')])
        (line,) = [one for one in text.splitlines() if one.startswith('| web ')]
        self.assertRegex(line, r'\| 1\.40 ± 0\.14 +\| 71 % ')
        self.assertIn('1.50 (breached)', line)
        self.assertIn('batch (100 %)', line)
        (unknown,) = [one for one in text.splitlines() if one.startswith('| strange ')]
        self.assertEqual(6, unknown.count(' - '))

    def test_json_for_programs(self):
        rows = {one['Name']: one for one in self.json('vm', 'list')}
        web = rows['web']
        self.assertEqual((WEB, base.OWN, 'alpha', 1.4, 1.5), tuple(
            web[name] for name in ('UUID', 'Project', 'Host', 'Slowdown', 'Limit')))
        self.assertEqual({'uuid': BATCH, 'name': 'batch', 'share': 1.0}, web['Culprit'])
        self.assertIsNone(rows['strange']['Predicted'])
        self.assertEqual((0.7143, None), (web['Efficiency'], rows['strange']['Efficiency']))
        self.assertIsInstance(web['Predicted'], float)

    def test_slowest_first_unless_asked_otherwise(self):
        self.assertEqual(['batch', 'cron', 'db', 'web', 'small', 'strange'],
                         [one['Name'] for one in self.json('vm', 'list')])
        self.assertEqual(['strange', 'cron', 'db', 'small', 'batch', 'web'], [
            one['Name'] for one in self.json('vm', 'list', '--sort', 'host:desc,name')])
        self.assertEqual(['batch', 'cron', 'db', 'small', 'strange', 'web'], [
            one['Name'] for one in self.json('vm', 'list', '--sort-column', 'Name')])
        # Columns that people read as text are sorted as the numbers they are.
        by_harm = [one['Harm to Others'] for one in self.json(
            'vm', 'list', '--sort-column', 'Harm to Others', '--sort-descending')]
        known = [one for one in by_harm if one is not None]
        self.assertEqual(sorted(known, reverse=True), known)

    def test_follows_pages_up_to_the_limit(self):
        self.api = self.build(largest=2)
        all_names = [one['Name'] for one in self.json('vm', 'list')]
        self.assertEqual(6, len(all_names))
        self.assertEqual(all_names[:5],
                         [one['Name'] for one in self.json('vm', 'list', '--limit', '5')])
        third = self.json('vm', 'list')[2]['UUID']
        self.assertEqual(all_names[3:],
                         [one['Name'] for one in self.json('vm', 'list', '--marker', third)])

    def test_says_when_the_cloud_changes_between_pages(self):
        self.api = self.build(largest=4)
        views = [base.cloud(self.now, version) for version in (7, 8)]

        def application(*asked, inner=self.api.application):
            self.view = views[min(len(seen), 1)]
            seen.append(1)
            return inner(*asked)

        seen = []
        self.api = type('Api', (), {'application': staticmethod(application)})
        code, out, err = self.run_command('vm', 'list', '-f', 'json')
        self.assertEqual(0, code)
        self.assertEqual(6, len(json.loads(out)))
        self.assertIn('changed from 3.7 to 3.8', err)

    def test_filters(self):
        for options, expected in (
                (('--host', 'alpha'), {'web', 'batch'}), (('--project', base.OWN),
                                                          {'web', 'db', 'cron'}),
                (('--name', 'sma'), {'small'}), (('--culprit', DB), {'cron', 'small'}),
                (('--in-breach',), {'web'}), (('--min-slowdown', '1.6'), {'batch'})):
            self.assertEqual(expected, {one['Name'] for one in self.json(
                'vm', 'list', *options)}, options)

    def test_long(self):
        (web,) = self.json('vm', 'list', '--long', '--name', 'web')
        self.assertEqual((True, 'less', 'known', 0.2), tuple(
            web[name] for name in ('In Breach', 'Agreement', 'Status', 'IOPS Limit')))
        self.assertLess(web['Predicted Low'], web['Predicted High'])

    def test_show(self):
        found = self.json('vm', 'show', DB)
        self.assertEqual(['cron', 'small'], [one['name'] for one in found['Culprits']])
        self.assertEqual(['cron', 'small'], sorted(one['name'] for one in found['Victims']))
        text = self.told('vm', 'show', DB)
        self.assertRegex(text, r'cron: \d+ %, without it \d\.\d\d')
        self.assertRegex(text, r'guest_cpu: 0\.5')

    def test_a_vm_by_its_name(self):
        self.assertEqual(DB, self.json('vm', 'show', 'db')['UUID'])
        self.assertEqual({'cron', 'small'}, {one['Name'] for one in self.json(
            'vm', 'list', '--culprit', 'db')})
        # "d" is a part of a name.
        self.assertIn('No VM that runs is named d;', self.fails('vm', 'show', 'd'))
        # Of others a tenant learns nothing by their names either.
        self.assertIn('No VM that runs is named batch;',
                      self.fails('vm', 'show', 'batch', user=base.MEMBER))
        # What is no name of a VM may be that of a request, in another form.
        self.assertIn('No VM that runs is named 17;', self.fails('explain', '17'))

    def test_several_of_one_name(self):
        view = self.view
        self.view = dataclasses.replace(view, vms={
            uuid: dataclasses.replace(one, name='twin') for uuid, one in view.vms.items()})
        error = self.fails('vm', 'show', 'twin')
        self.assertIn('6 VMs are named twin:', error)
        self.assertIn(DB, error)

    def test_tenant(self):
        rows = {one['Name']: one for one in self.json('vm', 'list', user=base.MEMBER)}
        self.assertEqual({'web', 'db', 'cron'}, set(rows))
        self.assertEqual('another VM', rows['web']['Culprit']['name'])
        self.assertIsNone(rows['web']['Host'])
        self.assertIn('another VM (100 %)', self.told('vm', 'list', user=base.MEMBER))
        self.assertIn('other VMs: ', self.told('vm', 'show', WEB, user=base.MEMBER))
        self.assertIn('HTTP 404', self.fails('vm', 'show', BATCH, user=base.MEMBER))

    def test_errors_name_what_is_wrong(self):
        self.assertIn("'colour' is no key; expected slowdown",
                      self.fails('vm', 'list', '--sort', 'colour'))
        self.assertIn("'up' is no direction", self.fails('vm', 'list', '--sort', 'name:up'))
        error = self.fails('vm', 'list', '--marker', 'gone')
        self.assertIn("marker='gone' is not allowed", error)
        self.assertRegex(error, r'HTTP 400, req-')
        self.assertIn('Policy interference:vms:list',
                      self.fails('vm', 'list', user=base.UNRELATED))


class Hosts(osc.OscCase):

    def test_list_and_show(self):
        rows = {one['Name']: one for one in self.json('host', 'list', '--long')}
        self.assertEqual((2, 1, 'known', 1.4), tuple(
            rows['alpha'][name] for name in ('VMs', 'In Breach', 'Status', 'Observed')))
        self.assertEqual('batch', rows['alpha']['Worst VM']['name'])
        self.assertEqual('alpha', next(iter(rows)))
        self.assertIn('batch: slowdown', self.told('host', 'show', 'alpha'))
        self.assertEqual(['gamma'], [one['Name'] for one in self.json(
            'host', 'list', '--status', 'unknown_cores')])
        self.assertIn('no host nowhere', self.fails('host', 'show', 'nowhere'))

    def test_contention(self):
        self.feel('alpha', probes.RelativeReading(probes.CONTENDED, self.now, 1.8, 1.5))
        self.assertIn('contended; no more than its own VMs explain',
                      self.told('host', 'show', 'alpha'))
        self.feel('alpha', probes.RelativeReading(probes.CONTENDED, self.now, 1.8, 1.5), 0.25)
        told = self.told('host', 'show', 'alpha')
        self.assertIn('contended; each VM counts as 1.28 times as slow', told)
        self.assertIn('memory: 1.80 times as long as undisturbed, at least 1.50', told)

    def test_not_for_tenants(self):
        self.assertIn('HTTP 403', self.fails('host', 'list', user=base.MEMBER))
        self.assertIn('HTTP 403', self.fails('host', 'show', 'alpha', user=base.MEMBER))


class Summary(osc.OscCase):

    def test_of_all_vms_that_are_known(self):
        found = self.json('summary')
        self.assertEqual((6, 1, 1, 4, 3), (
            found['VMs'], found['Unknown'], found['In Breach'], found['Hosts'],
            found['Hosts by Status']['known']))
        shares = [one['Efficiency'] for one in self.json('vm', 'list')]
        known = [one for one in shares if one is not None]
        self.assertEqual(5, len(known))
        self.assertAlmostEqual(sum(known) / 5, found['Mean Efficiency'], places=3)
        self.assertRegex(self.told('summary'), r'Mean Efficiency +\| \d\d % ')
        # Of each host it is that of the slowest VM.
        for one in self.json('host', 'list'):
            if one['Slowdown'] is not None:
                self.assertAlmostEqual(1 / one['Slowdown'], one['Efficiency'], places=4)
        self.assertIn('HTTP 403', self.fails('summary', user=base.MEMBER))


class Ledger(osc.OscCase):

    def test_by_week_and_by_move(self):
        self.decisions.recommended = documented.moves(documented.cloud())
        last, first = self.json('ledger')
        self.assertEqual((2, 2, 0, 0), tuple(last[name] for name in (
            'Moves', 'Helped', 'Did Not Help', 'Unknown')))
        self.assertAlmostEqual(0.77, last['Measured Gain'])
        self.assertEqual((1, 0, 0.0), (
            first['Did Not Help'], first['Helped'], first['VM Hours Avoided']['hours']))
        self.assertRegex(self.told('ledger'), r'W\d\d \| +2 \| +2 \| .*\d\.\d \(\d+\.\d to ')
        text = self.told('ledger', '--moves')
        self.assertIn('1.52 → 1.35, measured 1.55, -', text)
        self.assertIn('did_not_help', text)
        self.decisions.recommended[0]['changes'] = []
        self.assertIn('| -  ', self.told('ledger', '--moves'))
        # One of the two of this week is left out of the sum, and counted.
        self.assertIn('12.0 (0.0 to 24.0), 1 moves unknown', self.told('ledger'))

    def test_remedies_for_one_vm(self):
        self.decisions.recommended = [base.move(self.now)]
        self.decisions.kept = [base.refusal(self.now - 900)]
        self.decisions.audits = [{**base.audit(self.now - 800), 'removals': [base.removal()]}]
        text = self.told('ledger', '--vm', 'web')
        for line in (r'Z \| refuse +\| batch \| alpha \| - +\| 1\.20 → would have been 1\.90 ',
                     r'Z \| remove +\| cron +\| alpha \| - +\| 1\.70 → 1\.30 ',
                     r'Z \| migrate +\| batch \| alpha \| delta \| 1\.62 → 1\.00, measured 1\.07'):
            self.assertRegex(text, line)
        rows = self.json('ledger', '--vm', WEB)
        self.assertEqual(['refuse', 'remove', 'migrate'],
                         [one['Remedy'] for one in rows])
        self.assertEqual({'before': 1.7, 'after': 1.3, 'measured': []}, rows[1]['Slowdown'])
        self.assertIsNone(rows[0]['Throttled'])

    def test_what_was_throttled_for_one_vm(self):
        self.decisions.throttled = [
            base.episode(self.now - 600), base.episode(self.now - 500, before=None),
            base.episode(self.now - 400, resource='cores', ended_at=None, before=None,
                         least=None, slowdowns_before={WEB: None})]
        del self.decisions.throttled[2]['slowdowns_after']
        text = self.told('ledger', '--vm', 'web')
        for line in (r'Z \| throttle \| -  \| alpha \| -  \| 1\.42 → 1\.08 +\| processor: '
                     r'2\.4 → 0\.3 cores, until 20\d\d-',
                     r'1\.42 → 1\.08 +\| processor: - → 0\.3 cores, until 20',
                     r'\| - \(before: no counters of it from just before; after: its end was not '
                     r'told\) \| cores: groups paused, until - '):
            self.assertRegex(text, line)
        self.assertEqual(['throttle'] * 3, [one['Remedy'] for one in self.json(
            'ledger', '--vm', WEB)])
        self.assertEqual(0.3, self.json('ledger', '--vm', WEB)[0]['Throttled']['least'])

    def test_not_for_tenants(self):
        self.assertIn('HTTP 403', self.fails('ledger', user=base.MEMBER))


class HostTypes(osc.OscCase):

    def test_list(self):
        self.view = base.cloud(self.now, learnt={'synthetic': queues.LearnedParameters(
            1.4, 2.0, 0.2, 30.0, 0.125, 0.2, 0.32)})
        text = self.told('host', 'type', 'list')
        self.assertRegex(
            text, r'old +\| +1 \| +1 \| - +\| unknown_cores \| not yet checked \| 0\.0 ')
        self.assertRegex(text, r'synthetic +\| +3 \| +5 \| 1 +\| drifted +\| 40 % +\| 30\.0 '
                               r'+\| 12\.5 % +\| 20\.0 % +\| 32\.0 % +\| × 1\.40 +\| 2 ')
        rows = {one['Host Type']: one for one in self.json('host', 'type', 'list')}
        self.assertEqual(('unknown_cores', 1.0, 1.0, 8.0, None), tuple(
            rows['old'][name] for name in ('Status', 'Trust', 'Waits for Cores',
                                           'Requests at Once', 'Error')))
        self.assertIn('HTTP 403', self.fails('host', 'type', 'list', user=base.MEMBER))


class WhatIf(osc.OscCase):

    def test_a_host_that_is_down(self):
        rows = {one['VM']['name']: one for one in self.json('what-if', '--host-down', 'alpha')}
        self.assertEqual(('alpha', 'delta', 1.5, 'stays'), tuple(
            rows['web'][name] for name in ('Host', 'To', 'Limit', 'Breach')))
        self.assertIsInstance(rows['web']['Before'], float)
        text = self.told('what-if', '--host-down', 'alpha')
        self.assertIn('host alpha down: 2 VMs, 2 of them have a host\n'
                      '2 of 3 other hosts assessed\nbreaches that end: 0, that begin: 0;', text)
        self.assertRegex(text, r'\| web +\| alpha +\| delta +\| 1\.50 +\| \d\.\d\d \(')
        self.now += 601
        text = self.told('what-if', '--host-down', 'alpha')
        self.assertIn('2 VMs, 0 of them have a host', text)
        self.assertIn('web: no host; its demand is unknown, or no known host', text)
        self.assertRegex(text, r'\| web +\| alpha +\| - +\| 1\.50 +\| - +\| - +\| - ')

    def test_a_limit_that_every_host_breaches(self):
        cluster = self.view.assessor.cluster
        judged = assessment.Assessor(dataclasses.replace(
            cluster, max_slowdown=np.full(len(cluster.uuids), 1.001)),
            self.view.assessor.settings)
        self.view = dataclasses.replace(self.view, assessor=judged, moment=judged)
        self.assertRegex(self.told('what-if', '--host-down', 'alpha').replace('\n  ', ' '),
                         r'web: a limit would be breached on each assessed host; (beta|delta) has')

    def test_a_live_migration(self):
        text = self.told('what-if', '--migrate', 'batch,delta')
        self.assertIn('VM batch from alpha to delta\nagainst it: nothing\n'
                      'breaches that end: 1, that begin: 0; VMs there that are not affected: 0',
                      text)
        rows = {one['VM']['name']: one for one in self.json('what-if', '--migrate',
                                                            f'{BATCH},delta')}
        self.assertEqual(('delta', None, 'ends'), (
            rows['batch']['To'], rows['web']['To'], rows['web']['Breach']))
        self.assertIn('against it: is unknown: unknown_cores',
                      self.told('what-if', '--migrate', 'batch,gamma'))

    def test_a_new_vm(self):
        given = f'{base.FLAVOR},{base.IMAGE},{base.OWN}'
        text = self.told('what-if', '--boot', given)
        self.assertIn(f'new VM of flavor m1.small, image {base.IMAGE}, project {base.OWN}\n'
                      '4 hosts considered, ', text)
        self.assertIn(f'its demand is taken from: {base.OWN}|m1.small|', text)
        self.assertRegex(text, r'\| 1 +\| delta +\| chosen +\| 1\.00 ')
        self.assertIn('alpha: refused: the slowdown of web', text)
        rows = {one['Host']: one for one in self.json('what-if', '--boot', given)}
        self.assertIsNone(rows['delta']['Hurts Most'])
        self.assertIn(rows['beta']['Hurts Most']['name'], ('db', 'cron', 'small'))
        self.assertIn('rank 1', rows['delta']['Why'])
        self.assertIn('booted from a volume, any project', self.told(
            'what-if', '--boot', f'{base.FLAVOR},,'))

    def test_errors_name_value_and_remedy(self):
        for arguments, said in (
                (('--host-down', 'omega'), 'There is no host omega.'),
                (('--migrate', 'omega,delta'), 'No VM that runs is named omega; give its uuid'),
                (('--migrate', 'batch'), '--migrate batch: expected <vm>,<host>, with 1 commas'),
                (('--migrate', 'batch,alpha'), 'another host than that of the VM'),
                (('--boot', 'x,,'), 'Give the name of a flavor that VMs have: m1.small.'),
                (('--boot', 'm1.small'), 'expected <flavor>,<image>,<project>'),
                (('--boot', ',,'), 'expected <flavor>,<image>,<project>'),
                ((), 'one of the arguments')):
            self.assertIn(said, self.fails('what-if', *arguments), arguments)
        self.assertIn('HTTP 403', self.fails('what-if', '--host-down', 'alpha', user=base.MEMBER))


class Explain(osc.OscCase):

    def setUp(self):
        super().setUp()
        self.decisions.kept = [{
            **explanation.of_now(self.view.assessor, DB, self.now), 'id': 'some-id',
            'request': 'req-1', 'operation': 'move', 'snapshot': [base.EPOCH, base.VERSION]}]

    def test_for_people_and_programs(self):
        text = self.told('explain', 'req-1')
        self.assertIn(f'VM db {DB}', text)
        self.assertIn('move at 20', text)
        self.assertIn('request req-1', text)
        self.assertIn('hosts considered', text)
        rows = {one['Host']: one for one in self.json('explain', 'req-1')}
        self.assertEqual(('chosen', 'refused'), (rows['beta']['Verdict'],
                                                 rows['alpha']['Verdict']))
        self.assertIn('web', rows['alpha']['Why'])
        self.assertIn('would have passed', rows['alpha']['What Would Differ'])
        low, mean, high = rows['beta']['Slowdown']
        self.assertTrue(low < mean < high)

    def test_one_host_and_more_columns(self):
        (row,) = self.json('explain', 'req-1', '--host', 'beta', '--long')
        self.assertEqual(('some-id', DB), (row['Decision'], row['VM']))
        self.assertEqual({base.identity('cron'), base.identity('small')},
                         {one['vm'] for one in row['Residents']})

    def test_now(self):
        self.assertIn('now at', self.told('explain', WEB, '--now'))

    def test_tenant_is_told_of_its_own_vm_alone(self):
        (row,) = self.json('explain', 'req-1', user=base.MEMBER)
        self.assertEqual(DB, row['VM'])
        self.assertEqual(1, row["For Another VM's"])
        self.assertNotIn('Host', row)
        text = self.told('explain', 'req-1', user=base.MEMBER)
        for secret in ('alpha', 'beta', 'batch', 'small'):
            self.assertNotIn(secret, text)
        self.assertIn('HTTP 403', self.fails('explain', DB, '--now', user=base.MEMBER))

    def test_errors(self):
        self.assertIn('No decision on req-2', self.fails('explain', 'req-2'))
        self.assertIn('from 1 to 10', self.fails('explain', 'req-1', '--decisions', '11'))


class ExplainAudit(osc.OscCase):

    def setUp(self):
        super().setUp()
        self.decisions.audits = [base.audit(self.now)]

    def test_for_people(self):
        text = self.told('explain', '--audit', base.AUDIT)
        for said in ('moves small from beta to delta', 'VMs in breach: 2 before, 1 after its 1 ',
                     'max_migrations=1 is reached', 'web: slowdown 1.62 > 1.50',
                     'beta and 11 more', 'no room beside db', 'too little is known of the host'):
            self.assertIn(said, text)
        # A host and its breaches stand once.
        self.assertEqual((1, 1), (text.count('| alpha'), text.count('1.62')))
        self.assertIn('web', self.told('explain', '--audit', 'latest', '--host', 'alpha'))

    def test_for_programs(self):
        rows = self.json('explain', '--audit', 'latest', '--long')
        self.assertEqual(['alpha', 'alpha', 'gamma'], [one['Host'] for one in rows])
        self.assertEqual(['room', 'stays', 'unknown'], [one['Against'] for one in rows])
        self.assertEqual(({'uuid': BATCH, 'name': 'batch'}, {'host': 'beta', 'hosts': 12}),
                         (rows[0]['VM'], rows[0]['To']))
        self.assertEqual([{'uuid': WEB, 'name': 'web'}], rows[0]['Ends'])

    def test_errors(self):
        self.assertIn('Audit nowhere has told of nothing', self.fails(
            'explain', '--audit', 'nowhere'))
        self.assertIn('required', self.fails('explain'))
        self.assertIn('not allowed with', self.fails('explain', 'req-1', '--audit', 'latest'))


class Capacity(osc.OscCase):

    def setUp(self):
        super().setUp()
        values = np.full((24, 2, 3), np.nan)
        values[:, 0] = 0.9, 0.5, np.nan
        self.view = dataclasses.replace(self.view, idle=idle_shares.IdleShares(
            tuple(range(498_864, 498_888)), ('alpha', 'beta'), values))

    def test_for_people(self):
        text = self.told('capacity')
        self.assertIn('4 hosts, 24 hours from 2026-11-29T00:00:00Z to 2026-11-30T00:00:00Z\n'
                      'idle: CPU 90 %, Memory 50 %, Disk -\n'
                      'unknown hours of hosts: CPU in 72 of 96, Memory in 72 of 96, Disk in 96 of '
                      '96\n', text)
        self.assertRegex(text, r'now: \d\.\d of 3 cores idle on 3 hosts, \d\.\d of them for '
                               r'background work; 1 hosts unknown\n')
        (alpha,) = [one for one in text.splitlines() if one.startswith('| alpha ')]
        self.assertIn('| 90 % (90 to 90 %) | 50 % (50 to 50 %) | -         | Disk 24 ', alpha)
        self.assertIn('| alpha | 90 %', self.told('capacity', '--limit', '1'))

    def test_for_programs(self):
        rows = {one['Host']: one for one in self.json('capacity')}
        self.assertEqual((0.9, None, {'cpu': 0, 'memory': 0, 'disk': 24}), (
            rows['alpha']['CPU Idle']['mean'], rows['alpha']['Disk Idle'],
            rows['alpha']['Unknown Hours']))
        self.assertEqual({'5', '25', '50', '75', '95'},
                         set(rows['alpha']['CPU Idle']['percentiles']))
        self.assertEqual((1.0, 1.0, 0, 0), tuple(rows['delta'][name] for name in (
            'Idle Cores', 'For Background', 'VMs', 'With Limit')))
        self.assertIsNone(rows['gamma']['For Background'])
        hours = self.json('capacity', '--by', 'hour')
        self.assertEqual(24, len(hours))
        self.assertEqual({'Hour', 'CPU Idle', 'Memory Idle', 'Disk Idle', 'Unknown Hours'},
                         set(hours[0]))
        (cloud,) = self.json('capacity', '--by', 'cloud')
        self.assertEqual((4, 1), (cloud['Hosts'], cloud['Unknown Hosts']))

    def test_before_any_hour_and_without_any_known_host(self):
        self.view = dataclasses.replace(self.view, idle=idle_shares.IdleShares())
        self.now += 601
        self.assertIn('4 hosts, no hour of counters yet\nnow: all hosts unknown\n',
                      self.told('capacity'))

    def test_errors(self):
        self.assertIn('invalid choice', self.fails('capacity', '--by', 'year'))
        self.assertIn('is no key', self.fails('capacity', '--sort', 'uuid'))


class Roles(osc.OscCase):
    """Every command in every role: what is answered, or the status of the refusal."""

    ROLES = (base.ADMIN, base.READER, base.MEMBER, base.STRANGER, base.UNRELATED)
    ANSWERS = {
        ('vm', 'list'): (0, 0, 0, 0, 403), ('vm', 'show', WEB): (0, 0, 0, 404, 403),
        ('vm', 'show', BATCH): (0, 0, 404, 404, 403),
        ('host', 'list'): (0, 0, 403, 403, 403), ('host', 'show', 'alpha'): (0, 0, 403, 403, 403),
        ('explain', 'req-1'): (0, 0, 0, 404, 403), ('explain', BATCH): (0, 0, 404, 404, 403),
        ('explain', DB, '--now'): (0, 0, 403, 403, 403),
        ('explain', '--audit', 'latest'): (0, 0, 403, 403, 403),
        ('host', 'type', 'list'): (0, 0, 403, 403, 403),
        ('summary',): (0, 0, 403, 403, 403), ('capacity',): (0, 0, 403, 403, 403),
        ('ledger',): (0, 0, 403, 403, 403),
        ('what-if', '--host-down', 'alpha'): (0, 0, 403, 403, 403),
        ('what-if', '--boot', 'm1.small,,'): (0, 0, 403, 403, 403),
        ('what-if', '--migrate', f'{BATCH},delta'): (0, 0, 403, 403, 403)}

    def test_every_command_in_every_role(self):
        self.decisions.kept = [{
            **explanation.of_now(self.view.assessor, DB, self.now), 'request': 'req-1'}]
        self.decisions.audits = [base.audit(self.now)]
        for arguments, answers in self.ANSWERS.items():
            for role, expected in zip(self.ROLES, answers, strict=True):
                code, _out, err = self.run_command(*arguments, user=role)
                self.assertEqual(expected == 0, code == 0, f'{role}: {arguments}: {err}')
                if expected:
                    self.assertIn(f'HTTP {expected}', err)
        self.assertEqual({name.split()[1:3][0] for name in osc.COMMANDS},
                         {arguments[0] for arguments in self.ANSWERS})
