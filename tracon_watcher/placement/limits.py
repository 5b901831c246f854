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

"""Limits that owners and operators set for a VM, its class, and its share of the cores."""

from __future__ import annotations

import dataclasses
import math
from typing import Iterable, Mapping

from tracon_watcher import errors
from tracon_watcher import numerals

MAX_SLOWDOWN = 'tracon:max_slowdown'
MIN_IOPS_RATIO = 'tracon:min_iops_ratio'
CLASS = 'tracon:class'
#: The one class that a flavor may state; VMs of all others are in the foreground.
BACKGROUND_CLASS = 'background'

#: Inclusive ranges: a VM alone has slowdown 1 and IOPS ratio 1.
RANGES = {MAX_SLOWDOWN: (1.0, 1000.0), MIN_IOPS_RATIO: (0.001, 1.0)}


@dataclasses.dataclass(frozen=True)
class Limits:
    """A VM's limits; infinity and zero stand for *none*, which is the default.

    :param background: whether it is background work, which has no limits: what others do to it
        counts nothing, what it does to others does
    """

    max_slowdown: float = math.inf
    min_iops_ratio: float = 0.0
    background: bool = False

    def stricter(self, other: Limits) -> Limits:
        """Return, of each limit, the stricter one."""
        return Limits(min(self.max_slowdown, other.max_slowdown),
                      max(self.min_iops_ratio, other.min_iops_ratio))

    def or_else(self, other: Limits) -> Limits:
        """Return these limits, and ``other``'s for those that are none.

        Background work has none whatever aggregates state.
        """
        return self if self.background else Limits(
            other.max_slowdown if math.isinf(self.max_slowdown) else self.max_slowdown,
            self.min_iops_ratio if self.min_iops_ratio > 0 else other.min_iops_ratio)


NONE = Limits()
BACKGROUND = Limits(background=True)


def parse(key: str, text: object) -> float:
    """Return the limit that an extra spec or a piece of aggregate metadata states.

    :param key: :data:`MAX_SLOWDOWN` or :data:`MIN_IOPS_RATIO`
    :raises tracon_watcher.errors.InvalidOption: when it is no number or out of range
    """
    low, high = RANGES[key]
    try:
        # As the validators in Nova's API, which know no exponent.
        if 'e' not in str(text).lower():
            return numerals.parse(str(text), low, high)
    except numerals.InvalidNumber:
        pass
    raise errors.InvalidOption(key, text, f'expected a decimal number{numerals.within(low, high)}'
                               ', such as 1.0, or no such key for no limit')


def from_metadata(metadata: Mapping[str, object], faults: list[str] | None = None) -> Limits:
    """Read the limits out of flavor extra specs or one aggregate's metadata.

    A stored value that is invalid counts as unset: no VM may be refused because of a typing error.

    :param faults: gets the text of each invalid value, for the caller's log
    """
    values: dict[str, float] = {}
    for key in RANGES:
        if metadata.get(key) is not None:
            try:
                values[key] = parse(key, metadata[key])
            except errors.InvalidOption as error:
                if faults is not None:
                    faults.append(str(error))
    return Limits(values.get(MAX_SLOWDOWN, math.inf), values.get(MIN_IOPS_RATIO, 0.0))


def of_flavor(extra_specs: Mapping[str, object], faults: list[str] | None = None) -> Limits:
    """Read the class and the limits out of a flavor's extra specs.

    :param faults: gets the text of each invalid value, which counts as unset
    """
    stated = extra_specs.get(CLASS)
    if stated is not None and str(stated).strip().lower() == BACKGROUND_CLASS:
        return BACKGROUND
    if stated is not None and faults is not None:
        faults.append(str(errors.InvalidOption(
            CLASS, stated, f'expected {BACKGROUND_CLASS}, or no such key for a VM of the '
            'foreground')))
    return from_metadata(extra_specs, faults)


def strictest(several: Iterable[Limits]) -> Limits:
    """Return the strictest of several aggregates' limits."""
    result = NONE
    for limits in several:
        result = result.stricter(limits)
    return result


SHARES = 'quota:cpu_shares'
#: Shares of a VM for which none are stated: of control groups of version 2.
DEFAULT = 100.0
#: Of control groups, likewise.
_MOST = 10000.0


def cpu_weight(extra_specs: Mapping[str, str]) -> float:
    """Return the weight of VMs of a flavor, 1 for one that states none, 0 for cores of its own.

    A VM with both, ``hw:cpu_policy=mixed``, counts as one that shares all of them. What is no
    number counts as not stated: Nova refuses it, too.
    """
    if extra_specs.get('hw:cpu_policy') == 'dedicated' or 'resources:PCPU' in extra_specs:
        return 0.0
    try:
        shares = float(extra_specs.get(SHARES, DEFAULT))
    except (TypeError, ValueError):
        return 1.0
    return min(shares, _MOST) / DEFAULT if math.isfinite(shares) and shares >= 1.0 else 1.0
