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

GROUP = cfg.OptGroup('probe', title='Probe VMs', help='Used by tracon-probe.')

OPTIONS = [
    cfg.StrOpt(
        'sensors_file', default='/etc/tracon/sensors.json',
        help='List of the sensors; it is read again when it changes.'),
    cfg.StrOpt(
        'secret_file', default='/etc/tracon/probe.secret', secret=True,
        help='Secret that is shared with the sensors, 64 hexadecimal digits. No other user may '
             'read it.'),
    cfg.StrOpt(
        'baselines_file', default='/etc/tracon/baselines.json',
        help='Baselines, as "tracon probe baseline" writes them.'),
    numbers.FloatOpt(
        'interval_seconds', 'seconds', default=300.0, min=10.0, max=86400.0,
        help='Time between two readings of one phase of a sensor, on average. It takes two '
             'readings to call a host contended. Half the interval costs twice the time.'),
    numbers.FloatOpt(
        'deadline_seconds', 'seconds', default=10.0, min=0.1, max=3600.0,
        help='Time that a sensor has for one answer.'),
    numbers.IntOpt(
        'at_once', 'phases', default=100, min=1, max=1000,
        help='Phases that run at the same time; others wait. See "tracon bench probe" for how '
             'many requests a core sends.'),
    cfg.HostAddressOpt(
        'listen_host', default='127.0.0.1',
        help='Address on which Ceilometer\'s polling agent asks for readings. They are no '
             'secret, but name hosts.'),
    cfg.PortOpt('listen_port', default=8641, help='Its port.'),
]


def list_opts():
    """Return (group, options)."""
    return [(GROUP, OPTIONS)]


def register_opts(conf):
    """Register the options."""
    for group, options in list_opts():
        conf.register_group(group)
        conf.register_opts(options, group=group)
