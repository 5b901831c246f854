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

"""Which hosts are measured: one of each type, and nobody else is on it."""

from __future__ import annotations

import re
from typing import Sequence

from tracon_watcher.engine import state
from tracon_watcher import errors as common
from tracon_watcher.inventory import cloud
from tracon_watcher.profiling import errors

_NAME = re.compile(r'[\w.-]+')


def chosen(inventory: cloud.Inventory, wanted: Sequence[str],
           default: str | None = None) -> list[tuple[str, str]]:
    """Return hosts and their types.

    :param wanted: ``NAME`` or ``NAME=TYPE``; nothing is an empty host of each type that an
        aggregate states
    :param default: type of hosts of which no aggregate states one
    :raises tracon_watcher.profiling.errors.ProfilingError: for a host that cannot be measured
    """
    if not wanted:
        return _one_of_each(inventory, default)
    found: list[tuple[str, str]] = []
    for one in wanted:
        host, _equals, stated = one.partition('=')
        _check(inventory, host)
        kind = stated or host_type(inventory, host) or default
        if kind is None:
            raise errors.ProfilingError(
                f'host {host}: its type is not known: state {state.HOST_TYPE} in the metadata of '
                f'an aggregate it is in, or name it here: --host {host}=TYPE')
        if not _NAME.fullmatch(kind):
            raise common.InvalidOption('host type', kind, 'it names a file: letters, digits, '
                                                          'dots, dashes and underscores only')
        if kind in dict(map(reversed, found)):      # type: ignore[arg-type]
            raise common.InvalidOption('--host', one, f'another host of the type {kind} is to be '
                                                      'measured already, and one is enough')
        found.append((host, kind))
    return found


def host_type(inventory: cloud.Inventory, host: str) -> str | None:
    """Return the type of a host as its aggregates state it, as the engine would take it."""
    stated = sorted({one.metadata[state.HOST_TYPE] for one in inventory.aggregates
                     if host in one.hosts and one.metadata.get(state.HOST_TYPE)})
    return stated[0] if stated else None


def others(inventory: cloud.Inventory, host: str) -> list[str]:
    """Return the names of the VMs on a host."""
    return sorted(f'{one.name} ({one.uuid})' for one in inventory.servers.values()
                  if one.host == host)


def not_empty(host: str, names: Sequence[str]) -> errors.HostNotEmpty:
    """Return the error for a host that is not empty."""
    shown = ', '.join(names[:5]) + (', …' if len(names) > 5 else '')
    return errors.HostNotEmpty(
        f'host {host} has {len(names)} other VMs: {shown}: what is measured beside them would be '
        f'their doing; move them away, keep new ones off the host, or name another host')


def _check(inventory: cloud.Inventory, host: str) -> None:
    known = inventory.hypervisors.get(host)
    if known is None:
        raise errors.ProfilingError(
            f'host {host}: there is no such compute host; there are '
            f'{", ".join(sorted(inventory.hypervisors)) or "none at all"}')
    if not (known.up and known.enabled):
        raise errors.ProfilingError(
            f'host {host} is {"disabled" if known.up else "down"}: VMs cannot be booted there; '
            f'"openstack compute service set --enable {host} nova-compute" enables it')
    there = others(inventory, host)
    if there:
        raise not_empty(host, there)


def _one_of_each(inventory: cloud.Inventory, default: str | None) -> list[tuple[str, str]]:
    by_type: dict[str, list[str]] = {}
    for host in sorted(inventory.hypervisors):
        kind = host_type(inventory, host) or default
        if kind is not None:
            by_type.setdefault(kind, []).append(host)
    if not by_type:
        raise errors.ProfilingError(
            f'no host has a type: state {state.HOST_TYPE} in the metadata of host aggregates, or '
            f'name a host and its type: --host NAME=TYPE')
    found = []
    for kind, listed in sorted(by_type.items()):
        failures = []
        for host in listed:
            try:
                _check(inventory, host)
            except errors.ProfilingError as error:
                failures.append(str(error))
            else:
                found.append((host, kind))
                break
        else:
            raise errors.ProfilingError(f'host type {kind}: none of its {len(listed)} hosts can '
                                        f'be measured: {failures[0]}')
    return found
