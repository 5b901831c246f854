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

"""What volumes are limited to: the front-end QoS of their types, as Cinder gives it to Nova."""

from __future__ import annotations

import logging
from typing import Any, Callable, Iterable, Mapping, NamedTuple

from tracon_watcher.inventory import listing

LOG = logging.getLogger(__name__)

#: Who enforces a QoS that QEMU enforces.
_CONSUMERS = ('front-end', 'both')
_KINDS = ('read', 'write', 'total')
#: Names of limits, per second.
NAMES = tuple(f'{kind}_{what}_sec' for what in ('iops', 'bytes') for kind in _KINDS)


class Volume(NamedTuple):
    """What is kept of an entry of Cinder's listing.

    :param host: of its backend, None before it has one
    :param type: the name of its type, None without
    :param size: GiB
    """

    id: str
    host: str | None
    type: str | None
    size: int


class VolumeLimits:
    """The limits of volumes by the names of their types.

    What was learnt of types counts on while Cinder does not answer. That it does not is logged
    once, and again when it has answered since.

    :param report: called with a text when that changes
    """

    def __init__(self, report: Callable[[str], None] = LOG.warning) -> None:
        self._report = report
        self._fault: str | None = None
        #: The specifications that QEMU enforces, by the name of the type; empty for a type that
        #: has none, and where no type has any. None until Cinder has said so.
        self._known: Mapping[str, Mapping[str, Any]] | None = None
        self._refused = False

    def collect(self, cinder: listing.Service, volumes: Iterable[Volume],
                ) -> dict[str, dict[str, float]] | None:
        """Return limits by the id of the volume; volumes whose limits are unknown are not there.

        None where none can be unknown: no type is limited, or Cinder refuses to say.

        :param cinder: is asked for types and QoS specifications, if any volume has a type
        """
        volumes = list(volumes)
        if any(one.type for one in volumes):
            self._learn(cinder)
        if self._known is None and self._refused:
            # That lasts. Where no VM on volumes that waits were heard, models would seem wrong.
            return None
        if self._known is not None and not any(self._known.values()):
            return None
        of_types = self._known or {}
        found, of_kinds = {}, dict[tuple[str | None, int], dict[str, float]]()
        for one in volumes:
            if one.type and one.type not in of_types:
                continue
            # Volumes of one type and size share what they are limited to.
            kind = one.type, one.size
            if kind not in of_kinds:
                of_kinds[kind] = resolved(of_types[one.type], one.size) if one.type else {}
            found[one.id] = of_kinds[kind]
        return found

    def _learn(self, cinder: listing.Service) -> None:
        """Ask which specifications types have."""
        try:
            specs = {one['id']: one.get('specs') or {}
                     for one in cinder.get('/qos-specs', 'qos_specs', {})['qos_specs']
                     if one.get('consumer') in _CONSUMERS}
            types = list(cinder.pages('/types', 'volume_types', {'is_public': 'None'},
                                      links='volume_type_links')) if specs else []
        except listing.CloudUnavailable as error:
            self._fail(str(error), isinstance(error, (listing.Forbidden, listing.NotFound)))
            return
        # Volumes have types, so that there are some.
        if specs and not any('qos_specs_id' in one for one in types):
            self._fail("Cinder does not say which types have QoS specifications; let the engine's "
                       'user see them (volume_extension:access_types_qos_specs_id)', True)
            return
        self._known = {one['name']: specs.get(one.get('qos_specs_id'), {}) for one in types}
        self._fault = None

    def _fail(self, why: str, refused: bool) -> None:
        self._refused = self._refused or refused
        how = ('are not up to date' if self._known is not None else
               'do not count, and VMs at them seem to be slowed down by neighbours'
               if self._refused else 'are unknown')
        # Why may be put otherwise each time.
        if how != self._fault:
            self._report(f'The limits of volumes {how}: {why}')
        self._fault = how


def resolved(specs: Mapping[str, Any], size: int) -> dict[str, float]:
    """Return the limits of a volume of ``size`` GiB; what is no number, or 0, is no limit.

    A limit per GiB counts at least as its ``…_per_gb_min``, and at most as its ``…_max``, which
    otherwise allows bursts and is left out. With ``size_iops_sec``, which Nova hands on to QEMU, a
    larger request costs as many as it is times as large: a limit of requests is one of bytes too.
    """
    found = {}
    for name in NAMES:
        value = _number(specs.get(name))
        per_gb = _number(specs.get(f'{name}_per_gb'))
        if per_gb is not None:
            value = max(_number(specs.get(f'{name}_per_gb_min')) or 0.0, per_gb * size)
            value = min(value, _number(specs.get(f'{name}_max')) or value)
        if value:
            found[name] = value
    size_of_one = _number(specs.get('size_iops_sec'))
    for kind in _KINDS if size_of_one else ():
        requests, amount = found.get(f'{kind}_iops_sec'), f'{kind}_bytes_sec'
        if requests:
            found[amount] = min(found.get(amount, float('inf')), requests * size_of_one)
    return found


def _number(value: Any) -> float | None:
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if 0 < found < float('inf') else None
