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

"""Options of tracon-background, which throttles background work beside a host's VMs."""

from oslo_config import cfg

from tracon_watcher.conf import numbers

GROUP = cfg.OptGroup(
    'background', title='Background work',
    help='Read by tracon-background, on each compute host with background work.')

GROUPS = [
    cfg.ListOpt(
        'groups', default=[],
        help='Control groups with background work and nothing else, the most important first, as '
             'paths below the mount point of control groups, such as background.slice. They need '
             'not exist yet.'),
    cfg.StrOpt(
        'cgroup_root', default='/sys/fs/cgroup', help='Mount point of control groups.'),
    cfg.StrOpt(
        'libvirt_uri', default='qemu:///system',
        help='URI of the libvirt whose domains are protected. The connection is read-only.'),
    cfg.BoolOpt(
        'tell_engine', default=False,
        help='Tell tracon-engine of each episode of throttling, over [DEFAULT] transport_url. '
             'oslo.messaging then takes tens of MiB of memory more.'),
    cfg.StrOpt(
        'host', sample_default='<host name>',
        help='Name of this host\'s compute service in Nova, which tracon-engine is told with each '
             'episode of throttling. Unset: the name of the host, as in Nova.'),
    cfg.BoolOpt(
        'dry_run', default=False,
        help='Decide, log and count, but write no limit. Set it first.'),
]

LIMITS = [
    cfg.StrOpt(
        'cpus',
        help='Cores that background work may use at most, such as 4-7,9. Unset: all. Cores to '
             'which a VM is pinned are excluded in any case.'),
    cfg.StrOpt(
        'memory_action', default='pause', choices=[
            ('pause', 'all groups are paused; nothing is lost, and no memory is released'),
            ('kill', 'the tasks of the least important groups are killed, until the others fit')],
        help='Action when the memory of the groups does not fit beside the VMs.'),
    cfg.StrOpt(
        'network_device',
        help='Interface through which background work sends. Unset: its traffic is not limited.'),
    cfg.StrOpt(
        'network_parent', default='root',
        help='Class of the interface\'s queueing discipline that has the traffic of background '
             'work, such as 1:20. "root" if only background work uses the interface.'),
    numbers.FloatOpt(
        'network_capacity', 'Mbit/s', min=0.1, max=1e7,
        help='Capacity that the VMs and background work share for sending. Required with '
             'network_device.'),
    cfg.StrOpt(
        'disk_device',
        help='Block device, not a partition, that background work and the VMs\' disks share, such '
             'as /dev/nvme0n1. Unset: disk use is not limited.'),
    numbers.FloatOpt(
        'disk_capacity', 'MB/s', min=0.1, max=1e7,
        help='Throughput of the device for reads and writes. With disk_device, set this, '
             'disk_requests or both.'),
    numbers.FloatOpt(
        'disk_requests', 'requests a second', min=1.0, max=1e9,
        help='Small random requests that the device can serve.'),
    numbers.FloatOpt(
        'minimum_share', 'share', default=0.01, min=0.0001, max=1.0,
        help='Share of each of these capacities that background work always has, and the smallest '
             'change of the VMs\' use that counts.'),
]

BANDS = [
    option for name, factor, window, what in (
        ('memory', 2.0, 60, 'memory'), ('rate', 2.0, 30, 'network and disks'),
        ('processor', 2.0, 15, 'the CPU quota'))
    for option in (
        numbers.FloatOpt(
            f'{name}_factor', 'standard deviations', default=factor, min=0.01, max=10.0,
            help=f'Width of the VMs\' band for {what}. A wider one is violated less often and '
                 f'{"reacts later" if name == "processor" else "leaves less"}.'),
        numbers.IntOpt(
            f'{name}_window', 'seconds', default=window, min=2, max=3600,
            help=f'Seconds over which the VMs\' band for {what} is learnt.'))]

QUOTA = [
    numbers.FloatOpt(
        'quota_minimum', 'cores', default=0.01, min=0.01, max=1024.0,
        help='CPU quota of all groups while the VMs\' band is learnt.'),
    numbers.FloatOpt(
        'quota_increase', 'cores', default=0.1, min=0.01, max=1024.0,
        help='Increase of the quota in each second in which the VMs are within their band.'),
    numbers.FloatOpt(
        'quota_decrease', 'ratio', default=2.0, min=1.01, max=1000.0,
        help='Divisor of the quota in each second in which the VMs are below their band.'),
]

METRICS = [
    cfg.HostAddressOpt(
        'listen_host', default='127.0.0.1', help='Address of the metrics for Prometheus.'),
    cfg.PortOpt('listen_port', default=8642, help='Port of the metrics for Prometheus.'),
]


def list_opts():
    """Return (group, options)."""
    return [(GROUP, GROUPS + LIMITS + BANDS + QUOTA + METRICS)]


def register_opts(conf):
    """Register the options."""
    conf.register_group(GROUP)
    for group, options in list_opts():
        conf.register_opts(options, group=group)
