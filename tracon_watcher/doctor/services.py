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

"""Asks the services of a cloud, each for little and once; nothing is changed.

What does not answer, or says no, becomes :class:`.findings.Unread`, and the others are asked all
the same.
"""

from __future__ import annotations

import dataclasses
from email import utils
import time
from typing import Any, Callable, Iterator, Mapping
import urllib.parse
import uuid

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
import numpy as np

from tracon_watcher.doctor import answers
from tracon_watcher.doctor.findings import Severity
from tracon_watcher.doctor.findings import Unread
from tracon_watcher import hypervisor_types
from tracon_watcher.inventory import cloud
from tracon_watcher.inventory import listing
from tracon_watcher.telemetry import meters
from tracon_watcher.telemetry import rest
from tracon_watcher.telemetry import samples

_USER = "the engine's user"
_MOST_AHEAD = 120.0
_SPAN_POLLS, _LEAST_SPAN = 15, 60.0
#: By service type: what an operator calls it, whether a cloud has it at all, and needs it.
_SERVICES = {
    'identity': ('Keystone', True, True), 'compute': ('Nova', True, True),
    'placement': ('Placement', True, True), 'metric': ('Gnocchi', True, True),
    'metric-storage': ('Aetos', True, True), 'prometheus': ('Prometheus', True, True),
    'interference': ('tracon-engine', True, True), 'block-storage': ('Cinder', False, False),
    'infra-optim': ('Watcher', False, False)}
_TOLD = ('services', 'roles', 'microversion', 'servers', 'hosts', 'aggregates',
         'extra_specs_validated', 'samples', 'health', 'judged', 'host_types', 'audits')


@dataclasses.dataclass(frozen=True)
class Access:
    """How services are reached.

    :param connection: ``openstack.connection.Connection``, as the engine's user
    :param telemetry: service type of what has the samples, ``prometheus`` with an address
    :param prometheus: adapter of keystoneauth1, where it is not in the catalogue
    :param reader: of telemetry, as the engine has it
    :param engine: URL of the engine's API where the catalogue has none
    """

    connection: Any
    region: str | None
    interface: str
    telemetry: str
    prometheus: Any
    reader: samples.Reader
    engine: str
    polling_seconds: float
    clock: Callable[[], float] = time.time


def ask(access: Access) -> dict[str, Any]:
    """Return the facts that services tell, by the names of :class:`.checks.Facts`."""
    session = access.connection.session
    try:
        seen = session.auth.get_access(session)
    except Exception as raised:
        what, remedy = answers.parse_error(raised)
        found = unasked(Unread(f'Keystone gives no token: {what}', f'{remedy}; then '
                               '[service_auth] of tracon.conf', Severity.ERROR))
        return {**found, 'health': tried(lambda: _health(access.engine, session.verify))}
    return _Cloud(access, frozenset(seen.role_names)).facts()


def unasked(reason: Unread) -> dict[str, Any]:
    """Return the same facts where no service can be asked."""
    return dict.fromkeys(_TOLD, reason)


