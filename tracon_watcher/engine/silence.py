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

"""Hosts on which VMs run and of which telemetry brings nothing new.

A source that answers with nothing that can be used has not failed: labels are called otherwise,
resources are no VMs, or who stores samples stands still. Only time shows it.
"""

from __future__ import annotations

import dataclasses
import datetime
from typing import Iterable, Sequence

import numpy as np

from tracon_watcher.characteristics import BoolArray, FloatArray
from tracon_watcher.inventory import cloud
from tracon_watcher.inventory import vm_states
from tracon_watcher.telemetry import meters
from tracon_watcher.telemetry import readings

#: Without these nothing is learnt of a VM.
_NEEDED = (meters.CPU_GUEST.name, meters.CPU_HOST.name, meters.READ_REQUESTS.name,
           meters.WRITE_REQUESTS.name)
_STILL = vm_states.IDLE | vm_states.HOMELESS


@dataclasses.dataclass(frozen=True)
class Silence:
    """What telemetry lacks.

    :param everywhere: what was asked and what came, where nothing new is heard of any VM; None
        where it is of some, or none runs
    :param reports: a kind and a text of each thing that is not as it should be
    """

    everywhere: str | None = None
    reports: tuple[tuple[str, str], ...] = ()


class Listener:
    """Remembers when each host was last heard of.

    Times count from when a sample was first seen: the clocks of hosts may be wrong.

    :param patience: seconds without anything new
    """

    def __init__(self, patience: float) -> None:
        self._patience = patience
        self._newest: dict[str, float] = {}
        self._heard: dict[str, float] = {}
        #: Since when VMs run of which nothing has been heard.
        self._waited: dict[str, float] = {}

    def take(self, found: readings.Readings, settled: BoolArray, learnt: FloatArray,
             lost: Iterable[str], inventory: cloud.Inventory, now: float) -> Silence:
        """Return what is lacking after a reading.

        :param settled: (m,) which samples will not be completed any more
        :param learnt: (n,) end of each resource's latest interval with rates, -inf without
        :param lost: why others have none
        :param now: seconds since the epoch
        """
        servers = inventory.servers
        alive = [uuid in servers for uuid in found.resources]
        new: set[str | None] = set()
        for uuid, there, at in zip(found.resources, alive, learnt.tolist()):
            # Not "later": a clock may have been put back.
            if there and np.isfinite(at) and self._newest.get(uuid) != at:
                self._newest[uuid] = at
                new.add(servers[uuid].host)
        self._newest = {uuid: at for uuid, at in self._newest.items() if uuid in servers}
        running = _running(inventory)
        self._heard = {host: now if host in new else min(self._heard.get(host, now), now)
                       for host in running}
        lacking = _lacking(found, settled & np.array(alive, dtype=np.bool_)[found.row])
        lacking += self._unheard(inventory, now)
        silent = self.silent(self._patience, now)
        if silent and len(silent) == len(running):
            everywhere = self._everywhere(found, alive, lost, inventory)
            return Silence(everywhere, (('telemetry', everywhere), *lacking))
        lacking += [('telemetry', (
            f'host {host}: nothing new of its VMs for more than {self._patience:g} s: it is '
            'unknown; see there whether ceilometer-polling runs, its log, and the clock'))
            for host in sorted(silent)]
        return Silence(None, tuple(lacking))

    def silent(self, seconds: float, now: float) -> frozenset[str]:
        """Return the hosts of which nothing new had been heard for so long at the last reading."""
        return frozenset(host for host, at in self._heard.items() if now - at > seconds)

    def _unheard(self, inventory: cloud.Inventory, now: float) -> list[tuple[str, str]]:
        """Report a VM that was never heard of beside others of its host that are."""
        self._waited = {
            uuid: min(self._waited.get(uuid, now), now)
            for uuid, one in inventory.servers.items()
            if uuid not in self._newest and one.vm_state not in _STILL
            and self._heard.get(one.host or '', -np.inf) >= now - self._patience}
        late = [uuid for uuid, since in self._waited.items() if now - since > self._patience]
        return [('telemetry', (
            f'VM {min(late)} runs on {inventory.servers[min(late)].host}, and nothing of it has '
            f'come for more than {self._patience:g} s, though others there are heard of: such '
            'VMs are unknown; see whether Ceilometer there discovers them'))] if late else []

    def _everywhere(self, found: readings.Readings, alive: Sequence[bool], lost: Iterable[str],
                    inventory: cloud.Inventory) -> str:
        if not found.resources:
            came = 'nothing came'
        elif not any(alive):
            came = (f'samples came of {min(found.resources)}, which is no VM of Nova\'s; those '
                    f'have ids such as {min(inventory.servers)}')
        elif not _complete(found).any():
            came = f'no sample came with all of {", ".join(_NEEDED)}'
        elif any(lost):
            came = f'samples came, and no two that give a rate: {", ".join(sorted(lost))}'
        else:
            at = datetime.datetime.fromtimestamp(float(found.at.max()), datetime.timezone.utc)
            came = f'no sample is later than {at.isoformat(timespec="seconds")}'
        return (f'Telemetry has had nothing new of any VM for more than {self._patience:g} s, '
                f'though VMs run: {found.asked or "it was asked for all meters of VMs"}: {came}: '
                'all hosts on which VMs run become unknown; see that what is asked is what '
                'Ceilometer stores, and how often')


def _running(inventory: cloud.Inventory) -> set[str]:
    """Return the hosts that should be heard of: judged ones that are up and on which VMs run."""
    hypervisors = inventory.hypervisors
    hosts = {one.host for one in inventory.servers.values() if one.vm_state not in _STILL}
    up = {host for host in hosts if host in hypervisors and hypervisors[host].up
          and hypervisors[host].reachable}
    return {host for host in up if hypervisors[host].cores is not None} or up


def _complete(found: readings.Readings) -> BoolArray:
    """Return which samples something is learnt from, (m,)."""
    columns = [found.meters.index(name) for name in _NEEDED]
    return np.asarray(np.isfinite(found.values[:, columns]).all(axis=1) & np.isfinite(found.at))


def _lacking(found: readings.Readings, settled: BoolArray) -> list[tuple[str, str]]:
    """Report meters of all VMs of which one that has samples has none."""
    sampled = np.zeros(len(found.resources), dtype=np.bool_)
    sampled[found.row[settled]] = True
    lacking = []
    for column, name in enumerate(found.meters):
        if not meters.BY_NAME[name].everywhere:
            continue
        without = sampled.copy()
        without[found.row[np.isfinite(found.values[:, column])]] = False
        if without.any():
            vm = min(found.resources[index] for index in np.flatnonzero(without))
            lacking.append(('meters', (
                f'VM {vm} has samples, and none of {name}: what follows from it is unknown of '
                'such VMs; see whether their hosts count it, and the pipeline of Ceilometer')))
    return lacking
