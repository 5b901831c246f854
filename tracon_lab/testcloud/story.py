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

"""The story told with a test cloud: a VM begins to hammer the disk of its host.

Everything is real: libvirt's VMs, Nova, Ceilometer, Gnocchi, RabbitMQ, Watcher. What the operator
sees comes from the commands that operators have. What the tenants feel is asked of the programs
in their guests, by the story alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from typing import Any, Callable, Mapping

from tracon_lab.testbed import channel
from tracon_lab.testbed import errors as lab_errors
from tracon_lab.testbed import programs
from tracon_lab.testcloud import choice
from tracon_lab.testcloud import cloud as cloud_module
from tracon_lab.testcloud import errors
from tracon_lab.testcloud import guest as guests
from tracon_lab.testcloud import operations
from tracon_lab.testcloud import servers
from tracon_watcher.placement import limits

#: What runs where in the beginning, by name: host (by place) and program. The neighbours read
#: and compute in turns, one unit after the other, with time left over.
SHOP = programs.Unit(cpu_seconds=0.001, reads=3, read_bytes=4096, period=20_000)
ARCHIVE = programs.Unit(cpu_seconds=0.001, reads=10, read_bytes=4096, period=20_000)
QUIET = programs.Unit(cpu_seconds=0.0005, reads=1, period=50_000)
HAMMER = programs.Unit(reads=16, read_bytes=65536, sequential_reads=True)
#: As many VMs on each host: to Nova alone they are the same.
CAST: Mapping[str, tuple[int, programs.Unit]] = {
    'shop': (0, SHOP), 'batch': (0, QUIET), 'archive': (1, ARCHIVE), 'standby': (1, QUIET)}
CULPRIT, VICTIM = 'batch', 'shop'
# What the culprit takes for a unit of hammering, alone, is kept under this name.
_HAMMERING = f'{CULPRIT}, hammering,'
_TURNS_ALONE = 3
#: Looks before it begins.
QUIET_LOOKS = 3
#: What the flavor of each VM states; the others tolerate anything.
FLAVOR, LIMITED_FLAVOR, MAX_SLOWDOWN = 'tracon.small', 'tracon.limited', 1.5
#: A slowdown that an operator looks into.
NOTABLE = 1.25


@dataclasses.dataclass(frozen=True)
class Sight:
    """What was seen of one VM at one time.

    :param after: seconds since the culprit began to hammer; negative before
    :param measured: slowdown that the program in the guest saw since the last look; None unknown
    :param observed: slowdown that ``openstack interference vm list`` shows
    :param predicted: likewise, what is predicted
    :param culprit: whom it names, and by how many per cent
    """

    after: float
    name: str
    host: str
    measured: float | None
    observed: float | None
    predicted: float | None
    culprit: str
    share: float | None


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of it.

    :param sights: everything that was seen
    :param named_after: seconds after which the culprit was named; None: never
    :param before: what the scheduler made of a new VM before, and ``after``
    :param moves: live migrations that the audit recommends: VM, from, to
    """

    sights: list[Sight]
    polling_seconds: float
    named_after: float | None
    before: choice.Choice
    after: choice.Choice
    moves: list[tuple[str, str, str]]

    def told(self) -> list[str]:
        """Return what came of it in sentences."""
        named = ('was not named' if self.named_after is None else
                 f'was named as the culprit of {VICTIM} after {self.named_after:.0f} s, which is '
                 f'{self.named_after / self.polling_seconds:.1f} polling intervals')
        moves = [f'the audit recommends to move {vm} from {source} to {destination}'
                 for vm, source, destination in self.moves]
        return [f'{CULPRIT} {named}',
                f'a new VM got {self.before} before, and {self.after} afterwards',
                *(moves or ['the audit recommends no move'])]


