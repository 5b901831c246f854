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

"""In which order a cloud comes up, and goes down."""

from __future__ import annotations

import functools

import openstack

from tracon_lab.testcloud import access
from tracon_lab.testcloud import images
from tracon_lab.testcloud import network
from tracon_lab.testcloud import schemas
from tracon_lab.testcloud import seed
from tracon_lab.testcloud import services as services_module
from tracon_lab.testcloud import steps

#: Go last, when no other service has anything to tell any more.
_FIRST = ('mariadb', 'rabbitmq', 'memcached')
_REPORT_PATIENCE = 120.0


class Launch:
    """The steps of one cloud."""

    def __init__(self, services: services_module.Services) -> None:
        self._services = services
        self._settings = services.settings

    def up(self) -> list[steps.Step]:
        """Return the steps that start what is not running and make what is missing."""
        made = schemas.Schemas(self._settings, self._services)
        hosts = self._services.hosts
        found: list[steps.Step] = []

        def add(name: str, *after: str, weight: float = 3.0) -> None:
            found.append(steps.Step(name, functools.partial(self._services.start, name), after,
                                    weight))

        def make(step: steps.Step) -> None:
            found.append(step)
        for name in ('mariadb', 'epmd', 'memcached'):
            add(name, weight=0.5)
        add('rabbitmq', 'epmd', weight=6.0)
        found += made.steps()
        add('keystone', 'schemas', 'memcached')
        add('placement', 'schemas')
        make(steps.Step('accounts', self._accounts, ('keystone',), 2.0))
        # It asks Placement at its start, and ends when it is not let in.
        add('nova-conductor', 'rabbitmq', 'placement', 'accounts')
        add('glance-api', 'schemas')
        add('neutron-api', 'schemas', 'rabbitmq')
        make(steps.Step('network', self._network, ('neutron-api', 'accounts'), 1.0))
        for name, host in hosts.items():
            make(steps.Step(f'{name} prepared', host.prepare, ('schemas',), 0.1))
            add(name, f'{name} prepared', weight=0.3)
            add(f'virtlogd-{name}', name, weight=0.3)
            add(f'libvirtd-{name}', f'virtlogd-{name}', weight=0.5)
            add(f'nova-compute-{name}', f'libvirtd-{name}', 'nova-conductor', 'neutron-api')
        add('nova-api', 'schemas', 'rabbitmq')
        add('nova-scheduler', 'nova-conductor')
        make(steps.Step('images', self._images, ('glance-api', 'accounts'), 8.0))
        add('gnocchi-api', 'schemas')
        make(steps.Step('resource types', self._resource_types, ('gnocchi-api', 'accounts'), 4.0))
        make(steps.Step('flavors', self._flavors, ('nova-api', 'accounts'), 0.5))
        add('watcher-api', 'accounts', 'rabbitmq')
        add('gnocchi-metricd', 'gnocchi-api')
        add('ceilometer-notification', 'resource types', 'rabbitmq')
        for name in hosts:
            add(f'ceilometer-polling-{name}', f'libvirtd-{name}', 'ceilometer-notification')
        make(steps.Step('computes', self._computes, (
            'nova-api', 'nova-scheduler', *(f'nova-compute-{name}' for name in hosts)), 4.0))
        add('watcher-decision-engine', 'watcher-api', 'computes')
        add('watcher-applier', 'watcher-api', 'computes')
        make(steps.Step('all services', lambda: self._services.check(*self._services.names()),
                        tuple(step.name for step in found), 0.1))
        return found

    def down(self) -> list[steps.Step]:
        """Return the steps that stop everything, guests too; what is stored stays."""
        stop = self._services.supervisor.stop
        known = [*self._services.supervisor.names(),
                 *(name for name in self._services.hosts)]
        hosts = self._services.hosts
        work = sorted({*known} - {*_FIRST, 'epmd', *hosts})
        found = [steps.Step(name, functools.partial(stop, name)) for name in work]
        found += [steps.Step(name, host.leave, tuple(work))
                  for name, host in hosts.items()]
        found += [steps.Step(name, functools.partial(stop, name, 30.0), (*work, *hosts))
                  for name in _FIRST]
        found.append(steps.Step('network', functools.partial(network.remove, self._settings),
                                tuple(work)))
        found.append(steps.Step('epmd', functools.partial(stop, 'epmd'), ('rabbitmq',)))
        return found

    def _connection(self) -> openstack.connection.Connection:
        return access.connect(self._settings)

    def _accounts(self) -> None:
        if self._first('accounts'):
            seed.accounts(self._connection(), self._settings)
            self._did('accounts')

    def _network(self) -> None:
        network.create(self._settings)
        network.publish(self._connection(), self._settings)

    def _flavors(self) -> None:
        seed.flavors(self._connection(), self._settings)

    def _images(self) -> None:
        images.publish(self._connection(), self._settings)

    def _resource_types(self) -> None:
        # Without a limit it would try for ever.
        if self._first('resource-types'):
            self._services.run(
                'ceilometer-upgrade', '--retry', '5', '--config-file',
                str(self._settings.configuration / 'ceilometer/ceilometer.conf'))
            self._did('resource-types')

    def _computes(self) -> None:
        """Wait for Nova's services to report, and tell the cell of its hosts."""
        connection = self._connection()
        hosts = self._settings.hosts
        computes = [f'nova-compute-{name}' for name in hosts]
        wanted = {('nova-conductor', 'control'), ('nova-scheduler', 'control'),
                  *(('nova-compute', name) for name in hosts)}

        def reported() -> bool:
            self._services.check(*computes, 'nova-conductor', 'nova-scheduler')
            up = {(one['binary'], one['host']) for one in connection.compute.get(
                '/os-services').json()['services'] if one['state'] == 'up'}
            providers = {one['name'] for one in connection.placement.get(
                '/resource_providers').json()['resource_providers']}
            return up.issuperset(wanted) and providers.issuperset(hosts)
        access.wait_for("Nova's services reporting", reported, _REPORT_PATIENCE)
        mark = 'hosts-' + '-'.join(hosts)
        if self._first(mark):
            nova = self._settings.configuration / 'nova'
            self._services.run(
                'nova-manage', '--config-file', str(nova / 'nova.conf'), '--config-file',
                str(nova / 'control.conf'), 'cell_v2', 'discover_hosts')
            self._did(mark)

    def _first(self, mark: str) -> bool:
        return not (self._settings.data / f'done-{mark}').exists()

    def _did(self, mark: str) -> None:
        (self._settings.data / f'done-{mark}').touch()