class _Cloud:
    """The services of a cloud whose Keystone gives tokens."""

    def __init__(self, access: Access, roles: frozenset[str]) -> None:
        self._access = access
        self._roles = roles
        self._answers: dict[str, answers.Answer] = {}
        for kind in ('identity', 'compute', 'placement', access.telemetry, 'interference',
                     'block-storage', 'infra-optim'):
            answer = self._knock(kind)
            if answer is not None:
                self._answers[kind] = answer

    def facts(self) -> dict[str, Any]:
        """Return what they tell, by the names of :class:`.checks.Facts`."""
        session = self._access.connection.session

        def nova() -> listing.Service:
            return listing.Service('Nova', self._adapter('compute'), listing.MICROVERSION, _USER)

        def own() -> listing.Service:
            return listing.Service('tracon-engine', self._adapter('interference'), None, _USER)

        return {
            'services': tuple(self._answers.values()),
            'roles': self._roles,
            'microversion': self._of('compute', self._microversion),
            'servers': self._of('compute', lambda: tuple(
                one for one in nova().get('/servers/detail', 'servers', {
                    'all_tenants': 'True', 'limit': 1})['servers']
                if not listing.is_partial(one))),
            'hosts': self._of('compute', lambda: frozenset(
                one['host'] for one in nova().pages(
                    '/os-services', 'services', {'binary': 'nova-compute'}, limited=False)
                if one.get('status') == 'enabled' and one.get('state') == 'up')
                - hypervisor_types.several_machines({
                    host: one['type'] for host, one in
                    cloud.hypervisor_details(nova()).items()})),
            'aggregates': self._of('compute', lambda: tuple(
                nova().pages('/os-aggregates', 'aggregates', {}, limited=False))),
            'extra_specs_validated': self._of('compute', self._validated),
            'samples': self._of(self._access.telemetry, self._samples),
            'health': self._of('interference', lambda: _health(
                self._adapter('interference').endpoint_override, session.verify)),
            'judged': self._of('interference', lambda: tuple(
                own().pages('/v1/hosts', 'hosts', {}, links='links'))),
            'host_types': self._of('interference', lambda: tuple(
                own().pages('/v1/host_types', 'host_types', {}, links='links'))),
            'audits': (self._of('infra-optim', lambda: tuple(self._audits()))
                       if 'infra-optim' in self._answers else None),
        }

    def _adapter(self, kind: str) -> adapter.Adapter:
        access = self._access
        if kind == 'prometheus':
            return access.prometheus
        if kind == 'compute':
            return access.connection.compute
        made = adapter.Adapter(access.connection.session, service_type=kind, raise_exc=False,
                               interface=access.interface, region_name=access.region)
        if kind in ('interference', 'infra-optim'):
            # Endpoints with and without the version are both in use.
            made.endpoint_override = made.get_endpoint().rstrip('/').removesuffix('/v1')
        return made

    def _knock(self, kind: str) -> answers.Answer | None:
        """Ask a service for its root; return None where a cloud need not have it."""
        name, expected, vital = _SERVICES[kind]
        try:
            asked = self._adapter(kind)
            began = self._access.clock()
            response = asked.get('/', raise_exc=False, connect_retries=0)
            ended = self._access.clock()
        except exceptions.EndpointNotFound as raised:
            return answers.Answer(name, str(raised), 'create it, or see region and interface of '
                                  '[service_auth]', vital) if expected else None
        except Exception as raised:
            return answers.Answer(name, answers.parse_error(raised)[0], vital=vital)
        if response.status_code >= 500:
            return answers.Answer(name, f'it answers with status {response.status_code}',
                                  vital=vital)
        return answers.Answer(name, vital=vital,
                              ahead=_ahead(response.headers.get('Date'), began, ended))

    def _of(self, kind: str, work: Callable[[], Any]) -> Any:
        """Return what a service tells, if it answers at all."""
        if kind not in self._answers or self._answers[kind].trouble is not None:
            return Unread(f'{_SERVICES[kind][0]} does not answer',
                          'mend what is said of it under "services"')
        return tried(work)

    def _microversion(self) -> tuple[int, ...]:
        found: tuple[int, ...] = self._adapter('compute').get_endpoint_data().max_microversion
        return found

    def _validated(self) -> bool:
        """Offer Nova an invalid limit of a flavor that there cannot be: it tells what it minds."""
        response = self._adapter('compute').post(
            f'/flavors/{uuid.uuid4()}/os-extra_specs', microversion='2.86',
            json={'extra_specs': {'tracon:max_slowdown': 'invalid'}})
        if response.status_code not in (400, 404):
            raise listing.CloudUnavailable(
                f'Nova: POST /flavors: status {response.status_code}: give {_USER} the role admin')
        return bool(response.status_code == 400)

    def _samples(self) -> answers.Samples:
        access, now = self._access, self._access.clock()
        span = max(_SPAN_POLLS * access.polling_seconds, _LEAST_SPAN)
        found = access.reader.read(now - span, now + _MOST_AHEAD, [meters.HOST_CLOCK.name])
        latest = np.full(len(found.resources), -np.inf)
        np.maximum.at(latest, found.row, found.at)
        # The clock of the host tells when it was polled, whatever the store makes of times.
        order = np.lexsort((found.values[:, 0], found.row))
        gaps = np.diff(found.values[order, 0]) / 1e9
        gaps = gaps[(np.diff(found.row[order]) == 0) & (gaps > 0)]
        return answers.Samples(dict(zip(found.resources, (now - latest).tolist())),
                               float(np.median(gaps)) if len(gaps) else None, span,
                               found.asked)

    def _audits(self) -> Iterator[Mapping[str, Any]]:
        watcher = listing.Service('Watcher', self._adapter('infra-optim'), None, _USER)
        query: Mapping[str, Any] | None = {}
        while True:
            body = watcher.get('/v1/audits/detail', 'audits', query or {})
            yield from body['audits']
            following = body.get('next')
            if not following or not body['audits']:
                return
            query = urllib.parse.parse_qs(urllib.parse.urlsplit(following).query)


def _health(url: str, verify: Any) -> Mapping[str, Any]:
    """Return what the engine says of itself, for which it wants no token."""
    found: Mapping[str, Any] = listing.Service(
        'tracon-engine', rest.plain(url, verify=verify), None, _USER).get(
            '/healthz', 'checks', {})
    return found


def _ahead(date: str | None, began: float, ended: float) -> float | None:
    """Return by how many seconds a service's clock is ahead; its header has whole seconds."""
    try:
        said = utils.parsedate_to_datetime(date or '').timestamp() + 0.5
    except ValueError:
        return None
    return 0.0 if began - 0.5 <= said <= ended + 0.5 else said - (began + ended) / 2


def tried(work: Callable[[], Any], severity: Severity = Severity.UNKNOWN) -> Any:
    """Return what some work returns, or why it could not be done.

    :param severity: of that it could not; that a service says no is an error in any case
    """
    try:
        return work()
    except Exception as raised:
        what, remedy = answers.parse_error(raised)
        refused = isinstance(raised, listing.Forbidden)
        return Unread(what, remedy, Severity.ERROR if refused else severity)
