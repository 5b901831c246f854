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

"""Options of the engine."""

from oslo_config import cfg

from tracon_watcher.conf import numbers

GROUP = cfg.OptGroup(
    'engine', title='The engine',
    help='Read by tracon-engine, which collects telemetry, keeps the state of the cloud and '
         'publishes it to nova-scheduler and Watcher.')

TELEMETRY = [
    cfg.StrOpt(
        'telemetry', default='gnocchi', choices=[
            ('gnocchi', 'the samples that Ceilometer publishes to Gnocchi'),
            ('prometheus', 'the samples that Ceilometer exports to Prometheus, or to Aetos, which '
                           'is Prometheus behind Keystone')],
        help='Source of Ceilometer\'s samples. Set it to the one that your cloud has.'),
    numbers.FloatOpt(
        'polling_interval_seconds', 'seconds', default=60.0, min=1.0, max=86400.0,
        help='Seconds between two polls by Ceilometer. Use the value of polling.yaml for the '
             'meters of tracon.'),
    numbers.FloatOpt(
        'collection_interval_seconds', 'seconds', min=1.0, max=86400.0,
        help='Seconds between two collections. Unset: half of polling_interval_seconds, so that '
             'the engine has a poll at most one polling interval after it reached the store. If a '
             'collection takes longer than a quarter of that interval, the engine collects less '
             'often, down to once a poll.'),
    numbers.FloatOpt(
        'maximum_age_seconds', 'seconds', default=900.0, min=1.0, max=2592000.0,
        help='Seconds after which the data of a VM or host is stale, which makes it unknown. '
             'Lower it if VMs change their behaviour quickly; keep it above several polling '
             'intervals.'),
    cfg.BoolOpt(
        'probes', default=False,
        help='Read the meters of probe VMs, too. Set it after tracon-probe and the polling of its '
             'meters are set up; before, it only costs requests.'),
    cfg.StrOpt(
        'calibration_file', sample_default='<the package\'s own>',
        help='Calibration of observed slowdowns and demands, a JSON file that "tracon model '
             'calibrate" writes. Unset: the one in the package. Set it if your programs or hosts '
             'differ from those that were measured for the package\'s. It is read when the engine '
             'starts.'),
    numbers.FloatOpt(
        'window_seconds', 'seconds', default=1800.0, min=1.0, max=2592000.0,
        help='Seconds of a VM\'s past from which its demand is estimated. Raise it if demand is '
             'bursty; a lasting change is detected within two polling intervals in any case.'),
]

INVENTORY = [
    numbers.FloatOpt(
        'repair_interval_seconds', 'seconds', default=300.0, min=1.0, max=86400.0,
        help='Seconds between two full listings of servers, hypervisors, aggregates and volumes. '
             'Nova\'s versioned notifications report the changes in between. Lower it if they are '
             'not sent.'),
    cfg.BoolOpt(
        'notifications', default=True,
        help='Listen to Nova\'s versioned notifications. They need [notifications] '
             'notification_format = versioned or both in nova.conf. Without them the engine sees '
             'changes with the next full listing.'),
    cfg.StrOpt(
        'nova_exchange', default='nova',
        help='Exchange to which Nova publishes notifications. Change it if nova.conf states '
             'another control_exchange.'),
    cfg.StrOpt(
        'request_audit',
        help='UUID or name of an audit of Watcher, of the type EVENT, that the engine triggers '
             'when Nova finds no host for a VM of the foreground. Such an audit, with '
             'background_action shelve or delete, makes room at once. Unset: none; the next '
             'continuous audit makes room.'),
    cfg.StrOpt(
        'default_host_type',
        help='Host type of compute hosts in no aggregate with metadata tracon:host_type. Unset: '
             'these hosts have no type, and the engine learns of all of them together. Set it in '
             'a cloud with one kind of host.'),
    cfg.StrOpt(
        'default_storage', default='local',
        help='Storage backend of the ephemeral disks of compute hosts in no aggregate with '
             'metadata tracon:storage: "local" for each host\'s own, or the name of a pool that '
             'hosts share, such as one of Ceph.'),
    numbers.FloatOpt(
        'max_slowdown', 'ratio', min=1.0, max=1000.0,
        help='Largest slowdown that a VM tolerates if neither its flavor nor an aggregate of its '
             'host states tracon:max_slowdown. Unset: none.'),
    numbers.FloatOpt(
        'min_iops_ratio', 'ratio', min=0.001, max=1.0,
        help='Smallest share of its I/O operations per second alone that a VM tolerates if '
             'neither its flavor nor an aggregate of its host states tracon:min_iops_ratio. '
             'Unset: none.'),
]

JUDGING = [
    numbers.FloatOpt(
        'confidence', 'probability', default=0.8, min=0.5, max=0.975,
        help='Probability of the one-sided bound that must cross a limit to count as a breach, in '
             'the data that the engine itself shows and records.'),
]

SERVICE = [
    cfg.StrOpt(
        'host', sample_default='<host name>',
        help='Name of this engine among several. Unset: the name of its host. Each engine needs '
             'its own name.'),
    numbers.FloatOpt(
        'lease_seconds', 'seconds', default=30.0, min=2.0, max=3600.0,
        help='Seconds after which another engine takes over from one that does not answer.'),
]


def list_opts():
    """Return (group, options)."""
    return [(GROUP, TELEMETRY + INVENTORY + JUDGING + SERVICE)]


def register_opts(conf):
    """Register the options."""
    conf.register_group(GROUP)
    for group, options in list_opts():
        conf.register_opts(options, group=group)
