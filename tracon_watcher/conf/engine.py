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
        help='Where Ceilometer\'s samples are read. Change it to what your cloud has.'),
    numbers.FloatOpt(
        'polling_interval_seconds', 'seconds', default=60.0, min=1.0, max=86400.0,
        help='Seconds between two polls of Ceilometer\'s, as polling.yaml states for the meters '
             'of tracon. State here what you state there.'),
    numbers.FloatOpt(
        'collection_interval_seconds', 'seconds', min=1.0, max=86400.0,
        help='Seconds between two collections. Unset: half of polling_interval_seconds, so that '
             'what a poll brings, and takes its way to the store, is known a polling interval '
             'later at the latest. Where a collection takes longer than a quarter of that '
             'interval, collections become rarer by themselves, down to one a poll.'),
    numbers.FloatOpt(
        'maximum_age_seconds', 'seconds', default=900.0, min=1.0, max=2592000.0,
        help='Seconds after which the data of a VM or host is stale, which makes it unknown. '
             'Lower it where VMs change their behaviour quickly; keep it above several polling '
             'intervals.'),
    cfg.BoolOpt(
        'probes', default=False,
        help='Read the meters of probe VMs, too. Until tracon-probe and the polling of its meters '
             'are set up, that costs requests and brings nothing.'),
    cfg.StrOpt(
        'calibration_file', sample_default='<the package\'s own>',
        help='Calibration that observed slowdowns and demands rest on, a JSON file as "tracon '
             'model calibrate" writes it. Unset: the one that comes with the package. Set it '
             'where programs or hosts are unlike those that were measured for it. It is read '
             'when the engine starts.'),
    numbers.FloatOpt(
        'window_seconds', 'seconds', default=1800.0, min=1.0, max=2592000.0,
        help='Seconds of a VM\'s past that its demand is estimated from. Raise it where demand is '
             'bursty; a lasting change is seen within two polling intervals in any case.'),
]

INVENTORY = [
    numbers.FloatOpt(
        'repair_interval_seconds', 'seconds', default=300.0, min=1.0, max=86400.0,
        help='Seconds between two full listings of servers, hypervisors, aggregates and volumes. '
             'In between Nova\'s versioned notifications tell what changes. Lower it where they '
             'are not sent.'),
    cfg.BoolOpt(
        'notifications', default=True,
        help='Whether Nova\'s versioned notifications are listened to. They need '
             '[notifications] notification_format = versioned or both in nova.conf. Without '
             'them changes are seen with the next full listing.'),
    cfg.StrOpt(
        'nova_exchange', default='nova',
        help='Exchange that Nova publishes notifications to. Change it where nova.conf states '
             'another control_exchange.'),
    cfg.StrOpt(
        'default_host_type',
        help='Host type of compute hosts in no aggregate with metadata tracon:host_type. Unset: '
             'they are of none, and what is learnt of them is learnt of all together. Set it in a '
             'cloud with one kind of host.'),
    cfg.StrOpt(
        'default_storage', default='local',
        help='Storage backend of the ephemeral disks of compute hosts in no aggregate with '
             'metadata tracon:storage: "local" for each host\'s own, or the name of a pool that '
             'hosts share, such as one of Ceph.'),
    numbers.FloatOpt(
        'max_slowdown', 'ratio', min=1.0, max=1000.0,
        help='Largest slowdown that a VM tolerates when neither its flavor nor an aggregate of '
             'its host states tracon:max_slowdown. Unset: none.'),
    numbers.FloatOpt(
        'min_iops_ratio', 'ratio', min=0.001, max=1.0,
        help='Smallest share of its I/O operations per second alone that a VM tolerates when '
             'neither its flavor nor an aggregate of its host states tracon:min_iops_ratio. '
             'Unset: none.'),
]

JUDGING = [
    numbers.FloatOpt(
        'confidence', 'probability', default=0.8, min=0.5, max=0.975,
        help='Probability of the one-sided bound that must cross a limit before this counts as '
             'a breach, in what the engine itself shows and records.'),
]

SERVICE = [
    cfg.StrOpt(
        'host', sample_default='<host name>',
        help='Name of this engine among several. Unset: the name of its host. No two engines may '
             'have the same.'),
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
