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

"""Client of tracon-engine's API, with the token of the user who looks at the page."""

from __future__ import annotations

import logging
from typing import Any
from urllib import parse

from django.conf import settings
from horizon import exceptions as horizon_exceptions
from openstack_dashboard.api import base
import requests

from tracon_dashboard import exceptions

LOG = logging.getLogger(__name__)
SERVICE = 'interference'
#: Seconds that the engine has to answer.
TIMEOUT = 10
_REFUSALS = {requests.codes.not_found: exceptions.NotFound,
             requests.codes.forbidden: exceptions.Forbidden}

Document = dict[str, Any]


def get(request: Any, *path: str, **query: Any) -> Document:
    """Return the document at a path below /v1.

    :param request: of Django
    :raises .exceptions.Unavailable: or one of the others there
    """
    try:
        root = base.url_for(request, SERVICE)
    except horizon_exceptions.ServiceCatalogException:
        raise exceptions.Unavailable('There is no service of type "interference" in the '
                                     'catalogue. Create its endpoint in Keystone.') from None
    url = '/'.join([root.rstrip('/').removesuffix('/v1'), 'v1',
                    *(parse.quote(part, safe='') for part in path)])
    verify = False if settings.OPENSTACK_SSL_NO_VERIFY else settings.OPENSTACK_SSL_CACERT or True
    try:
        answer = requests.get(
            url, {name: value for name, value in query.items() if value is not None},
            headers={'X-Auth-Token': request.user.token.id, 'Accept': 'application/json'},
            timeout=TIMEOUT, verify=verify)
        content = answer.json()
    except (requests.RequestException, ValueError) as error:
        LOG.warning('tracon-engine does not answer at %s: %s', url, error)
        raise exceptions.Unavailable('tracon-engine does not answer. See that it runs, and that '
                                     'its endpoint is right.') from None
    if answer.status_code == requests.codes.ok:
        return content
    told = ' '.join(str(one.get('detail', '')) for one in content.get('errors', ())) or (
        f'tracon-engine answers with status {answer.status_code}.')
    raise _REFUSALS.get(answer.status_code, exceptions.Unavailable)(told)
