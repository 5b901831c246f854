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
    'gnocchi', title='Gnocchi', help='Used by tracon-engine with [engine] telemetry = gnocchi.')
PROMETHEUS = cfg.OptGroup(
    'prometheus', title='Prometheus or Aetos',
    help='Used by tracon-engine with [engine] telemetry = prometheus.')

_ROUND = numbers.FloatOpt(
    'round_seconds', 'seconds', default=45.0, min=1.0, max=86400.0,
    help='Seconds that one collection may take; what was not answered by then is unknown until '
         'the next. Keep it below [engine] polling_interval_seconds.')

GNOCCHI_OPTIONS = [
    numbers.FloatOpt(
        'granularity_seconds', 'seconds', min=1.0, max=86400.0,
        help='Granularity that is read, one that the archive policy of the meters has. Unset: '
             '[engine] polling_interval_seconds.'),
    numbers.IntOpt(
        'page', 'VMs', default=100, min=1, max=1000,
        help='VMs in one request. Lower it when requests are cut off by a proxy in front of '
             'Gnocchi.'),
    numbers.IntOpt(
        'requests_at_once', 'requests', default=4, min=1, max=64,
        help='Requests to Gnocchi at the same time. Raise it where Gnocchi has more processes to '
             'answer them and a collection takes too long.'),
    _ROUND,
]

PROMETHEUS_OPTIONS = [
    cfg.URIOpt(
        'url', schemes=['http', 'https'],
        help='Prometheus, such as http://prometheus:9090. Unset: Aetos, as the service catalogue '
             'has it under the service type metric-storage.'),
    cfg.StrOpt(
        'username', help='For HTTP\'s basic authentication. Unset: none.'),
    cfg.StrOpt(
        'password', secret=True, help='For HTTP\'s basic authentication.'),
    cfg.StrOpt(
        'ca_file', help='Authorities that certificates are checked against. Unset: the '
                        'system\'s.'),
    cfg.StrOpt(
        'prefix', default='ceilometer_',
        help='Beginning of the names of Ceilometer\'s metrics. sg-core and Ceilometer\'s own '
             'exporter differ in nothing else.'),
    cfg.StrOpt(
        'label', default='resource', help='Label that has the id of the VM.'),
    cfg.DictOpt(
        'only', default={},
        help='Labels and values that metrics must have, where several clouds share one '
             'Prometheus, such as cloud:north.'),
    numbers.FloatOpt(
        'scrape_seconds', 'seconds', default=30.0, min=1.0, max=86400.0,
        help='Seconds between two scrapes, as prometheus.yml states.'),
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
