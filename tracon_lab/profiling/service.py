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

"""A service of the cloud: asked, told, and its failures in one form."""

from __future__ import annotations

from typing import Any, Mapping

from keystoneauth1 import exceptions as keystone_errors
from openstack import exceptions as sdk_errors

from tracon_lab.profiling import errors

#: Of Nova: the first in which a VM's host can be chosen without forcing it past the scheduler.
MICROVERSION = '2.74'
_REMEDIES = {
    401: 'see whether the password in clouds.yaml or OS_PASSWORD is right',
    403: 'measuring needs an administrator: set --os-cloud or OS_* to one',
    406: f'this release lacks microversion {MICROVERSION}; upgrade it',
    413: 'raise the quota of the project',
}


class Service:
    """A service.

    :param name: for errors
    :param proxy: of an ``openstack.connection.Connection``, such as its ``compute``
    """

    def __init__(self, name: str, proxy: Any) -> None:
        self._name = name
        self._proxy = proxy
        self._version = {'microversion': MICROVERSION} if name == 'Nova' else {}

    def get(self, path: str, key: str, query: Mapping[str, str] | None = None) -> Any:
        """Return what an answer has under ``key``.

        :raises CloudRefused: when there is no such answer
        """
        return self._ask('get', path, params=dict(query or {})).json()[key]

    def find(self, path: str, key: str) -> Any:
        """Return the same; None when there is nothing there."""
        try:
            return self.get(path, key)
        except _Missing:
            return None

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Have something made or done, and return the answer."""
        answer = self._ask('post', path, json=dict(body))
        return answer.json() if answer.content else {}

    def delete(self, path: str) -> None:
        """Have something deleted; what is gone already is no error."""
        try:
            self._ask('delete', path)
        except _Missing:
            pass

    def upload(self, path: str, content: bytes) -> None:
        """Hand over the content of something that was made."""
        self._ask('put', path, data=content, headers={'Content-Type': 'application/octet-stream'})

    def _ask(self, method: str, path: str, **more: Any) -> Any:
        what = f'{self._name}: {method.upper()} {path}'
        try:
            answer = getattr(self._proxy, method)(path, **more, **self._version)
            sdk_errors.raise_from_response(answer)
            return answer
        except (sdk_errors.SDKException, keystone_errors.ClientException) as error:
            status = getattr(error, 'status_code', None) or getattr(error, 'http_status', None)
            kind = _Missing if status == 404 else errors.CloudRefused
            remedy = _REMEDIES.get(status or 0, f'see whether {self._name} runs, and its log')
            raise kind(f'{what}: {error}: {remedy}') from None


class _Missing(errors.CloudRefused):
    """There is nothing of that name."""
