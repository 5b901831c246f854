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

"""Which hosts are measured: one of each type, without other VMs on it."""

from __future__ import annotations

import re
from typing import Sequence

from tracon_lab.profiling import errors
from tracon_watcher.engine import state
from tracon_watcher import errors as common
from tracon_watcher.inventory import cloud

_NAME = re.compile(r'[\w.-]+')


def chosen(inventory: cloud.Inventory, wanted: Sequence[str], project: str,
           default: str | None = None) -> list[tuple[str, str]]:
    """Return hosts and their types.

    :param wanted: ``NAME`` or ``NAME=TYPE``; nothing is an empty host of each type that an
        aggregate states
    :param project: id of the one that measures
    :param default: type of hosts of which no aggregate states one
    :raises tracon_lab.profiling.errors.ProfilingError: for a host that cannot be measured
    """
    if not wanted:
        return _one_of_each(inventory, project, default)
    found: list[tuple[str, str]] = []
    for one in wanted:
        host, _equals, stated = one.partition('=')
        _check(inventory, host, project)
        kind = stated or host_type(inventory, host) or default
        if kind is None:
            raise errors.ProfilingError(
                f'host {host}: its type is not known: state {state.HOST_TYPE} in the metadata of '
                f'an aggregate it is in, or name it here: --host {host}=TYPE')
        if any(kind == other for _host, other in found):
            raise common.InvalidOption('--host', one, f'another host of the type {kind} is to be '
                                                      'measured already, and one is enough')
        found.append((host, kind))
    return _with_names(found)


def _with_names(found: list[tuple[str, str]]) -> list[tuple[str, str]]:
    for _host, kind in found:
        if not _NAME.fullmatch(kind):
            raise common.InvalidOption(state.HOST_TYPE, kind, 'a file is named by it: letters, '
                                                              'digits, ".", "-" and "_" only')
    return found


def host_type(inventory: cloud.Inventory, host: str) -> str | None:
    """Return the type of a host as its aggregates state it, as the engine would take it."""
    stated = sorted({one.metadata[state.HOST_TYPE] for one in inventory.aggregates
                     if host in one.hosts and one.metadata.get(state.HOST_TYPE)})
    return stated[0] if stated else None


def prefix(host: str) -> str:
    """Return how the name of everything begins that is made for measuring a host."""
    return f'tracon-measure-{host}-'


def others(inventory: cloud.Inventory, host: str, project: str) -> list[str]:
    """Return the names of the VMs on a host that are not left from an earlier measurement."""
    return sorted(f'{one.name} ({one.uuid})' for one in inventory.servers.values()
                  if one.host == host
                  and not (one.name.startswith(prefix(host)) and one.project == project))


def not_empty(host: str, names: Sequence[str]) -> errors.HostNotEmpty:
    """Return the error for a host that is not empty."""
    shown = ', '.join(names[:5]) + (', …' if len(names) > 5 else '')
    return errors.HostNotEmpty(
        f'host {host} has {len(names)} other VMs: {shown}: what is measured beside them would be '
        f'their doing; move them away, keep new ones off the host, or name another host')


def _check(inventory: cloud.Inventory, host: str, project: str) -> None:
    known = inventory.hypervisors.get(host)
    if known is None:
        raise errors.ProfilingError(
            f'host {host}: there is no such compute host; there are '
            f'{", ".join(sorted(inventory.hypervisors)) or "none at all"}')
    if not (known.up and known.enabled):
        raise errors.ProfilingError(
            f'host {host} is {"disabled" if known.up else "down"}: VMs cannot be booted there; '
            f'"openstack compute service set --enable {host} nova-compute" enables it')
    there = others(inventory, host, project)
    if there:
        raise not_empty(host, there)


def _one_of_each(inventory: cloud.Inventory, project: str,
                 default: str | None) -> list[tuple[str, str]]:
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
                _check(inventory, host, project)
            except errors.ProfilingError as error:
                failures.append(str(error))
            else:
                found.append((host, kind))
                break
        else:
            raise errors.ProfilingError(f'host type {kind}: none of its {len(listed)} hosts can '
                                        f'be measured: {failures[0]}')
    return _with_names(found)
