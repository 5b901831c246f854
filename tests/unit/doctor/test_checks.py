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

"""Each thing that is broken gives its finding and no other; what is healthy gives none."""

import dataclasses
import math
import unittest

from nova_filters import policy
from nova_filters import scheduling_result
from tests.unit.doctor import healthy
from tracon_watcher.doctor import answers
from tracon_watcher.doctor import checks
from tracon_watcher.doctor import configuration
from tracon_watcher.doctor import findings

UNREAD = findings.Unread('it does not answer', 'start it')

#: What is broken; the facts that change; severity, subject, words of the finding, of the remedy.
BROKEN = (
    ('filter missing', {'nova': healthy.nova(enabled_filters=('ComputeFilter',))},
     'error', 'filter', 'not in enabled_filters', 'as the last'),
    ('filter not last',
     {'nova': healthy.nova(enabled_filters=('InterferenceFilter', 'ComputeFilter'))},
     'warning', 'filter', 'not the last', 'at the end'),
    ('filter not available',
     {'nova': healthy.nova(available_filters=(configuration.ALL_FILTERS,))},
     'error', 'filter', 'enabled and not available', configuration.FILTER),
    ('all_filters lost', {'nova': healthy.nova(available_filters=(configuration.FILTER,))},
     'error', 'filter', 'does not find ComputeFilter', configuration.ALL_FILTERS),
    ('weigher missing', {'nova': healthy.nova(weight_classes=(configuration.ALL_WEIGHERS,))},
     'error', 'weigher', 'not in weight_classes', configuration.WEIGHER),
    ('weigher missing, filter enforces',
     {'nova': healthy.nova(weight_classes=(configuration.ALL_WEIGHERS,), mode='enforce')},
     'warning', 'weigher', 'not in weight_classes', configuration.WEIGHER),
    ('all_weighers lost', {'nova': healthy.nova(weight_classes=(configuration.WEIGHER,))},
     'warning', 'weigher', "Nova's own weighers are off", configuration.ALL_WEIGHERS),
    ('multiplier 0', {'nova': healthy.nova(weight_multiplier=0.0)},
     'error', 'weigher', 'weight_multiplier is 0', '40'),
    ('multiplier negative', {'nova': healthy.nova(weight_multiplier=-1.0)},
     'error', 'weigher', 'less harm are avoided', '40'),
    ('weigher dwarfed', {'nova': healthy.nova(weight_multiplier=1.0)},
     'error', 'weigher', 'together they count 4 ', 'weight_multiplier to 20'),
    ('weigher dwarfed by one',
     {'nova': healthy.nova(multipliers={**healthy.MULTIPLIERS, 'ram_weight_multiplier': 1000.0})},
     'error', 'weigher', 'ram_weight_multiplier 1000', 'lower the others'),
    ('weigher dwarfs', {'nova': healthy.nova(weight_multiplier=5000.0, penalties={})},
     'warning', 'weigher', 'outvotes all others', 'to 20'),
    ('weigher above penalties', {'nova': healthy.nova(penalties={
        'build_failure_weight_multiplier': 10000.0})},
     'warning', 'weigher', 'build_failure_weight_multiplier 10000', 'below 10'),
    ('mode off', {'nova': healthy.nova(mode='off')}, 'error', 'mode', 'nothing is judged', 'mode'),
    ('file instead of engine', {'nova': healthy.nova(plugin=healthy.plugin(
        snapshot_source='file', snapshot_there=True)), 'watcher': None},
     'error', 'snapshot', 'nova-scheduler reads the file /snapshot', 'snapshot_source = engine'),
    ('file missing', {'engine_there': False, 'watcher': None, 'nova': healthy.nova(
        plugin=healthy.plugin(snapshot_source='file', snapshot_there=False))},
     'error', 'snapshot', 'which is not there', 'tracon snapshot build'),
    ('Watcher by another snapshot', {'engine_there': False, 'watcher': healthy.plugin(
        snapshot_source='file', snapshot_there=True)},
     'warning', 'snapshot', 'they may disagree', 'the same'),
    ('unversioned notifications', {'nova': healthy.nova(notification_format='unversioned')},
     'warning', 'notifications', 'no versioned notifications', 'notification_format = both'),
    ('no notifications', {'nova': healthy.nova(drivers=('noop',))},
     'warning', 'notifications', 'sends no notifications', 'messagingv2'),
    ('other topic', {'nova': healthy.nova(topics=('mine',))},
     'warning', 'notifications', 'to mine', 'versioned_notifications_topics'),
    ('other exchange', {'nova': healthy.nova(exchange='compute')},
     'warning', 'notifications', 'exchange compute', 'nova_exchange = compute'),
    ('notifications elsewhere', {'nova': healthy.nova(notified=healthy.broker('192.0.2.9'))},
     'warning', 'notifications', 'to 192.0.2.9:5672', 'transport_url'),
    ('other broker', {'nova': healthy.nova(plugin=healthy.plugin(
        broker=healthy.broker(virtual_host='nova')))},
     'error', 'broker', 'no snapshot arrives', 'nova.conf'),
    ('other broker for Watcher', {'watcher': healthy.plugin(broker=healthy.broker('192.0.2.9'))},
     'error', 'broker', 'watcher.conf names the broker 192.0.2.9', 'watcher.conf'),
    ('other queues', {'engine': healthy.engine(options={
        **healthy.OPTIONS, 'rabbit_quorum_queue': False}), 'watcher': None},
     'error', 'broker', r'rabbit_quorum_queue \(True, tracon.conf False\)', 'copy'),
    ('age below polling', {'engine': healthy.engine(maximum_age_seconds=100.0)},
     'warning', 'engine', 'maximum_age_seconds is 100', '900'),
    ('granularity', {'engine': healthy.engine(granularity_seconds=300.0)},
     'warning', 'engine', 'granularity_seconds is 300', 'remove'),
    ('calibration', {'engine': healthy.engine(calibration='c.json: no such file')},
     'error', 'engine', 'does not start: c.json', 'calibrate'),
    ('old package', {'unfit_packages': ('nova 30.0 is installed, >=34.0.0 is supported',)},
     'warning', 'versions', 'nova 30.0', 'upgrade'),
    ('database', {'database': findings.Unread('no schema', 'upgrade', findings.Severity.ERROR)},
     'error', 'database', 'no schema', 'upgrade'),
    ('broker away', {'broker': findings.Unread('away', 'start it', findings.Severity.ERROR)},
     'error', 'broker', 'away', 'start it'),
    ('notifications unread', {'queues': {'tracon-notifications': answers.Queue(9, 0)}},
     'warning', 'notifications', 'has no reader', 'healthz'),
    ('notifications read by others', {'queues': {'tracon-notifications': answers.Queue(0, 3)}},
     'warning', 'notifications', '3 read the queue tracon-notifications', 'virtual host'),
    ('queue that grows', {'queues': {'versioned_notifications.info': answers.Queue(20000, 0)}},
     'warning', 'notifications', '20000 messages wait', 'max-length'),
    ('service away', {'services': (answers.Answer('Placement', 'it answers with status 503'),)},
     'error', 'services', 'Placement: it answers with status 503', 'log'),
    ('service away that need not be', {'services': (answers.Answer('Cinder', 'no', vital=False),)},
     'warning', 'services', 'Cinder', 'log'),
    ('clock ahead', {'services': (answers.Answer('Nova', ahead=42.0),)},
     'warning', 'clocks', "Nova is 42 s ahead of this machine's", 'NTP'),
    ('clock behind', {'services': (answers.Answer('Nova', ahead=-42.0),)},
     'warning', 'clocks', 'Nova is 42 s behind', 'NTP'),
    ('samples ahead', {'samples': healthy.samples(age={'c1': -30.0, 'c2': 9.0, 'c3': 9.0})},
     'warning', 'clocks', 'samples of c1 are from the future', 'NTP'),
    ('hosts of VMs hidden', {'servers': ({'id': 'a'},), 'roles': frozenset({'service'})},
     'error', 'permissions', 'may not see the hosts', 'os-extended-server-attributes'),
    ('extra specs hidden', {'servers': ({'OS-EXT-SRV-ATTR:host': 'c1', 'flavor': {'vcpus': 1}},)},
     'error', 'permissions', 'may not see the extra specs', 'servers:show:flavor-extra-specs'),
    ('no VM, no role', {'servers': (), 'roles': frozenset({'service'})},
     'unknown', 'permissions', 'there is no VM', 'admin'),
    ('old Nova', {'microversion': (2, 96)}, 'error', 'versions', '2.96, the engine needs 2.98',
     'upgrade'),
    ('validator', {'extra_specs_validated': False},
     'warning', 'extra specs', 'takes any value', 'nova.api.extra_spec_validators'),
    ('no telemetry', {'samples': healthy.samples(age={}, interval=None)},
     'error', 'telemetry', 'no sample for 900 s of 3 of 3 hosts: c1, c2, c3', 'polling.yaml'),
    ('telemetry asked otherwise', {'samples': healthy.samples(
        age={}, interval=None, asked='Prometheus was asked for series with the label resource')},
     'error', 'telemetry', 'c3; Prometheus was asked for series with the label', 'polling.yaml'),
    ('telemetry of other names', {'samples': healthy.samples(age={'c1.example.org': 60.0})},
     'error', 'telemetry', 'c1, c2, c3; samples came of c1.example.org, which are no names',
     'host of ceilometer.conf be that of nova.conf'),
    ('telemetry of a host missing', {'samples': healthy.samples(age={'c1': 60.0, 'c2': 60.0})},
     'warning', 'telemetry', '1 of 3 hosts: c3', 'ceilometer-polling'),
    ('telemetry old', {'samples': healthy.samples(age={'c1': 60.0, 'c2': 60.0, 'c3': 400.0})},
     'warning', 'telemetry', 'up to 400 s old: c3', 'ceilometer-polling'),
    ('telemetry coarse', {'samples': healthy.samples(interval=300.0)},
     'warning', 'telemetry', 'polled every 300 s', 'polling.yaml'),
    ('engine does not collect', {'health': healthy.health(checks={'collect': False})},
     'error', 'engine', '"collect" fails', 'telemetry'),
    ('engine does not listen', {'health': healthy.health(checks={'listen': False})},
     'warning', 'engine', '"listen" fails', 'broker'),
    ('engine knows nothing', {'health': healthy.health(view=None)},
     'error', 'engine', 'collected nothing', 'ready'),
    ('engine is stale', {'health': healthy.health(view={'age_seconds': 1000.0})},
     'error', 'engine', '1000 s old', 'telemetry'),
    ('host not judged', {'judged': (healthy.host('c1'), healthy.host('c2'),
                                    healthy.host('c3', 'stale'))},
     'warning', 'hosts', r'1 of 3 are not judged \(stale\): c3', 'telemetry'),
    ('host not known', {'judged': (healthy.host('c1'), healthy.host('c2'))},
     'warning', 'hosts', r'unknown_host\): c3', 'log'),
    ('no host judged', {'judged': tuple(healthy.host(name, 'unknown_profile')
                                        for name in ('c1', 'c2', 'c3'))},
     'error', 'hosts', '3 of 3', 'log'),
    ('cores unknown', {'host_types': (healthy.host_type(status='unknown_cores'),)},
     'error', 'host types', 'type epyc: Nova does not tell the cores', 'os-hypervisors'),
    ('drifted', {'host_types': (healthy.host_type(status='drifted'),)},
     'warning', 'host types', 'differ too much', 'host type list'),
    ('hosts of no type', {'host_types': (healthy.host_type(), healthy.host_type('', hosts=2))},
     'warning', 'host types', '2 hosts are of no type', 'default_host_type'),
    ('invalid limit', {'aggregates': (healthy.aggregate(max_slowdown='banana'),)},
     'warning', 'aggregates', "rack: tracon:max_slowdown='banana' counts as unset", 'from 1'),
    ('invalid mode', {'aggregates': (healthy.aggregate(mode='on'),)},
     'warning', 'aggregates', "tracon:mode='on'", 'enforce'),
    ('two host types', {'aggregates': (healthy.aggregate(host_type='epyc'), healthy.aggregate(
        'other', hosts=('c2',), host_type='xeon'))},
     'warning', 'aggregates', 'host c2 has the host types epyc, xeon', 'one'),
    ('rival audit', {'audits': (healthy.audit('own'), healthy.audit('b', 'workload_balance'))},
     'warning', 'audits', r'b \(workload_balance\) moves VMs', 'cancel'),
    ('rival audit that recommends', {'audits': (
        healthy.audit('b', 'workload_balance', auto_trigger=False),)},
     'warning', 'audits', 'recommends moves', 'cancel'),
    ('two of ours', {'audits': (healthy.audit('one'), healthy.audit('two'))},
     'warning', 'audits', '2 continuous audits .*: one, two', 'keep one'),
)


