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

"""Options of the engine's API."""

from oslo_config import cfg

from tracon_watcher.conf import numbers

GROUP = cfg.OptGroup(
    'api', title='The API of the engine',
    help='API for "openstack interference" and metrics for Prometheus. [keystone_authtoken] '
         'configures the validation of tokens, policy.yaml ([oslo_policy]) the permissions.')

ADDRESS = [
    cfg.HostAddressOpt(
        'host', default='127.0.0.1',
        help='Address on which the API listens. By default it is reachable only from this '
             'machine: put a TLS proxy in front of it, or set an address in the network of '
             'OpenStack\'s internal endpoints.'),
    cfg.PortOpt(
        'port', default=9790,
        help='Port on which the API listens, as in the endpoints of the service "interference" in '
             'Keystone.'),
    cfg.StrOpt(
        'certificate_file',
        help='Certificate, with its chain, in PEM. Set it to serve TLS without a proxy.'),
    cfg.StrOpt(
        'key_file',
        help='Private key of the certificate, in PEM. Only the user of tracon-engine may read '
             'it.'),
    numbers.IntOpt(
        'threads', 'requests', default=10, min=1, max=200,
        help='Requests that are answered at the same time. Raise it if dashboards ask very often; '
             'each request takes some processor time of the engine.'),
    numbers.IntOpt(
        'max_limit', 'entries', default=1000, min=1, max=100000,
        help='Largest number of entries in one page of a list; clients request the next page '
             'themselves.'),
]

METRICS = [
    cfg.HostAddressOpt(
        'metrics_host', default='127.0.0.1',
        help='Address on which GET /metrics answers, without a token. The metrics describe the '
             'whole cloud, but name no VM: set an address that only Prometheus reaches.'),
    cfg.PortOpt(
        'metrics_port', default=9791,
        help='Port on which GET /metrics answers. 0: no metrics are served.'),
]


def list_opts():
    """Return (group, options)."""
    return [(GROUP, ADDRESS + METRICS)]


def register_opts(conf):
    """Register the options."""
    conf.register_group(GROUP)
    for group, options in list_opts():
        conf.register_opts(options, group=group)
