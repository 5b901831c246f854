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

"""Options of the filter and the weigher in nova-scheduler."""

from oslo_config import cfg

from tracon_watcher.conf import numbers

GROUP = cfg.OptGroup(
    'tracon', title='Interference-aware placement',
    help='Read by nova-scheduler when InterferenceFilter or InterferenceWeigher is configured.')

MODES = ('off', 'advise', 'weigh', 'enforce')

SNAPSHOT = [
    cfg.StrOpt(
        'snapshot_source', default='file', choices=[
            ('file', 'snapshot_file'),
            ('engine', 'tracon-engine, through oslo.messaging')],
        help='Source of the snapshot of the cluster. With "file", tracon-engine is not needed, '
             'and it records no decisions. Set it to "engine" if tracon-engine runs.'),
    cfg.StrOpt(
        'transport_url', secret=True, sample_default='rabbit://tracon:password@controller:5672/',
        help='Message broker of tracon-engine, for snapshot_source = engine. Unset: transport_url '
             'of [DEFAULT]. Set it if tracon-engine uses another broker, or another user on it. A '
             'separate connection is made in either case.'),
    numbers.FloatOpt(
        'engine_check_seconds', 'seconds', default=30.0, min=0.1, max=86400.0,
        help='Seconds without news after which tracon-engine is asked for a newer snapshot, for '
             'snapshot_source = engine. Usually the engine announces each one; lower this if '
             'announcements get lost.'),
    cfg.StrOpt(
        'snapshot_file', default='/var/lib/tracon/snapshot.jsonl',
        help='File with the snapshot of the cluster. It is read in the background whenever it '
             'changes. Without it, or while it cannot be used, hosts are chosen as without this '
             'extension. Set it to the path of the program that writes the snapshot. The nova '
             'user must be able to read it.'),
    numbers.FloatOpt(
        'snapshot_refresh_seconds', 'seconds', default=5.0, min=0.1, max=86400.0,
        help='Seconds between two checks whether the snapshot file has changed. A check is one '
             'stat(). Lower it if the file is written more often than that.'),
    numbers.FloatOpt(
        'initial_wait_seconds', 'seconds', default=2.0, min=0.0, max=30.0,
        help='Longest time, in seconds, that the first request of each scheduler worker waits for '
             'the snapshot. Requests that come meanwhile wait no longer than the first, and no '
             'later request ever waits. 0: until the snapshot is loaded, requests are placed '
             'without the judgement.'),
    numbers.FloatOpt(
        'maximum_age_seconds', 'seconds', min=1.0, max=2592000.0, mutable=True,
        help='Seconds after which the data of a host is stale, which makes the host unknown: '
             'neither refused nor preferred. Unset: the value in the snapshot. Lower it if VMs '
             'change their behaviour quickly.'),
]

POLICY = [
    cfg.StrOpt(
        'mode', default='advise', mutable=True, choices=[
            ('off', 'do nothing'),
            ('advise', 'log what would be refused, change nothing'),
            ('weigh', 'prefer hosts with less predicted harm, refuse none'),
            ('enforce', 'also refuse hosts on which a limit would be breached')],
        help='Effect of the judgement of a host. The metadata tracon:mode of a host aggregate '
             'takes precedence for its hosts; the documentation describes hosts in several '
             'aggregates. Change it step by step, as trust grows.'),
    cfg.StrOpt(
        'on_all_refused', default='least_harm', mutable=True, choices=[
            ('least_harm', 'let all pass, and put the host with the least predicted harm first'),
            ('refuse', 'refuse all: the request fails with "No valid host"')],
        help='Action when every remaining host would be refused. Choose refuse only if no VM is '
             'better than a slow one. least_harm needs the weigher.'),
    numbers.FloatOpt(
        'confidence', 'probability', default=0.8, min=0.5, max=0.975, mutable=True,
        help='Probability of the one-sided bound that must cross a limit before a host is '
             'refused. Raise it if hosts are refused on weak evidence.'),
    numbers.FloatOpt(
        'margin', 'share', default=0.05, min=0.0, max=10.0, mutable=True,
        help='Share by which a VM that already breaches its limit must get slower before this '
             'counts against a host; 0.05 is 5 %. Raise it if crowded hosts are refused for '
             'newcomers with little effect.'),
    numbers.FloatOpt(
        'max_slowdown', 'ratio', min=1.0, max=1000.0, mutable=True,
        help='Largest slowdown that a new VM tolerates if neither its flavor nor an aggregate '
             'states tracon:max_slowdown; 1.5 is one and a half times as long as alone. Unset: '
             'none.'),
    numbers.FloatOpt(
        'min_iops_ratio', 'ratio', min=0.001, max=1.0, mutable=True,
        help='Smallest share of its I/O operations per second alone that a new VM tolerates if '
             'neither its flavor nor an aggregate states tracon:min_iops_ratio. Unset: none.'),
    numbers.FloatOpt(
        'weight_multiplier', 'factor', default=40.0, min=0.0, max=1000000.0, mutable=True,
        help='Multiplier of the interference weigher. The weight falls by 1/2 if a limit would be '
             'breached, and with the harm, from 1/2 for none to 1/4 for harm that adds up to '
             'about four VMs made twice as slow. With the default, one VM made twice as slow '
             'outweighs full differences in free RAM, CPU and disk together. One VM made 17 % '
             'slower outweighs a soft server group, whose weigher has a multiplier of 1 in Nova: '
             'set [filter_scheduler] soft_affinity_weight_multiplier and '
             'soft_anti_affinity_weight_multiplier to the same number as this option; with half '
             'of it, groups hold unless a limit would be breached. Lower this option to give free '
             'room more weight; 0 switches the weigher off.'),
]

PENDING = [
    numbers.FloatOpt(
        'pending_expiry_seconds', 'seconds', default=300.0, min=1.0, max=86400.0,
        help='Seconds for which a placement is kept that neither Nova nor the snapshot shows on '
             'its host. Raise it if VMs take longer to spawn.'),
    cfg.StrOpt(
        'pending_directory', default='$state_path/tracon',
        sample_default='/var/lib/nova/tracon',
        help='Directory in which the workers of nova-scheduler exchange placements that are not '
             'visible yet, so that a burst of requests spreads. It is created if missing, and may '
             'be shared between hosts. Empty: each worker knows only its own.'),
]


def list_opts():
    """Return (group, options)."""
    return [(GROUP, SNAPSHOT + POLICY + PENDING)]


def register_opts(conf):
    """Register the options, as nova-scheduler's plugins do on Nova's configuration."""
    conf.register_group(GROUP)
    for group, options in list_opts():
        conf.register_opts(options, group=group)
