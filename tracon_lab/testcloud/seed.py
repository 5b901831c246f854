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

"""What a cloud has to know before anyone can use it: accounts, catalogue, flavors."""

from __future__ import annotations

from typing import Any

import openstack

from tracon_lab.testcloud import settings as settings_module

PROJECTS = ('service', 'demo')
#: Users with their project and their roles there.
USERS = {
    'service': ('service', ('admin', 'service')),
    'demo': ('demo', ('member',)),
    'reader': ('demo', ('reader',)),
}
#: Virtual CPUs of the flavors.
FLAVORS = {'tracon.small': 1, 'tracon.medium': 2}


def accounts(connection: openstack.connection.Connection,
             settings: settings_module.Settings) -> None:
    """Make projects, users and the catalogue, as far as they are missing."""
    identity: Any = connection.identity
    roles = {one.name: one for one in identity.roles()}
    projects = {one.name: one for one in identity.projects()}
    for name in PROJECTS:
        if name not in projects:
            projects[name] = identity.create_project(name=name, domain_id='default')
    users = {one.name: one for one in identity.users()}
    for name, (project, granted) in USERS.items():
        if name not in users:
            users[name] = identity.create_user(
                name=name, password=settings.password, domain_id='default',
                default_project_id=projects[project].id)
        for role in granted:
            identity.assign_project_role_to_user(projects[project], users[name], roles[role])
    services = {one.type: one for one in identity.services()}
    known = {(one.service_id, one.interface) for one in identity.endpoints()}
    for kind, (listener, path) in settings_module.CATALOGUE.items():
        if kind not in services:
            services[kind] = identity.create_service(name=listener, type=kind)
        for interface in ('public', 'internal', 'admin'):
            if (services[kind].id, interface) not in known:
                identity.create_endpoint(
                    service_id=services[kind].id, interface=interface,
                    url=settings.url(listener) + path, region_id=settings_module.REGION)


def flavors(connection: openstack.connection.Connection,
            settings: settings_module.Settings) -> None:
    """Make the flavors that are missing."""
    known = {one.name for one in connection.compute.flavors()}
    for name, cores in FLAVORS.items():
        if name not in known:
            connection.compute.create_flavor(
                name=name, vcpus=cores, ram=settings.memory_mib,
                disk=settings.disk_mib // 1024)
