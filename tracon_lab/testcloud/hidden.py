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

"""The demonstration of sensors: contention of a host that no counter of a VM shows.

Two hosts have a VM of the same kind each, and a sensor. Then a process on the core of the first
host copies more memory than caches hold. It gives way to guests there, and who uses memory on the
core of the second host finds the way to memory taken. The sensor there feels it, and the next VM
is put on the first.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
import time
from typing import Any

from tracon_lab.testbed import errors as lab_errors
from tracon_lab.testcloud import choice
from tracon_lab.testcloud import errors
from tracon_lab.testcloud import guest as guests
from tracon_lab.testcloud import operations
from tracon_lab.testcloud import product
from tracon_lab.testcloud import story

#: A VM on each host, by place; to Nova and to the counters both hosts are the same.
CAST = ('shop', 'archive')
UNIT = story.QUIET
INTRUDER = 'intruder'
#: It copies memory, and gives way to all others.
_WORK = ('nice', '-n', '19', sys.executable, '-c', '''import numpy
source, target = numpy.ones((2, 64 << 17))
while True:
    numpy.copyto(target, source)
''')
# Looks before it begins, and after it was found.
_QUIET_LOOKS, _MORE_LOOKS = 3, 2


@dataclasses.dataclass(frozen=True)
class Look:
    """What was seen of a host at one time.

    :param after: seconds since the process began; negative before
    :param state: that ``openstack interference host show`` has: quiet, contended or unknown
    :param ratio: of the sensor's memory phase to its baseline; None unknown
    :param low: lower end of its interval
    :param counts: factor by which each VM of the host counts as slower for it
    :param observed: slowdown of its VM, as ``openstack interference vm list`` has it
    :param predicted: likewise, what is predicted
    """

    after: float
    host: str
    state: str
    ratio: float | None
    low: float | None
    counts: float
    observed: float | None
    predicted: float | None


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of it.

    :param host: whose memory is taken
    :param found_after: seconds after which it was called contended; None: never
    :param before: what the scheduler made of a new VM before, and ``after``
    """

    looks: list[Look]
    host: str
    found_after: float | None
    before: choice.Choice
    after: choice.Choice

    def told(self) -> list[str]:
        """Return what came of it in sentences."""
        found = ('was not found' if self.found_after is None else
                 f'was found after {self.found_after:.0f} s')
        return [f'the contention of {self.host} {found}',
                f'a new VM got {self.before} before, and {self.after} afterwards']


class Hidden(operations.Operator):
    """Plays it."""

    def play(self, patience: float = 300.0) -> Outcome:
        """Play it from the first sensor to the VM that is put elsewhere.

        :param patience: seconds that anything may take
        :raises CloudError: when something does not come about
        """
        hosts = self.cloud.settings.hosts
        self.clear()
        self._began = 0.0
        self._looks: list[Look] = []
        self._session = self.cloud.connection().session
        programs: list[guests.Guest] = []
        self.tell('each host gets a sensor')
        sensors = product.deploy_sensors(self.cloud)
        self.tell('measuring the baseline of the memory phase')
        product.start_probes(self.cloud, sensors[0])
        try:
            for name, host in zip(CAST, hosts):
                self.tell(f'booting {name} on {host}')
                programs.append(self.cloud.guest(self.cloud.boot(name, host)))
                programs[-1].begin(UNIT)
            self._wait('all hosts quiet', lambda seen: all(
                one.state == 'quiet' and one.predicted is not None for one in seen), patience)
            return self._play(hosts[1], patience)
        finally:
            with contextlib.suppress(errors.CloudError):
                self.cloud.end(INTRUDER)
            for one in programs:
                with contextlib.suppress(lab_errors.GuestError):
                    one.end()

    def _play(self, host: str, patience: float) -> Outcome:
        for _ in range(_QUIET_LOOKS):
            self._look()
            time.sleep(self.polling)
        before = self.where_would_it_go('early')
        # Booting it has kept disk and cores busy, and that is not what is to be seen.
        time.sleep(3 * self.polling)
        self.tell(f'a process that is no VM takes the memory of {host}')
        self._began = time.monotonic()
        self.cloud.extra_service(INTRUDER, [
            'taskset', '-c', self.cloud.settings.host_cores(self.cloud.settings.hosts[0]), *_WORK])
        found = None
        with contextlib.suppress(errors.CloudError):
            self._wait(f'{host} being contended', lambda seen: seen[1].state == 'contended',
                       patience)
            found = time.monotonic() - self._began
        for _ in range(_MORE_LOOKS):
            time.sleep(self.polling)
            self._look()
        after = self.where_would_it_go('late')
        looks = [dataclasses.replace(one, after=one.after - self._began) for one in self._looks]
        return Outcome(looks, host, found, before, after)

    def _wait(self, what: str, condition: Any, patience: float) -> None:
        self.tell(f'waiting for {what}')
        deadline = time.monotonic() + patience
        while not condition(self._look()):
            if time.monotonic() > deadline:
                raise errors.CloudError(f'{what}: not after {patience:g} s; see '
                                        f'{self.cloud.log(product.PROBE)}')
            time.sleep(self.polling)

    def _ask(self, path: str) -> Any:
        return self._session.get(f'{self.cloud.settings.url("interference")}/v1/{path}',
                                 raise_exc=True).json()

    def _look(self) -> list[Look]:
        # The API costs this machine less than the command, which says the same.
        slow = {row['name']: row['slowdown'] for row in self._ask('vms')['vms']}
        seen = []
        for name, host in zip(CAST, self.cloud.settings.hosts):
            felt = self._ask(f'hosts/{host}')['host']['contention']
            memory = felt['phases']['memory']
            of_vm = slow.get(name, {})
            found = Look(
                time.monotonic(), host, memory['state'], memory['ratio'], memory['low'],
                felt['slowdown'], of_vm.get('observed'), of_vm.get('predicted'))
            seen.append(found)
            self.tell(f'  {host}: {found.state}, sensor {story.shown(found.ratio)} times as long, '
                      f'counts as {found.counts:.2f}; {name}: observed '
                      f'{story.shown(found.observed)}, predicted {story.shown(found.predicted)}')
        self._looks += seen
        return seen
