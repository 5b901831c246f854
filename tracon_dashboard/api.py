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

"""Client of tracon-engine's API and of Watcher's, with the token of who looks at the page."""

from __future__ import annotations

import json
import logging
from typing import Any, Sequence
from urllib import parse

from django.conf import settings
from horizon import exceptions as horizon_exceptions
from openstack_dashboard.api import base
import requests

from tracon_dashboard import exceptions

LOG = logging.getLogger(__name__)
ENGINE, WATCHER = 'interference', 'infra-optim'
#: Seconds that a service has to answer.
TIMEOUT = 10
_NAMES = {ENGINE: 'tracon-engine', WATCHER: 'Watcher'}
_REFUSALS = {requests.codes.not_found: exceptions.NotFound,
             requests.codes.forbidden: exceptions.Forbidden}

Document = dict[str, Any]


def get(request: Any, *path: str, service: str = ENGINE, **query: Any) -> Document:
    """Return the document at a path below /v1.

    :param request: of Django
    :raises .exceptions.Unavailable: or one of the others there
    """
    return _ask('get', request, service, path, params={
        name: value for name, value in query.items() if value is not None})


def post(request: Any, *path: str, service: str = WATCHER, **content: Any) -> Document:
    """Post a document to a path below /v1, and return what is answered; errors as of `get`."""
    return _ask('post', request, service, path, json=content)


def _ask(method: str, request: Any, service: str, path: Sequence[str], **more: Any) -> Document:
    try:
        root = base.url_for(request, service)
    except horizon_exceptions.ServiceCatalogException:
        raise exceptions.Unavailable(f'There is no service of type "{service}" in the '
                                     'catalogue. Create its endpoint in Keystone.') from None
    url = '/'.join([root.rstrip('/').removesuffix('/v1'), 'v1',
                    *(parse.quote(part, safe='') for part in path)])
    verify = False if settings.OPENSTACK_SSL_NO_VERIFY else settings.OPENSTACK_SSL_CACERT or True
    try:
        answer = requests.request(
            method, url, timeout=TIMEOUT, verify=verify,
            headers={'X-Auth-Token': request.user.token.id, 'Accept': 'application/json'}, **more)
        content = answer.json()
    except (requests.RequestException, ValueError) as error:
        LOG.warning('%s does not answer at %s: %s', _NAMES[service], url, error)
        raise exceptions.Unavailable(f'{_NAMES[service]} does not answer. See that it runs, and '
                                     'that its endpoint is right.') from None
    if answer.ok:
        return content
    raise _REFUSALS.get(answer.status_code, exceptions.Unavailable)(
        _told(content) or f'{_NAMES[service]} answers with status {answer.status_code}.')


def _told(content: Document) -> str:
    """Return what is wrong, in the words of the service."""
    fault = content.get('error_message')
    if isinstance(fault, str):
        # Watcher tells of some errors in a document in a string.
        try:
            fault = json.loads(fault)
        except ValueError:
            return fault
    if isinstance(fault, dict):
        return str(fault.get('faultstring') or '')
    return ' '.join(str(one.get('detail', '')) for one in content.get('errors', ()))
