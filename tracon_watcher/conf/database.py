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

"""Options of the engine's database beside those of oslo.db."""

from tracon_watcher.conf import numbers

#: oslo.db's own group.
GROUP = 'database'
#: What oslo.db's option ``connection`` is by default.
CONNECTION = 'sqlite:////var/lib/tracon/tracon.db'

RETENTION = [
    numbers.FloatOpt(
        'decisions_kept_days', 'days', default=14.0, min=0.0, max=36500.0,
        help='Days for which the decisions of nova-scheduler are kept, for "openstack '
             'interference explain". They take by far the most space: lower it if tens of '
             'thousands of VMs are created.'),
    numbers.FloatOpt(
        'moves_kept_days', 'days', default=365.0, min=0.0, max=36500.0,
        help='Days for which recommended live migrations are kept, with their predictions and '
             'measurements. Keep it above the two days in which they are measured.'),
]


def list_opts():
    """Return (group, options)."""
    return [(GROUP, RETENTION)]


def register_opts(conf):
    """Register the options."""
    for group, options in list_opts():
        conf.register_opts(options, group=group)
