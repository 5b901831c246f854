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

"""Errors that end a request, each with its status; as JSON in the style of the API SIG."""

from __future__ import annotations

import json
import logging
from typing import Any, Callable, Iterable, Mapping

from oslo_middleware import request_id
import webob
import webob.dec

from tracon_watcher import errors

LOG = logging.getLogger(__name__)

_SHOWN = 80

#: In the environment of a request that one of our own handlers answers: the template of its path,
#: for metrics, which must not have as many series as there are VMs.
ROUTE = 'tracon.route'


class Fault(errors.TraconError):
    """A request that is answered with an error.

    :param detail: one sentence, fit to be shown to the caller
    :param remedy: what to do about it
    """

    status = 500
    title = 'Internal error'
    code = 'interference.internal'

    def __init__(self, detail: str, remedy: str = '',
                 headers: Mapping[str, str] | None = None) -> None:
        super().__init__(f'{detail} {remedy}'.strip())
        self.detail = detail
        self.remedy = remedy
        self.headers = dict(headers or {})


class InvalidParameter(Fault):
    """A parameter is unknown, or its value is not allowed."""

    status = 400
    title = 'Invalid parameter'
    code = 'interference.parameter.invalid'

    def __init__(self, name: str, value: object, allowed: str) -> None:
        shown = repr(value)
        if len(shown) > _SHOWN:
            shown = shown[:_SHOWN - 3] + '...'
        super().__init__(f'{name}={shown} is not allowed.', f'Allowed: {allowed}.')


class Forbidden(Fault):
    """The policy does not allow it."""

    status = 403
    title = 'Forbidden'
    code = 'interference.forbidden'

    def __init__(self, rule: str, what: str) -> None:
        super().__init__(f'Policy {rule} does not allow {what}.',
                         'Ask for the role that it needs, or an administrator.')


class NotFound(Fault):
    """There is no such thing, or the caller may not know of it."""

    status = 404
    title = 'Not found'
    code = 'interference.not_found'


class MethodNotAllowed(Fault):
    """Nothing here is changed over HTTP."""

    status = 405
    title = 'Method not allowed'
    code = 'interference.method'

    def __init__(self, method: str) -> None:
        super().__init__(f'{method[:20]} is not allowed here.', 'Allowed: GET, HEAD.',
                         {'Allow': 'GET, HEAD'})


class TooLarge(Fault):
    """A request has a body, or a query longer than any that makes sense."""

    status = 413
    title = 'Request too large'
    code = 'interference.too_large'


class Unavailable(Fault):
    """What is asked for is not there yet, or too many ask at once."""

    status = 503
    title = 'Not available yet'
    code = 'interference.unavailable'

    def __init__(self, detail: str, retry_after: int = 10) -> None:
        super().__init__(detail, f'Try again in {retry_after} seconds.',
                         {'Retry-After': str(retry_after)})


def respond(fault: Fault, identity: str | None) -> webob.Response:
    """Return the response to a request that failed.

    :param identity: of the request
    """
    return _response(fault.status, fault.code, fault.title, str(fault), identity, fault.headers)


class FaultWrapper:
    """Turns faults into responses, and whatever else goes wrong into one that says nothing more.

    Errors of the middleware inside, such as those of keystonemiddleware, get the same form.
    """

    def __init__(self, application: Callable[..., Iterable[bytes]]) -> None:
        self._application = application

    @webob.dec.wsgify
    def __call__(self, request: webob.Request) -> webob.Response:
        identity = request.environ.get(request_id.ENV_REQUEST_ID)
        try:
            response = request.get_response(self._application)
        except Fault as fault:
            return respond(fault, identity)
        except webob.exc.HTTPException as error:
            response = error
        except Exception:
            # What went wrong may name what the one who asks must not know.
            LOG.exception('Request %s was not answered', identity)
            return respond(Fault(f'The request failed; the log tells why under {identity}.'),
                           identity)
        if response.status_int < 400 or ROUTE in request.environ:
            return response
        title = response.status.partition(' ')[2] or 'Error'
        detail = ('The request needs a valid token in X-Auth-Token.'
                  if response.status_int == 401 else f'{title}.')
        kept = {name: response.headers[name] for name in ('WWW-Authenticate', 'Retry-After')
                if name in response.headers}
        return _response(response.status_int, f'interference.{response.status_int}', title,
                         detail, identity, kept)


def _response(status: int, code: str, title: str, detail: str, identity: str | None,
              headers: Mapping[str, str]) -> webob.Response:
    content: dict[str, Any] = {'errors': [{
        'status': status, 'code': code, 'title': title, 'detail': detail,
        'request_id': identity}]}
    response = webob.Response(status=status, body=json.dumps(content).encode(),
                              content_type='application/json', charset='UTF-8')
    response.headers.update(headers)
    return response
