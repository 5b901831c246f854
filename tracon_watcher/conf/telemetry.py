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

"""Options of where the engine reads telemetry."""

from oslo_config import cfg

from tracon_watcher.conf import numbers

GNOCCHI = cfg.OptGroup(
    'gnocchi', title='Gnocchi', help='Read by tracon-engine with [engine] telemetry = gnocchi.')
PROMETHEUS = cfg.OptGroup(
    'prometheus', title='Prometheus or Aetos',
    help='Read by tracon-engine with [engine] telemetry = prometheus.')

_ROUND = numbers.FloatOpt(
    'round_seconds', 'seconds', default=45.0, min=1.0, max=86400.0,
    help='Longest time of one collection, in seconds. VMs without an answer by then are unknown '
         'until the next. Keep it below [engine] polling_interval_seconds.')

GNOCCHI_OPTIONS = [
    numbers.FloatOpt(
        'granularity_seconds', 'seconds', min=1.0, max=86400.0,
        help='Granularity to read, one that the archive policy of the meters has. Unset: [engine] '
             'polling_interval_seconds.'),
    numbers.IntOpt(
        'page', 'VMs', default=100, min=1, max=1000,
        help='VMs in one request. Lower it if a proxy in front of Gnocchi cuts off requests.'),
    numbers.IntOpt(
        'requests_at_once', 'requests', default=4, min=1, max=64,
        help='Requests to Gnocchi at the same time. Raise it if Gnocchi has more processes to '
             'answer them and a collection takes too long.'),
    _ROUND,
]

PROMETHEUS_OPTIONS = [
    cfg.URIOpt(
        'url', schemes=['http', 'https'],
        help='URL of Prometheus, such as http://prometheus:9090. Unset: Aetos, which the service '
             'catalogue has under the service type metric-storage.'),
    cfg.StrOpt(
        'username', help='User name for HTTP\'s basic authentication. Unset: no authentication.'),
    cfg.StrOpt(
        'password', secret=True, help='Password for HTTP\'s basic authentication.'),
    cfg.StrOpt(
        'ca_file', help='File of certificate authorities that are trusted. Unset: the system\'s.'),
    cfg.StrOpt(
        'prefix', default='ceilometer_',
        help='Prefix of the names of Ceilometer\'s metrics. sg-core and Ceilometer\'s own '
             'exporter differ only in the prefix.'),
    cfg.StrOpt(
        'label', default='resource', help='Label with the id of the VM.'),
    cfg.DictOpt(
        'only', default={},
        help='Labels and values that metrics must have, such as cloud:north. Set it if several '
             'clouds share one Prometheus.'),
    numbers.FloatOpt(
        'scrape_seconds', 'seconds', default=30.0, min=1.0, max=86400.0,
        help='Seconds between two scrapes, as in prometheus.yml.'),
    _ROUND,
]


def list_opts():
    """Return (group, options)."""
    return [(GNOCCHI, GNOCCHI_OPTIONS), (PROMETHEUS, PROMETHEUS_OPTIONS)]


def register_opts(conf):
    """Register the options."""
    for group, options in list_opts():
        conf.register_group(group)
        conf.register_opts(options, group=group)