class Story(operations.Operator):
    """Plays it."""

    def __init__(self, cloud: cloud_module.TestCloud, tell: Callable[[str], None]) -> None:
        super().__init__(cloud, tell)
        self._servers: dict[str, servers.Server] = {}
        self._guests: dict[str, guests.Guest] = {}
        self._last: dict[str, channel.Progress] = {}
        self._alone: dict[str, float] = {}
        self._sights: list[Sight] = []

    def play(self, patience: float = 300.0) -> Outcome:
        """Play it from the first boot to the audit.

        :param patience: seconds that anything may take
        :raises CloudError: when something does not come about
        """
        try:
            return self._play(patience)
        finally:
            # No machine shall go on hammering.
            for one in self._guests.values():
                with contextlib.suppress(lab_errors.GuestError):
                    one.end()

    def _play(self, patience: float) -> Outcome:
        hosts = list(self.cloud.settings.hosts)
        self._prepare()
        for name, (place, _unit) in CAST.items():
            self._boot(name, hosts[place])
        self._measure_alone()
        for name, (_place, unit) in CAST.items():
            self._guests[name].begin(unit)
        self._wait_until_known(patience)
        for turn in range(QUIET_LOOKS, 0, -1):
            self._look(-turn * self.polling)
            time.sleep(self.polling)
        before = self.where_would_it_go('early')
        # Booting it has kept the cores busy, and that is not what is to be seen.
        self._settle(2)
        began = time.monotonic()
        self.tell(f'{CULPRIT} begins to hammer the disk')
        self._guests[CULPRIT].begin(HAMMER)
        self._last.pop(CULPRIT, None)
        named = self._watch(began, patience)
        after = self.where_would_it_go('late')
        moves = self._audit(patience)
        self._settle(1)
        self._look(time.monotonic() - began)
        return Outcome(self._sights, self.polling, named, before, after, moves)

    def _prepare(self) -> None:
        """Begin without VMs of an earlier time, and with a flavor that states a limit."""
        self.clear()
        make_flavor(self.cloud.connection().compute)

    def _boot(self, name: str, host: str) -> None:
        self.tell(f'booting {name} on {host}')
        self._servers[name] = self.cloud.boot(
            name, host, flavor=LIMITED_FLAVOR if name == VICTIM else FLAVOR)
        self._guests[name] = self.cloud.guest(self._servers[name])

    def _measure_alone(self) -> None:
        """Ask each program how long its unit takes while all others are silent.

        The cloud's services run on the same cores and have just begun, which can only make it
        longer. So the least of some turns is taken.
        """
        wanted = [(name, name, unit) for name, (_place, unit) in CAST.items()]
        for _turn in range(_TURNS_ALONE):
            for key, name, unit in [*wanted, (_HAMMERING, CULPRIT, HAMMER)]:
                own = self._guests[name]
                own.begin(unit)
                time.sleep(2.0)
                first = own.read()
                time.sleep(4.0)
                alone = own.read().since(first).time_per_unit
                own.end()
                if alone is None:
                    raise errors.CloudError(f'the program of {name} did nothing in 4 s')
                self._alone[key] = min(alone, self._alone.get(key, alone))
        for key, alone in self._alone.items():
            self.tell(f'{key} alone: {1e3 * alone:.2f} ms a unit')

    def _wait_until_known(self, patience: float) -> None:
        self.tell('waiting until the engine knows what they demand')
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            rows = self._rows()
            if all(name in rows and rows[name]['Slowdown'] is not None for name in CAST):
                time.sleep(3 * self.polling)
                return
            time.sleep(self.polling)
        raise errors.CloudError(f'the engine does not know {", ".join(CAST)} after {patience:g} '
                                f's; see {self.cloud.log("tracon-engine")}')

    def _settle(self, polls: int) -> None:
        """Let the cloud itself come to rest; the guests are asked how far they are at its end."""
        time.sleep(polls * self.polling)
        for name, guest in self._guests.items():
            self._last[name] = guest.read()
        time.sleep(self.polling)

    def _watch(self, began: float, patience: float) -> float | None:
        """Look every few seconds until the culprit is named, and for two polls more."""
        named = None
        until = began + patience
        while time.monotonic() < until:
            time.sleep(max(self.polling / 2, 1.0))
            after = time.monotonic() - began
            seen = {one.name: one for one in self._look(after)}
            if named is None and _named(seen[VICTIM]):
                named = after
                until = min(until, time.monotonic() + 2 * self.polling)
                self.tell(f'{CULPRIT} is named as the culprit of {VICTIM} after {named:.0f} s, '
                          f'{named / self.polling:.1f} polling intervals')
        return named

    def _rows(self) -> dict[str, dict[str, Any]]:
        """Return what the operator sees of each VM, by name."""
        return {row['Name']: row for row in self.openstack('interference', 'vm', 'list')}

    def _look(self, after: float) -> list[Sight]:
        rows = self._rows()
        seen = []
        for name, server in self._servers.items():
            row = rows.get(name, {})
            culprit = row.get('Culprit') or {}
            share = culprit.get('share')
            found = Sight(after, name, server.host, self._measured(name), row.get('Slowdown'),
                          row.get('Predicted'), culprit.get('name') or '',
                          None if share is None else 100 * share)
            seen.append(found)
            self.tell(f'  {name}: measured in the guest {shown(found.measured)}, observed '
                      f'{shown(found.observed)}, predicted {shown(found.predicted)}'
                      + (f', because of {found.culprit} ({_percent(found.share)})'
                         if found.culprit else ''))
        self._sights += seen
        return seen

    def _measured(self, name: str) -> float | None:
        now = self._guests[name].read()
        last, self._last[name] = self._last.get(name), now
        if last is None or now.units < last.units:
            return None
        took = now.since(last).time_per_unit
        hammering = name == CULPRIT and any(one.after > 0 for one in self._sights)
        return None if took is None else took / self._alone[_HAMMERING if hammering else name]

    def _audit(self, patience: float) -> list[tuple[str, str, str]]:
        self.tell('an audit is made')
        audit = self.openstack('optimize', 'audit', 'create', '-g', 'interference', '-s',
                               'tracon_interference', '-t', 'ONESHOT')
        uuid = audit['UUID']
        deadline = time.monotonic() + patience
        while audit['State'] not in ('SUCCEEDED', 'FAILED', 'CANCELLED'):
            if time.monotonic() > deadline:
                raise errors.CloudError(f'audit {uuid} is {audit["State"]} after {patience:g} s')
            time.sleep(1.0)
            audit = self.openstack('optimize', 'audit', 'show', uuid)
        if audit['State'] != 'SUCCEEDED':
            raise errors.CloudError(f'audit {uuid} has {audit["State"]}: '
                                    f'{audit.get("Status Message")}')
        names = {server.id: name for name, server in self._servers.items()}
        moves = []
        for plan in self.openstack('optimize', 'actionplan', 'list', '--audit', uuid):
            for action in self.openstack('optimize', 'action', 'list', '--action-plan',
                                         plan['UUID'], '--detail'):
                wanted = action['Parameters']
                if 'destination_node' in wanted:
                    moves.append((names.get(wanted['resource_id'], wanted['resource_id']),
                                  wanted['source_node'], wanted['destination_node']))
        for vm, source, destination in moves:
            self.tell(f'it recommends to move {vm} from {source} to {destination}')
        return moves


