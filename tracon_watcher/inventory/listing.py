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

"""Listings of a cloud's services, page after page, and their failures in one form."""

from __future__ import annotations

import dataclasses
from typing import Any, Iterator, Mapping
import urllib.parse

from keystoneauth1 import exceptions as keystone_errors
from openstack import exceptions as sdk_errors

from tracon_watcher import errors

#: The first with the flavor's extra specs, the image's properties and the pinned zone in a listing
#: of servers.
MICROVERSION = '2.98'
#: The last in which a listing of hypervisors comes from Nova's database, with their CPUs.
HYPERVISORS = '2.87'
PAGE = 1000
#: What Nova leaves out of a server, without an error, for a user who may not see it: the part of
#: the server that has the field, its key, what it is, and the policy that shows it.
_RIGHTS = (
    ('', 'OS-EXT-SRV-ATTR:host', 'the hosts of VMs',
     'os_compute_api:os-extended-server-attributes'),
    ('flavor', 'extra_specs', 'the extra specs of VMs\' flavors, which state limits',
     'os_compute_api:servers:show:flavor-extra-specs'))


class CloudUnavailable(errors.TraconError):
    """A service of the cloud cannot be asked, or not for what is needed."""


class NoEndpoint(CloudUnavailable):
    """The cloud has no such service."""


class Forbidden(CloudUnavailable):
    """The user may not have what was asked for."""


class NotFound(CloudUnavailable):
    """The service does not have what was asked for."""


@dataclasses.dataclass(frozen=True)
class Service:
    """A service of the cloud.

    :param name: for errors
    :param proxy: of an ``openstack.connection.Connection``, such as its ``compute``
    :param microversion: None for the service's default
    :param user: who asks, for errors
    """

    name: str
    proxy: Any
    microversion: str | None = None
    user: str = 'the user'

    def get(self, path: str, key: str, query: Mapping[str, Any]) -> Any:
        """Return the body of an answer, which has ``key``.

        :raises CloudUnavailable: when there is none, naming the request and the remedy
        """
        what = f'{self.name}: GET {path}'
        try:
            response = self.proxy.get(path, params=query, microversion=self.microversion)
            sdk_errors.raise_from_response(response)
            body = response.json()
        except (keystone_errors.EndpointNotFound,
                sdk_errors.ServiceDisabledException) as error:
            raise NoEndpoint(f'{what}: {error}: the service catalogue has no endpoint for '
                             'it') from None
        except (sdk_errors.SDKException, keystone_errors.ClientException, ValueError) as error:
            if isinstance(error, sdk_errors.NotFoundException):
                raise NotFound(f'{what}: {error}') from None
            remedy = f'see whether the service runs and {self.user} may list what it needs'
            if 406 in (getattr(error, 'http_status', None), getattr(error, 'status_code', None)):
                remedy = (f'this release lacks microversion {self.microversion}; upgrade it')
            kind = (Forbidden if isinstance(error, sdk_errors.ForbiddenException)
                    else CloudUnavailable)
            raise kind(f'{what}: {error}: {remedy}') from None
        if not isinstance(body, dict) or key not in body:
            raise CloudUnavailable(f'{what}: the answer has no {key}: see whether the endpoint in '
                                   'the service catalogue is that of the right service')
        return body

    def pages(self, path: str, key: str, query: Mapping[str, Any],
              limited: bool = True, links: str | None = None) -> Iterator[Mapping[str, Any]]:
        """Yield the entries of a listing.

        :param limited: whether the service can be asked for pages
        :param links: where the link to the next page stands, if not at ``key`` and ``_links``
        :raises CloudUnavailable: as :meth:`get`
        """
        wanted: Mapping[str, Any] | None = {**query, 'limit': PAGE} if limited else query
        while wanted is not None:
            body = self.get(path, key, wanted)
            if not isinstance(body[key], list):
                raise CloudUnavailable(f'{self.name}: GET {path}: {key} is '
                                       f'{type(body[key]).__name__}, not a list: see whether '
                                       'something between changes answers')
            yield from body[key]
            following = [link['href'] for link in body.get(links or f'{key}_links', ())
                         if link['rel'] == 'next']
            if limited and links is None and not following and len(body[key]) == PAGE:
                # All of them link to the next page from a full one, were it the last.
                raise CloudUnavailable(f'{self.name}: GET {path}: {PAGE} {key} came, and no link '
                                       'to more: the answer was cut short; see whether something '
                                       'between takes links out of answers')
            # Only the question is taken from the link: its host may be one only users reach.
            wanted = urllib.parse.parse_qs(
                urllib.parse.urlsplit(following[0]).query) if following else None


def hidden(server: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return what Nova keeps from who asks of a server, and the policy that shows it; or None.

    Absence is no answer here: a VM without a host, or a flavor without extra specs, has the field.
    """
    for parent, key, what, policy in _RIGHTS:
        # A flavor that is lost to Nova has no field at all.
        fields = server.get(parent) if parent else server
        if fields and key not in fields:
            return what, policy
    return None


def shown(server: Mapping[str, Any], user: str) -> Mapping[str, Any]:
    """Return a server that Nova tells all of that is needed.

    :param user: who asks, for the error
    :raises Forbidden: otherwise; what is hidden is not taken for what is not there
    """
    found = hidden(server)
    if found is not None:
        what, policy = found
        raise Forbidden(f'Nova does not tell {user} {what}: give the user the role admin, or '
                        f'allow it {policy} in Nova\'s policy.yaml')
    return server


def is_partial(server: Mapping[str, Any]) -> bool:
    """Return whether Nova's record of a server comes from a cell that is down.

    Nova fills it from its API database, which has no name, host or state.
    """
    return 'OS-EXT-STS:vm_state' not in server
