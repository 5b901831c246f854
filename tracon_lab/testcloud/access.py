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

"""Connections to the cloud's APIs."""

from __future__ import annotations

import time
from typing import Callable, TypeVar

from keystoneauth1 import exceptions
from keystoneauth1.identity import v3
from keystoneauth1 import session
import openstack
import requests

from tracon_lab.testcloud import errors
from tracon_lab.testcloud import settings as settings_module

T = TypeVar('T')
COMPUTE_VERSION = '2.96'


def connect(settings: settings_module.Settings, user: str = 'admin',
            project: str = 'admin') -> openstack.connection.Connection:
    """Return a connection of the SDK, which asks for a token at its first request."""
    transport = requests.Session()
    transport.trust_env = False         # no proxy leads to the loopback device
    auth = v3.Password(
        auth_url=settings.auth_url, username=user, password=settings.password,
        project_name=project, user_domain_id='default', project_domain_id='default')
    return openstack.connection.Connection(
        session=session.Session(auth, session=transport),
        region_name=settings_module.REGION, compute_default_microversion=COMPUTE_VERSION,
        compute_api_version='2', identity_api_version='3', image_api_version='2')


def wait_for(what: str, found: Callable[[], T | None], patience: float,
             pause: float = 0.3) -> T:
    """Ask until there is an answer; an API that cannot be asked has none yet.

    :raises CloudError: when there is none in time
    """
    deadline = time.monotonic() + patience
    reason = ''
    while True:
        try:
            answer = found()
            reason = ''
        except (exceptions.ConnectFailure, exceptions.HttpError) as exc:
            answer, reason = None, f': {exc}'
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise errors.CloudError(f'{what}: not within {patience:.0f} s{reason}')
        time.sleep(pause)
