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

"""Asks the engine's API, page by page, with the session of OpenStackClient."""

from __future__ import annotations

import contextlib
import logging
from typing import Any, Iterator, Mapping
from urllib import parse
import uuid

from keystoneauth1 import adapter
from keystoneauth1 import exceptions
from osc_lib import exceptions as osc_exceptions

LOG = logging.getLogger(__name__)

SERVICE_TYPE = 'interference'
_VERSION = '/v1'

Document = dict[str, Any]


class Client:
    """The API of one engine.

    :param session: of keystoneauth
    :param endpoint: its URL, with or without the version; None for the one in the catalogue
    """

    def __init__(self, session: Any, endpoint: str | None = None, interface: str | None = None,
                 region: str | None = None) -> None:
        self._endpoint = endpoint
        self._adapter = adapter.Adapter(
            session, service_type=SERVICE_TYPE, interface=interface or 'public',
            region_name=region, endpoint_override=endpoint, user_agent='tracon-osc')

    def show(self, *path: str, **query: Any) -> Document:
        """Return the document at a path.

        :raises osc_lib.exceptions.CommandError: with what the engine has against it
        """
        given = parse.urlencode({name: value for name, value in query.items()
                                 if value is not None}, doseq=True)
        quoted = '/'.join(parse.quote(part, safe='') for part in path)
        url = f'{self._base()}{_VERSION}/{quoted}' + (f'?{given}' if given else '')
        try:
            response = self._adapter.get(url, headers={'Accept': 'application/json'})
        except exceptions.HttpError as error:
            raise osc_exceptions.CommandError(_told(error)) from None
        except exceptions.ConnectFailure as error:
            raise osc_exceptions.CommandError(
                f'{error}; is tracon-engine running, and its endpoint right?') from None
        try:
            found: Document = response.json()
        except ValueError:
            raise osc_exceptions.CommandError(
                f'{url} answered what is no JSON; is this the endpoint of tracon-engine?'
                ) from None
        return found

    def find(self, kind: str, identity: str, query: Mapping[str, Any], limit: int | None = None,
             marker: str | None = None) -> Iterator[Document]:
        """Yield the entries of a list, page after page.

        :param kind: ``vms``, ``hosts`` or ``host_types``
        :param identity: the field that tells entries apart, and that a marker names
        :param limit: entries at most; None for all
        """
        seen: set[str] = set()
        version = None
        while limit is None or len(seen) < limit:
            page = self.show(kind, **query, marker=marker,
                             limit=None if limit is None else limit - len(seen))
            state = (page['state']['epoch'], page['state']['version'])
            if version is not None and version != state:
                LOG.warning('The state of the cloud changed from %s to %s while it was listed; '
                            'something may be missing in a list that is not sorted by %s',
                            '.'.join(map(str, version)), '.'.join(map(str, state)), identity)
            version = state
            for one in page[kind]:
                if one[identity] not in seen:
                    seen.add(one[identity])
                    yield one
            if not page['links'] or not page[kind]:
                return
            marker = page[kind][-1][identity]

    def uuid_of(self, vm: str) -> str:
        """Return the uuid of a VM that is given by its uuid or its name.

        :raises osc_lib.exceptions.CommandError: when there are none, or several, of that name
        """
        with contextlib.suppress(ValueError):
            return str(uuid.UUID(vm))
        # The filter finds parts of names, too.
        found = [str(one['uuid']) for one in self.find('vms', 'uuid', {'name': vm})
                 if one['name'] == vm]
        if len(found) != 1:
            raise osc_exceptions.CommandError(
                f'{len(found)} VMs are named {vm}: {", ".join(sorted(found))}; give one of these '
                'uuids' if found else
                f'No VM that runs is named {vm}; give its uuid')
        return found[0]

    def _base(self) -> str:
        if self._endpoint is None:
            try:
                found = self._adapter.get_endpoint()
            except exceptions.EndpointNotFound:
                found = None
            except exceptions.ConnectFailure as error:
                raise osc_exceptions.CommandError(str(error)) from None
            if not found:
                raise osc_exceptions.CommandError(
                    f'Keystone\'s catalogue has no endpoint of the service type {SERVICE_TYPE}; '
                    'create it, or name the URL with --interference-endpoint or '
                    'OS_INTERFERENCE_ENDPOINT')
            self._endpoint = found
        return self._endpoint.rstrip('/').removesuffix(_VERSION)


def _told(error: exceptions.HttpError) -> str:
    """Return what the engine said is wrong, and what to look for in its log."""
    said = error.details or error.message or 'The request failed.'
    return f'{said} (HTTP {error.http_status}' + (
        f', {error.request_id})' if error.request_id else ')')