def examine(**changed):
    return findings.examine(checks.CHECKS, healthy.facts(**changed))


class TestBroken(unittest.TestCase):

    def test_a_healthy_installation_has_no_finding(self):
        self.assertEqual([], examine())

    def test_each_gives_its_finding_alone(self):
        for name, changed, severity, subject, what, remedy in BROKEN:
            with self.subTest(name):
                found = examine(**changed)
                self.assertEqual([(severity, subject)],
                                 [(one.severity.name.lower(), one.subject) for one in found],
                                 found)
                self.assertRegex(found[0].what, what)
                self.assertRegex(found[0].remedy, remedy)

    def test_what_is_meant_so_is_no_finding(self):
        for name, changed in (
                ('no Watcher', {'watcher': None, 'audits': None}),
                ('no VM yet', {'servers': ()}),
                ('an aggregate judges', {
                    'nova': healthy.nova(mode='off'),
                    'aggregates': (healthy.aggregate(mode='weigh'),)}),
                ('filters named one by one', {'nova': healthy.nova(available_filters=(
                    configuration.FILTER, 'nova.scheduler.filters.x.ComputeFilter'))}),
                ('notifications not wanted', {
                    'engine': healthy.engine(notifications=False), 'nova': healthy.nova(
                        drivers=()), 'queues': {'tracon-notifications': answers.Queue(0, 0)}}),
                ('brokers in another order', {'engine': healthy.engine(
                    broker=dataclasses.replace(healthy.broker(), hosts=frozenset(
                        {'192.0.2.2:5672', '192.0.2.1:5672'})))}),
                ('a VM that has just come', {'judged': (
                    healthy.host('c1', 'unknown_profile'), healthy.host('c2'),
                    healthy.host('c3'))}),
                ('a host in maintenance', {'hosts': frozenset({'c1', 'c2'}), 'judged': (
                    healthy.host('c1'), healthy.host('c2'), healthy.host('c3', 'stale'))}),
                ('not RabbitMQ', {'queues': {}})):
            with self.subTest(name):
                self.assertEqual([], examine(**changed))

    def test_what_could_not_be_read_is_unknown_and_never_fine(self):
        for field in dataclasses.fields(checks.Facts):
            if field.name == 'engine_there':
                continue
            with self.subTest(field.name):
                found = examine(**{field.name: UNREAD})
                self.assertEqual([('it does not answer', 'start it')],
                                 [(one.what, one.remedy) for one in found])
                self.assertEqual(findings.Severity.UNKNOWN, found[0].severity)
                self.assertEqual(1, findings.exit_status(found))

    def test_several_have_a_finding_each(self):
        found = examine(nova=healthy.nova(enabled_filters=('ComputeFilter',), drivers=()),
                        microversion=UNREAD)
        self.assertEqual(['filter', 'notifications', 'versions'], [one.subject for one in found])
        self.assertEqual(2, findings.exit_status(found))


