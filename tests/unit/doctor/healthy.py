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

"""What is read of a healthy installation."""

from tracon_watcher.doctor import answers
from tracon_watcher.doctor import checks
from tracon_watcher.doctor import configuration

OPTIONS = {'rabbit_quorum_queue': True, 'rabbit_transient_quorum_queue': True, 'ssl': False}
MULTIPLIERS = {'ram_weight_multiplier': 1.0, 'cpu_weight_multiplier': 1.0,
               'disk_weight_multiplier': 1.0, 'io_ops_weight_multiplier': -1.0,
               'num_instances_weight_multiplier': 0.0}
PENALTIES = {'build_failure_weight_multiplier': 1e6, 'cross_cell_move_weight_multiplier': 1e6}


def broker(host='192.0.2.1', virtual_host='/', driver='rabbit'):
    return configuration.Broker(driver, f'{host}:5672 {virtual_host}',
                                frozenset({f'{host}:5672'}), virtual_host)


def plugin(**changed):
    return configuration.Plugin(**{
        'snapshot_source': 'engine', 'snapshot_file': '/snapshot', 'broker': broker(),
        'options': OPTIONS, **changed})


def nova(**changed):
    return configuration.Nova(**{
        'enabled_filters': ('ComputeFilter', 'InterferenceFilter'),
        'available_filters': (configuration.ALL_FILTERS, configuration.FILTER),
        'weight_classes': (configuration.ALL_WEIGHERS, configuration.WEIGHER),
        'multipliers': MULTIPLIERS, 'penalties': PENALTIES, 'mode': 'weigh',
        'on_all_refused': 'least_harm', 'weight_multiplier': 40.0, 'plugin': plugin(),
        'notification_format': 'both', 'drivers': ('messagingv2',),
        'topics': ('versioned_notifications',), 'exchange': 'nova', 'notified': broker(),
        **changed})


def engine(**changed):
    return configuration.Engine(**{
        'polling_seconds': 60.0, 'maximum_age_seconds': 900.0, 'granularity_seconds': None,
        'calibration': None, 'notifications': True, 'nova_exchange': 'nova', 'broker': broker(),
        'notified': broker(), 'options': OPTIONS, **changed})


def health(**changed):
    return {'live': True, 'ready': True, 'checks': {'lead': True, 'collect': True, 'listen': True},
            'view': {'epoch': 3, 'version': 7, 'age_seconds': 70.0}, **changed}


def samples(**changed):
    return answers.Samples(**{'age': {'c1': 61.0, 'c2': 75.0, 'c3': 30.0}, 'interval': 60.0,
                              'span': 900.0, **changed})


def host(name, status='known'):
    return {'name': name, 'status': status}


def host_type(name='epyc', **changed):
    return {'host_type': name, 'hosts': 3, 'status': 'known', **changed}


def aggregate(name='rack', hosts=('c1', 'c2', 'c3'), **metadata):
    return {'name': name, 'hosts': list(hosts),
            'metadata': {f'tracon:{key}': value for key, value in metadata.items()}}


def audit(name, strategy='tracon_interference', **changed):
    return {'name': name, 'strategy_name': strategy, 'audit_type': 'CONTINUOUS',
            'state': 'ONGOING', 'auto_trigger': True, **changed}


def facts(**changed):
    return checks.Facts(**{
        'nova': nova(), 'watcher': plugin(), 'engine': engine(), 'engine_there': True,
        'unfit_packages': (), 'database': None, 'broker': None,
        'queues': {'tracon-notifications': answers.Queue(0, 1),
                   'versioned_notifications.info': answers.Queue(5, 0)},
        'services': (answers.Answer('Keystone', ahead=0.0), answers.Answer('Nova', ahead=1.2)),
        'roles': frozenset({'admin', 'service'}), 'microversion': (2, 103),
        'servers': ({'id': 'a', 'OS-EXT-SRV-ATTR:host': 'c1'},),
        'hosts': frozenset({'c1', 'c2', 'c3'}), 'aggregates': (aggregate(host_type='epyc'),),
        'extra_specs_validated': True, 'samples': samples(), 'health': health(),
        'judged': (host('c1'), host('c2'), host('c3')), 'host_types': (host_type(),),
        'audits': (audit('own'), audit('once', 'workload_balance', audit_type='ONESHOT'),
                   audit('past', 'workload_balance', state='CANCELLED'),
                   audit('volumes', 'storage_capacity_balance')),
        **changed})