def make_flavor(compute: Any) -> None:
    """Create the flavor with the limit, or replace it if it has another limit."""
    old = compute.find_flavor(LIMITED_FLAVOR, get_extra_specs=True)
    if old is not None and old.extra_specs.get(limits.MAX_SLOWDOWN) != str(MAX_SLOWDOWN):
        compute.delete_flavor(old)
        old = None
    if old is None:
        usual = compute.find_flavor(FLAVOR, ignore_missing=False)
        made = compute.create_flavor(name=LIMITED_FLAVOR, ram=usual.ram, vcpus=usual.vcpus,
                                     disk=usual.disk)
        compute.create_flavor_extra_specs(
            made, {**usual.extra_specs, limits.MAX_SLOWDOWN: str(MAX_SLOWDOWN)})


def _named(sight: Sight) -> bool:
    """Say whether the operator is told of the culprit; a slowdown of next to nothing has none."""
    return (sight.culprit == CULPRIT and (sight.observed or 0.0) >= NOTABLE
            and (sight.predicted or 0.0) >= NOTABLE)


def _percent(value: float | None) -> str:
    return 'unknown' if value is None else f'{value:.0f} %'


def shown(value: float | None) -> str:
    """Return a number for people."""
    return 'unknown' if value is None else f'{value:.2f}'
