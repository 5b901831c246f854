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

"""Options, and the modes and limits that apply on each host."""

from __future__ import annotations

import dataclasses
import enum
import math
import operator

import numpy as np

from nova_filters import log_once
from nova_filters import request as hosts_module
from tracon_watcher.characteristics import IntArray, RESPONSES
from tracon_watcher.conf import nova_filters as conf_module
from tracon_watcher.placement import limits as limits_module


@dataclasses.dataclass(frozen=True)
class Options:
    """See :mod:`tracon_watcher.conf.nova_filters` for what each one does."""

    snapshot_file: str
    snapshot_source: str = 'file'
    transport_url: str | None = dataclasses.field(default=None, repr=False)
    engine_check_seconds: float = 30.0
    snapshot_refresh_seconds: float = 5.0
    initial_wait_seconds: float = 2.0
    maximum_age_seconds: float | None = None
    mode: str = 'advise'
    on_all_refused: str = 'least_harm'
    confidence: float = 0.8
    margin: float = 0.05
    limits: limits_module.Limits = limits_module.NONE
    weight_multiplier: float = 40.0
    pending_expiry_seconds: float = 300.0
    pending_directory: str = ''


def read_options(conf) -> Options:
    """Read the options, registering them first.

    :param conf: Nova's ``CONF``
    :raises ValueError: oslo.config's, for a value that is not allowed
    """
    conf_module.register_opts(conf)
    group = conf.tracon
    values = {field.name: getattr(group, field.name) for field in dataclasses.fields(Options)
              if field.name != 'limits'}
    slowdown, ratio = group.max_slowdown, group.min_iops_ratio
    return Options(limits=limits_module.Limits(math.inf if slowdown is None else slowdown,
                                               0.0 if ratio is None else ratio), **values)


MODE_KEY = 'tracon:mode'


class Mode(enum.IntEnum):
    """What is done with a judgement, from the least to the most."""

    OFF = 0
    ADVISE = 1
    WEIGH = 2
    ENFORCE = 3


MODES = {mode.name.lower(): mode for mode in Mode}
#: Field of :class:`~tracon_watcher.placement.limits.Limits` that holds the limit of a response.
_LIMIT_FIELDS = dict(zip(RESPONSES, ('max_slowdown', 'min_iops_ratio')))


@dataclasses.dataclass(frozen=True)
class Rules:
    """What one aggregate, or several, state.

    :param mode: None where none is stated
    """

    mode: Mode | None = None
    limits: limits_module.Limits = limits_module.NONE

    def joined(self, other: Rules) -> Rules:
        """Return what holds for a host that is in both.

        ``off`` wins, so that one piece of metadata switches the judgement off for sure; otherwise
        the strictest mode and, of each limit, the strictest.
        """
        modes = [mode for mode in (self.mode, other.mode) if mode is not None]
        mode = (None if not modes else Mode.OFF if Mode.OFF in modes else max(modes))
        return Rules(mode, self.limits.stricter(other.limits))


_NOTHING = Rules()


@dataclasses.dataclass(frozen=True)
class HostModes:
    """What holds on the n hosts of a request.

    :param mode: the mode of hosts that ``special`` does not name
    :param special: rules by position, for hosts in aggregates that state any
    """

    count: int
    mode: Mode
    special: dict[int, Rules]

    @property
    def active(self) -> bool:
        """Whether anything is to be judged at all."""
        return self.mode != Mode.OFF or any(
            rules.mode not in (None, Mode.OFF) for rules in self.special.values())

    @property
    def decides(self) -> bool:
        """Whether a judgement changes the order of any host, or refuses it."""
        return self.mode > Mode.ADVISE or any(
            rules.mode in (Mode.WEIGH, Mode.ENFORCE) for rules in self.special.values())

    def modes(self) -> IntArray:
        """Return the mode of each host, (n,)."""
        modes = np.full(self.count, int(self.mode), dtype=np.intp)
        for position, rules in self.special.items():
            if rules.mode is not None:
                modes[position] = rules.mode
        return modes


def of_hosts(hosts: hosts_module.HostStates, default: Mode,
             faults: log_once.FaultLog) -> HostModes:
    """Return what holds on these hosts.

    An invalid value counts as unset, with one log line.
    """
    # Most hosts are in none, and are passed over quickly.
    aggregates = {id(aggregate): aggregate for several in filter(None, hosts.aggregates)
                  for aggregate in several}
    stated = {key: rules for key, rules in (
        (key, _rules(aggregate, faults)) for key, aggregate in aggregates.items())
        if rules is not _NOTHING}
    special: dict[int, Rules] = {}
    if stated:
        for position, several in enumerate(hosts.aggregates):
            for aggregate in several:
                rules = stated.get(id(aggregate))
                if rules is not None:
                    special[position] = special.get(position, _NOTHING).joined(rules)
    return HostModes(len(hosts.states), default, special)


def of_flavor(spec, faults: log_once.FaultLog) -> limits_module.Limits:
    """Return the limits that a request's flavor states."""
    if 'extra_specs' not in spec.flavor:
        faults.report('metadata', f'flavor {spec.flavor.name}: Nova gives no extra specs with a '
                      'request, so that limits in them do not hold; those of aggregates and '
                      '[tracon] do', key='extra specs')
        return limits_module.NONE
    return _limits(f'flavor {spec.flavor.name}', spec.flavor.extra_specs or {}, faults,
                   limits_module.of_flavor)


def mode_aggregates(aggregates, mode: int) -> list[str]:
    """Return the names of the aggregates that state the mode of a host, sorted.

    :param aggregates: of the host
    :param mode: :class:`Mode` that holds on it
    :returns: empty when no aggregate states a mode
    """
    return sorted(one.name for one in aggregates if _mode(one.metadata) == mode)


def limit_aggregates(aggregates, response: str, flavor: limits_module.Limits) -> list[str]:
    """Return the names of the aggregates that state a newcomer's limit on a host, sorted.

    :param aggregates: of the host
    :param response: ``slowdown`` or ``iops_ratio``
    :param flavor: limits that the newcomer's flavor states, which come first
    :returns: empty when the flavor states this limit, and when no aggregate does
    """
    limit = operator.attrgetter(_LIMIT_FIELDS[response])
    none = limit(limits_module.NONE)
    stated = [(one.name, limits_module.from_metadata(one.metadata)) for one in aggregates]
    strictest = limit(limits_module.strictest(limits for _name, limits in stated))
    if limit(flavor) != none or strictest == none:
        return []
    return sorted(name for name, limits in stated if limit(limits) == strictest)


def _mode(metadata) -> Mode | None:
    text = metadata.get(MODE_KEY)
    return None if text is None else MODES.get(text.strip().lower())


def _rules(aggregate, faults: log_once.FaultLog) -> Rules:
    metadata = aggregate.metadata
    text, mode = metadata.get(MODE_KEY), _mode(metadata)
    if text is not None and mode is None:
        faults.report('metadata', f'aggregate {aggregate.name}: {MODE_KEY}={text!r}: expected one '
                                  f'of {", ".join(MODES)}; it counts as unset')
    limits = _limits(f'aggregate {aggregate.name}', metadata, faults)
    if mode is None and limits == limits_module.NONE:
        return _NOTHING
    return Rules(mode, limits)


def _limits(where: str, metadata, faults: log_once.FaultLog,
            read=limits_module.from_metadata) -> limits_module.Limits:
    invalid: list[str] = []
    limits = read(metadata, invalid)
    for text in invalid:
        faults.report('metadata', f'{where}: {text}; it counts as unset')
    return limits
