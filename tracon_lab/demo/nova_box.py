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

"""A Nova in a box: its real API, conductor, scheduler and Placement in this process, on SQLite.

They are Nova's own functional fixtures, with Nova's fake driver in place of hypervisors. The user
of the box configures the scheduler as an operator would, by options alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import logging
import os
import pathlib
import sys
import tempfile
import threading
import time
from typing import Any, Callable, Collection, Iterable, Iterator, Mapping
import unittest
import uuid
import warnings

# Before anything imports Nova: its threads, and those of the door, are native ones.
os.environ.setdefault('OS_NOVA_DISABLE_EVENTLET_PATCHING', 'true')

# Nova's fixtures turn warnings of SQLAlchemy 2.1 about itself into errors unless told otherwise.
warnings.filterwarnings('ignore')
import fixtures  # noqa: E402
from nova import conf  # noqa: E402
from nova.tests.functional import integrated_helpers  # noqa: E402
from oslo_utils.fixture import uuidsentinel  # noqa: E402
from oslo_utils import uuidutils  # noqa: E402
import sqlalchemy.exc  # noqa: E402

from nova_filters import worker  # noqa: E402
from tracon_lab.demo import door  # noqa: E402
from tracon_lab.demo import idle_threads  # noqa: E402
from tracon_watcher.conf import nova_filters as options  # noqa: E402
from tracon_watcher import errors  # noqa: E402

_LIMIT_SECONDS = 600.0
_ENDS = ('instance.create.end', 'instance.create.error', 'compute_task.build_instances.error')
_FILTERS = ['ComputeFilter', 'ComputeCapabilitiesFilter', 'ImagePropertiesFilter',
            'ServerGroupAntiAffinityFilter', 'ServerGroupAffinityFilter']


class NovaFailed(errors.TraconError):
    """Nova did something that the demonstration cannot go on after."""


@dataclasses.dataclass(frozen=True)
class Server:
    """A server that was asked for.

    :param host: where it runs; None when no host was left for it
    :param fault: why it does not run
    """

    uuid: str
    host: str | None
    fault: str = ''


def fixed_uuid(*parts: object) -> str:
    """Return a UUID that is the same for the same names in every process."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, 'tracon-demo:' + '/'.join(map(str, parts))))


def drawn_order(hosts: Iterable[Any], request: str) -> list[Any]:
    """Return host states in an order that the request's UUID and the hosts' names determine.

    Nova takes the first of equally good hosts, in the order of Placement's answer, which UUIDs
    and hash values decide. Here a digest draws the order, for each request another one.

    :param hosts: with an attribute ``host``
    """
    return sorted(hosts, key=lambda one: hashlib.sha256(
        f'{request}/{one.host}'.encode()).digest())


class _ServerUuids:
    """What nova-api draws UUIDs with; those of servers are told beforehand."""

    def __init__(self) -> None:
        self.next: str | None = None

    def generate_uuid(self) -> str:
        chosen, self.next = self.next, None
        return chosen or str(uuidutils.generate_uuid())

    def __getattr__(self, name: str) -> Any:
        return getattr(uuidutils, name)


