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

"""Options of tracon-probe, which reads the sensors of probe VMs."""

from oslo_config import cfg

from tracon_watcher.conf import numbers

GROUP = cfg.OptGroup('probe', title='Probe VMs', help='Read by tracon-probe.')

OPTIONS = [
    cfg.StrOpt(
        'sensors_file', default='/etc/tracon/sensors.json',
        help='List of the sensors. It is read again when it changes.'),
    cfg.StrOpt(
        'secret_file', default='/etc/tracon/probe.secret', secret=True,
        help='Secret shared with the sensors, 64 hexadecimal digits. No other user may read it.'),
    cfg.StrOpt(
        'baselines_file', default='/etc/tracon/baselines.json',
        help='Baselines that "tracon probe baseline" writes.'),
    numbers.FloatOpt(
        'interval_seconds', 'seconds', default=300.0, min=10.0, max=86400.0,
        help='Average time between two readings of one phase of a sensor. Two readings are needed '
             'to call a host contended. Half the interval costs twice the time.'),
    numbers.FloatOpt(
        'deadline_seconds', 'seconds', default=10.0, min=0.1, max=3600.0,
        help='Longest time for one answer of a sensor.'),
    numbers.IntOpt(
        'at_once', 'phases', default=100, min=1, max=1000,
        help='Phases that run at the same time; others wait. "tracon bench probe" measures the '
             'number of requests that a core sends.'),
    cfg.HostAddressOpt(
        'listen_host', default='127.0.0.1',
        help='Address on which Ceilometer\'s polling agent requests readings. They are not '
             'secret, but name hosts.'),
    cfg.PortOpt('listen_port', default=8641,
                help='Port on which Ceilometer\'s polling agent requests readings.'),
]


def list_opts():
    """Return (group, options)."""
    return [(GROUP, OPTIONS)]


def register_opts(conf):
    """Register the options."""
    for group, options in list_opts():
        conf.register_group(group)
        conf.register_opts(options, group=group)
