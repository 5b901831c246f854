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

"""Files in the format of oslo.config, and the sections that many services share."""

from __future__ import annotations

import pathlib
from typing import Mapping

from tracon_lab.testcloud import settings as settings_module

#: Values by option; a list gives an option that stands several times.
Section = Mapping[str, object]


def render(sections: Mapping[str, Section], extra: str = '') -> str:
    """Return the text of a file; what `extra` says again counts more."""
    lines = []
    for name, options in sections.items():
        lines.append(f'[{name}]')
        for option, value in options.items():
            values = value if isinstance(value, (list, tuple)) else [value]
            lines += [f'{option} = {_shown(one)}' for one in values]
        lines.append('')
    return '\n'.join(lines) + (f'\n{extra.strip()}\n' if extra.strip() else '')


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def write(path: pathlib.Path, text: str) -> None:
    """Write a file that only its owner may read, unless it says the same already."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.read_text(encoding='utf-8') == text:
        return
    part = path.with_name(path.name + '.part')
    part.write_text(text, encoding='utf-8')
    part.chmod(0o600)
    part.replace(path)


def account(settings: settings_module.Settings) -> dict[str, object]:
    """Return how one service introduces itself to another."""
    return {
        'auth_type': 'password', 'auth_url': settings.auth_url, 'username': 'service',
        'password': settings.password, 'project_name': 'service', 'user_domain_id': 'default',
        'project_domain_id': 'default', 'region_name': settings_module.REGION,
    }


def doorkeeper(settings: settings_module.Settings, service_type: str) -> dict[str, object]:
    """Return the options of Keystone's middleware, which checks tokens."""
    return {
        'www_authenticate_uri': settings.auth_url, 'service_type': service_type,
        'memcached_servers': f'{settings_module.ADDRESS}:{settings.port("memcached")}',
        'service_token_roles': 'service', 'service_token_roles_required': True,
        **account(settings),
    }


def database(settings: settings_module.Settings, name: str) -> dict[str, object]:
    """Return the options of oslo.db."""
    return {'connection': settings.database_url(name), 'max_pool_size': 5}


def messaging() -> dict[str, object]:
    """Return the options of oslo.messaging for RabbitMQ, the same for all that share an exchange.

    Quorum queues are what clouds are deployed with, since they outlive a broker's host.
    """
    return {'rabbit_quorum_queue': True, 'rabbit_transient_quorum_queue': True}


def concurrency(settings: settings_module.Settings) -> dict[str, object]:
    """Return the options of oslo.concurrency."""
    return {'lock_path': settings.data / 'locks'}