class _Log(logging.Handler):
    """Keeps what the filter reports, and which snapshot it has read."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self._changed = threading.Condition()
        self._version = -1
        self.reports: list[dict[str, Any]] = []
        self.warnings: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        with self._changed:
            if text.startswith('Interference of instance'):
                self.reports.append(json.loads(text[text.index('{'):]))
            elif text.startswith('Snapshot '):
                self._version = int(text.split()[1])
                self._changed.notify_all()
            elif record.levelno >= logging.WARNING:
                self.warnings.append(text)

    def forget_version(self) -> None:
        with self._changed:
            self._version = -1

    def wait_for(self, version: int, seconds: float) -> None:
        with self._changed:
            if not self._changed.wait_for(lambda: self._version >= version, seconds):
                raise NovaFailed(f'nova-scheduler has not read snapshot {version} within '
                                 f'{seconds:g} s; it said: {self.warnings[-3:]}')


class NovaBox:
    """A running Nova; :func:`opened` makes one.

    :ivar reports: what InterferenceFilter has logged, as it says it: a dictionary a request
    """

    def __init__(self, case: _Cloud, directory: pathlib.Path, log: _Log) -> None:
        self._case = case
        self._log = log
        self._mode: str | None = None
        self._judging = False
        self.reports = log.reports
        self.warnings = log.warnings
        self.snapshot_file = str(directory / 'snapshot.jsonl')
        self._flavors: dict[str, str] = {}
        self.image = case.glance.auto_disk_config_enabled_image['id']

    def schedule(self, mode: str | None = None, **settings: Any) -> None:
        """Restart nova-scheduler, with this extension in ``mode`` or, for None, without it.

        :param settings: further options of the group ``[tracon]``
        """
        case = self._case
        self._close_judges()
        if case.scheduler_service is not None:
            case.scheduler_service.stop()
        available = ['nova.scheduler.filters.all_filters']
        weighers = ['nova.scheduler.weights.all_weighers']
        enabled = list(_FILTERS)
        if mode is not None:
            available.append('nova_filters.interference_filter.InterferenceFilter')
            weighers.append('nova_filters.interference_weigher.InterferenceWeigher')
            enabled.append('InterferenceFilter')
            case.flags(group='tracon', snapshot_file=self.snapshot_file, mode=mode,
                       snapshot_refresh_seconds=0.1, initial_wait_seconds=20.0,
                       pending_directory='', **settings)
        case.flags(group='filter_scheduler', available_filters=available,
                   enabled_filters=enabled, weight_classes=weighers)
        case.scheduler_service = case.start_service('scheduler')
        self._mode, self._judging = mode, False
        self._log.forget_version()
        self._log.reports.clear()
        self._log.warnings.clear()

    def flavor(self, name: str, extra_specs: Mapping[str, str]) -> None:
        """Create a flavor that fills one slot; flavors differ by their extra specs alone."""
        if name in self._flavors:
            return
        api = self._case.admin_api
        body = {'flavor': {'name': name, 'ram': 512, 'vcpus': 1, 'disk': 1,
                           'id': f'flavor-{name}'}}
        self._flavors[name] = api.post_flavor(body)['id']
        if extra_specs:
            api.post_extra_spec(self._flavors[name], {'extra_specs': dict(extra_specs)})

    def snapshot_written(self, version: int) -> None:
        """Wait until nova-scheduler has read this version of the snapshot file.

        It begins to read with its first request, which waits for the first snapshot itself.
        """
        if self._mode is not None and self._judging:
            self._log.wait_for(version, _LIMIT_SECONDS)

    def boot(self, name: str, flavor: str, project: str, seed: int = 0) -> Server:
        """Ask for one server, as a member of ``project``, and wait until it runs or has failed.

        Seed and name determine its UUID, and with that which of equally good hosts it gets.
        """
        api = self._case.api_fixture.alternative_admin_api
        api.microversion = 'latest'
        api.project_id = project
        self._case.server_uuids.next = fixed_uuid('server', seed, name)
        asked = api.post_server({'server': {
            'name': name, 'flavorRef': self._flavors[flavor], 'imageRef': self.image,
            'networks': 'none'}})
        self._hear(asked['id'])
        shown = self._wait(asked['id'], lambda one: one['status'] in ('ACTIVE', 'ERROR'))
        self._judging = True
        if shown['status'] == 'ACTIVE':
            return Server(asked['id'], shown['OS-EXT-SRV-ATTR:host'])
        fault = shown.get('fault', {}).get('message', '')
        if 'No valid host' not in fault:
            raise NovaFailed(f'server {name} is in error: {fault}')
        return Server(asked['id'], None, fault)

    def migrate(self, uuid: str, host: str) -> None:
        """Live-migrate a server and wait until it runs there."""
        self._case.admin_api.post_server_action(
            uuid, {'os-migrateLive': {'host': host, 'block_migration': 'auto'}})
        self._wait(uuid, lambda one: one['status'] == 'ACTIVE'
                   and one['OS-EXT-SRV-ATTR:host'] == host)

    def hosts_of(self) -> dict[str, str | None]:
        """Return the host of each server by its uuid."""
        return {one['id']: one['OS-EXT-SRV-ATTR:host']
                for one in self._case.admin_api.get_servers(search_opts={'all_tenants': 1})}

    def delete(self, uuids: Collection[str]) -> None:
        """Delete servers that run and wait until Placement has their room back."""
        api = self._case.admin_api
        # A server that found no host is there too, and has no slot.
        expected = self._case.slots_used() - len(uuids)
        for one in uuids:
            api.delete_server(one)
        end = time.monotonic() + _LIMIT_SECONDS
        while True:
            left = {one['id'] for one in api.get_servers(
                detail=False, search_opts={'all_tenants': 1})}
            if left.isdisjoint(uuids) and self._case.slots_used() == expected:
                return
            if time.monotonic() > end:
                raise NovaFailed(f'Nova has not deleted {len(uuids)} servers within '
                                 f'{_LIMIT_SECONDS:g} s')
            time.sleep(0.2)

    @contextlib.contextmanager
    def door(self) -> Iterator[door.Door]:
        """Serve this cloud over HTTP on loopback, for other processes."""
        served = door.Door.of_nova(self._case.api_fixture, self._case.placement.fixture,
                                   self._case.neutron)
        served.start()
        try:
            yield served
        finally:
            served.stop()

    def _hear(self, uuid: str) -> None:
        """Wait for Nova's notification that the building of a server has ended.

        To look through the API again and again would cost Nova more than the boot itself.
        """
        end = time.monotonic() + _LIMIT_SECONDS
        heard = self._case.notifier.versioned_notifications
        while time.monotonic() < end:
            for event in list(heard):
                data = event['payload']['nova_object.data']
                if event['event_type'] in _ENDS and uuid in (data.get('uuid'),
                                                             data.get('instance_uuid')):
                    heard.clear()
                    return
            time.sleep(0.01)

    def _wait(self, uuid: str, wanted: Callable[[Mapping[str, Any]], bool]) -> dict[str, Any]:
        end = time.monotonic() + _LIMIT_SECONDS
        while True:
            shown: dict[str, Any] = self._case.admin_api.get_server(uuid)
            if wanted(shown):
                return shown
            if time.monotonic() > end:
                raise NovaFailed(f'server {uuid} is {shown["status"]} on '
                                 f'{shown["OS-EXT-SRV-ATTR:host"]} after {_LIMIT_SECONDS:g} s')
            time.sleep(0.1)

    def _close_judges(self) -> None:
        latest = worker.latest()
        if latest is not None:
            latest.close()


class _Cloud(integrated_helpers.ProviderUsageBaseTestCase):  # type: ignore[misc]
    """Nova's fixtures, opened as Nova's own tests open them."""

    #: It has two virtual CPUs.
    compute_driver = 'fake.SmallFakeDriver'
    scheduler_service: Any = None

    def __init__(self, hosts: list[str], use: Callable[[_Cloud], None]) -> None:
        super().__init__('runTest')
        self._hosts = hosts
        self._use = use
        self.server_uuids = _ServerUuids()

    def setUp(self) -> None:
        options.register_opts(conf.CONF)
        # Twenty seeds take most of an hour: a limit that is meant for one test ends nothing here.
        self.useFixture(fixtures.EnvironmentVariable('OS_TEST_TIMEOUT', '0'))
        # pip puts Nova's data files where Nova's tests do not look for them.
        self.flags(group='wsgi', api_paste_config=os.path.join(
            sys.prefix, 'etc', 'nova', 'api-paste.ini'))
        # One VM a virtual CPU: a host has two slots.
        self.flags(cpu_allocation_ratio=1.0)
        # Half of the time would go into what is of no use here: that each of the computes
        # is alive, what it has, and that the API's answers obey its own schema.
        self.flags(report_interval=3600, service_down_time=36000, update_resources_interval=-1,
                   sync_power_state_interval=-1, heal_instance_info_cache_interval=-1)
        self.flags(group='api', response_validation='ignore')
        self.flags(group='notifications', notification_format='versioned')
        self.flags(group='quota', instances=-1, cores=-1, ram=-1)
        with idle_threads.asleep():
            super().setUp()
        # A laptop that sleeps for a while is no reason to fail.
        self.flags(rpc_response_timeout=600)
        warnings.filterwarnings('ignore', category=sqlalchemy.exc.SADeprecationWarning)
        # Nova's tests format every debug message; half of the time would go into that.
        logging.getLogger().setLevel(logging.INFO)
        self._fix_chance()
        for name in self._hosts:
            self._start_compute(name)

    def _fix_chance(self) -> None:
        """Have a seed determine what stock Nova leaves to UUIDs and to the order of a set."""
        for name in self._hosts:
            # Nova's fake driver takes its nodes' UUIDs from there.
            setattr(uuidsentinel, f'node_{name}', fixed_uuid('node', name))
        self.useFixture(fixtures.MonkeyPatch('nova.compute.api.uuidutils', self.server_uuids))
        # Imported before Nova's fixtures, it would bring eventlet along.
        from nova.scheduler import host_manager
        usual = host_manager.HostManager.get_host_states_by_uuids

        def ordered(manager: Any, context: Any, compute_uuids: Any, spec_obj: Any) -> Any:
            return iter(drawn_order(usual(manager, context, compute_uuids, spec_obj),
                                    spec_obj.instance_uuid if spec_obj else ''))

        self.useFixture(fixtures.MonkeyPatch(
            'nova.scheduler.host_manager.HostManager.get_host_states_by_uuids', ordered))

    def slots_used(self) -> int:
        """Return how many virtual CPUs Placement counts as taken, of all hosts."""
        return sum(self._get_provider_usages(fixed_uuid('node', name)).get('VCPU', 0)
                   for name in self._hosts)

    def runTest(self) -> None:
        self._use(self)


def opened(hosts: list[str], use: Callable[[NovaBox], None]) -> None:
    """Start Nova with these compute hosts of two slots each, call ``use``, stop Nova.

    :raises NovaFailed: when Nova cannot be started
    :raises Exception: whatever ``use`` raises
    """
    raised: list[BaseException] = []

    def inside(case: _Cloud) -> None:
        log = _Log()
        logger = logging.getLogger('nova_filters')
        logger.addHandler(log)
        try:
            with tempfile.TemporaryDirectory(prefix='tracon-demo-') as directory:
                box = NovaBox(case, pathlib.Path(directory), log)
                try:
                    use(box)
                finally:
                    box._close_judges()
        except BaseException as error:
            raised.append(error)
        finally:
            logger.removeHandler(log)

    result = unittest.TestResult()
    _Cloud(hosts, inside).run(result)
    if raised:
        raise raised[0]
    if result.errors or result.failures:
        raise NovaFailed('Nova could not be started in this process: '
                         + (result.errors + result.failures)[0][1][-2000:])