class TestNumbers(unittest.TestCase):
    """What is said of the weigher is what it does."""

    def test_of_the_weigher(self):
        self.assertEqual(scheduling_result.DECISIVE, configuration.DECISIVE)
        self.assertAlmostEqual(0.5 * (1 - 1 / (1 + math.log(1.01) / scheduling_result.HALVING)),
                               configuration.LITTLE_HARM)

    def test_modes(self):
        self.assertEqual(tuple(policy.MODES), answers.MODES)


class TestExamine(unittest.TestCase):

    def test_checks_that_lack_the_same_have_one_finding(self):
        lacking = findings.Check('a', ('x',), answers.nothing)
        facts = type('Facts', (), {'x': UNREAD, 'y': 1})
        found = findings.examine((lacking, findings.Check('b', ('x', 'y'), answers.nothing)),
                                 facts)
        self.assertEqual(['a, b'], [one.subject for one in found])

    def test_a_defect_costs_no_other_check(self):
        def broken(_fact):
            raise KeyError('oops')

        facts = type('Facts', (), {'x': 1, 'y': findings.Unread('gone', 'look', 2)})
        found = findings.examine((findings.Check('a', ('x',), broken),
                                  findings.Check('b', ('y',), answers.nothing)), facts)
        self.assertEqual(['b', 'a'], [one.subject for one in found])
        self.assertIn('KeyError', found[1].what)

    def test_exit_status(self):
        self.assertEqual(0, findings.exit_status([]))
        self.assertEqual(1, findings.exit_status([findings.warning('a', 'b', 'c')]))
        self.assertEqual(2, findings.exit_status([findings.warning('a', 'b', 'c'),
                                                  findings.error('a', 'b', 'c')]))

    def test_some_of_many(self):
        self.assertEqual('a, b', findings.some({'b', 'a'}))
        self.assertEqual('a, b, c and 2 more', findings.some('edcba'))
