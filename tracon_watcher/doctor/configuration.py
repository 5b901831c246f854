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

"""Checks of configuration files: those of nova-scheduler, of Watcher and of the engine."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Iterator, Mapping

from tracon_watcher.doctor import findings
from tracon_watcher.doctor.findings import error
from tracon_watcher.doctor.findings import Finding
from tracon_watcher.doctor.findings import warning

FILTER = 'nova_filters.interference_filter.InterferenceFilter'
WEIGHER = 'nova_filters.interference_weigher.InterferenceWeigher'
ALL_FILTERS = 'nova.scheduler.filters.all_filters'
ALL_WEIGHERS = 'nova.scheduler.weights.all_weighers'
TOPIC = 'versioned_notifications'

#: Part of the weigher's weight that a breach costs, and that one VM costs which becomes slower by
#: 1 %. A unit test compares both, and the factor, with what nova_filters does.
BREACH = 0.5
LITTLE_HARM = 0.5 * (1 - 1 / (1 + math.log(1.01) / 3))
#: Factor on weights when all hosts would be refused.
DECISIVE = 1000.0
#: Of the others' sum; as the default of 40 is of the eight weighers that Nova has on by default.
_AMPLE = 5.0
#: Polls that data must live for, so that one lost poll makes nothing stale.
_POLLS = 3


@dataclasses.dataclass(frozen=True)
class Broker:
    """A message broker as ``transport_url`` names it.

    :param driver: of oslo.messaging, such as ``rabbit``
    :param shown: host, port and virtual host, without a password
    :param hosts: addresses with ports; names are resolved where they can be
    """

    driver: str
    shown: str
    hosts: frozenset[str]
    virtual_host: str

    def differs(self, other: Broker) -> bool:
        """Return whether both cannot be the same broker; its users are not compared."""
        return ((self.driver, self.virtual_host) != (other.driver, other.virtual_host)
                or not self.hosts & other.hosts)


@dataclasses.dataclass(frozen=True)
class Plugin:
    """The group ``[tracon]`` of nova.conf or watcher.conf.

    :param broker: on which snapshots are awaited
    :param snapshot_there: whether the file of a snapshot exists; None where none is needed
    :param options: of ``[oslo_messaging_rabbit]`` that engine, Nova and Watcher must share
    """

    snapshot_source: str
    snapshot_file: str
    broker: Broker
    snapshot_there: bool | None = None
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Nova:
    """What nova-scheduler reads of nova.conf.

    :param multipliers: of Nova's own weighers that stretch their weights from 0 to 1, by option
    :param penalties: of Nova's weighers that stand above all others, by option
    :param drivers: of notifications
    :param topics: of versioned notifications
    :param notified: broker that notifications go to
    """

    enabled_filters: tuple[str, ...]
    available_filters: tuple[str, ...]
    weight_classes: tuple[str, ...]
    multipliers: Mapping[str, float]
    penalties: Mapping[str, float]
    mode: str
    on_all_refused: str
    weight_multiplier: float
    plugin: Plugin
    notification_format: str
    drivers: tuple[str, ...]
    topics: tuple[str, ...]
    exchange: str
    notified: Broker


@dataclasses.dataclass(frozen=True)
class Engine:
    """What the engine reads of tracon.conf.

    :param polling_seconds: between two polls, as the engine is told
    :param granularity_seconds: of what is read from Gnocchi; None where it is the polling's
    :param calibration: what is wrong with the calibration file; None for nothing
    :param options: as in :class:`Plugin`
    """

    polling_seconds: float
    maximum_age_seconds: float
    granularity_seconds: float | None
    calibration: str | None
    notifications: bool
    nova_exchange: str
    broker: Broker
    notified: Broker
    options: Mapping[str, Any]


def filters(nova: Nova) -> Iterator[Finding]:
    """Yield what keeps the filter, or any filter, from being asked."""
    subject, own = 'filter', FILTER.rpartition('.')[2]
    known = {path.rpartition('.')[2] for path in nova.available_filters}
    if own not in nova.enabled_filters:
        yield error(subject, f'{own} is not in enabled_filters: no host is ever refused',
                    f'add {own} to [filter_scheduler] enabled_filters, as the last')
    else:
        if own not in known:
            yield error(subject, f'{own} is enabled and not available: nova-scheduler does not '
                        'start', f'add available_filters = {FILTER} to [filter_scheduler]')
        if nova.enabled_filters[-1] != own:
            yield warning(subject, f'{own} is not the last of enabled_filters: filters after it '
                          'may refuse all hosts that it has left',
                          f'put {own} at the end of [filter_scheduler] enabled_filters')
    lost = [name for name in nova.enabled_filters if name not in known and name != own]
    if ALL_FILTERS not in nova.available_filters and lost:
        yield error(subject, f'{ALL_FILTERS} is not in available_filters, so that nova-scheduler '
                    f'does not find {findings.some(lost)} and does not start',
                    f'add available_filters = {ALL_FILTERS} to [filter_scheduler]')


def weigher(nova: Nova) -> Iterator[Finding]:
    """Yield what keeps the weigher from having an effect, or from leaving the others one.

    Nova stretches the weights of each other weigher from 0 to 1, and so do differences of hosts
    count their multiplier at most. Their multipliers in metadata of aggregates are not looked at.
    """
    subject, own = 'weigher', nova.weight_multiplier
    # With the mode "weigh" there is nothing else that acts.
    bad = error if nova.mode == 'weigh' else warning
    if WEIGHER not in nova.weight_classes:
        yield bad(subject, 'InterferenceWeigher is not in weight_classes: hosts with less harm '
                  'are not preferred', f'add {WEIGHER} to [filter_scheduler] weight_classes')
        return
    if not any(one.startswith('nova.scheduler.weights.') for one in nova.weight_classes):
        yield warning(subject, f'{ALL_WEIGHERS} is not in weight_classes: Nova\'s own weighers '
                      'are off', f'add {ALL_WEIGHERS} to [filter_scheduler] weight_classes')
    if own <= 0:
        yield bad(subject, f'weight_multiplier is {own:g}: hosts with less harm are ' + (
            'avoided' if own else 'not preferred'),
            'remove [tracon] weight_multiplier, which is 40 by default')
        return
    others = {name: abs(value) for name, value in nova.multipliers.items()
              if ALL_WEIGHERS in nova.weight_classes}
    total = sum(others.values())
    if total > BREACH * own:
        largest = max(others, key=lambda name: others[name])
        yield bad(subject, f'other weighers outvote it: together they count {total:g} '
                  f'({largest} {others[largest]:g}), a breach {BREACH * own:g}',
                  f'set [tracon] weight_multiplier to {_AMPLE * total:g}, or lower the others')
    elif 0 < total < LITTLE_HARM * own:
        yield warning(subject, f'it outvotes all others: with weight_multiplier {own:g}, one VM '
                      f'that becomes 1 % slower counts {LITTLE_HARM * own:.3g}, all other '
                      f'weighers together {total:g}',
                      f'set [tracon] weight_multiplier to {_AMPLE * total:g} or so')
    for name, value in nova.penalties.items():
        if nova.on_all_refused == 'least_harm' and 0 < value < DECISIVE * own:
            yield warning(subject, f'when all hosts would be refused its weights count up to '
                          f'{DECISIVE * own:g}, more than {name} {value:g}',
                          f'lower [tracon] weight_multiplier below {value / DECISIVE:g}')


def mode(nova: Nova, aggregates: tuple[Mapping[str, Any], ...]) -> Iterator[Finding]:
    """Yield whether the judgement is switched off everywhere."""
    stated = {one['metadata'].get('tracon:mode', 'off').strip().lower() for one in aggregates}
    if nova.mode == 'off' and stated <= {'off'}:
        yield error('mode', 'mode is off, and no aggregate states another tracon:mode: nothing '
                    'is judged', 'set [tracon] mode of nova.conf to advise, weigh or enforce')


def snapshots(nova: Nova, watcher: Plugin | None, engine: bool) -> Iterator[Finding]:
    """Yield where Nova and Watcher judge by no snapshot, or by different ones.

    :param engine: whether there is a tracon.conf
    """
    subject = 'snapshot'
    for name, one in (('nova-scheduler', nova.plugin), ('Watcher', watcher)):
        if one is not None and one.snapshot_source == 'file':
            if engine:
                yield error(subject, f'{name} reads the file {one.snapshot_file}, not the engine',
                            f'set [tracon] snapshot_source = engine for {name}')
            elif not one.snapshot_there:
                yield error(subject, f'{name} reads {one.snapshot_file}, which is not there',
                            'write it with "tracon snapshot build", or set [tracon] '
                            'snapshot_source = engine')
    if watcher is not None and watcher.snapshot_source != nova.plugin.snapshot_source:
        yield warning(subject, f'nova-scheduler judges by {nova.plugin.snapshot_source}, Watcher '
                      f'by {watcher.snapshot_source}: they may disagree',
                      'state the same [tracon] snapshot_source in nova.conf and watcher.conf')


def notifications(nova: Nova, engine: Engine) -> Iterator[Finding]:
    """Yield what keeps Nova's notifications from the engine, where it wants them."""
    subject = 'notifications'
    if not engine.notifications:
        return
    off = 'changes are seen with the next full listing only'
    if nova.notification_format == 'unversioned':
        yield warning(subject, f'Nova sends no versioned notifications: {off}',
                      'set [notifications] notification_format = both on all hosts of Nova')
    if not set(nova.drivers) - {'noop'}:
        yield warning(subject, f'Nova sends no notifications: {off}', 'set '
                      '[oslo_messaging_notifications] driver = messagingv2 on all hosts of Nova')
    if TOPIC not in nova.topics:
        yield warning(subject, 'Nova sends versioned notifications to '
                      f'{findings.some(nova.topics)}, the engine listens to {TOPIC}: {off}',
                      f'add {TOPIC} to [notifications] versioned_notifications_topics')
    if nova.exchange != engine.nova_exchange:
        yield warning(subject, f'Nova publishes to the exchange {nova.exchange}, the engine '
                      f'listens to {engine.nova_exchange}: {off}',
                      f'set [engine] nova_exchange = {nova.exchange} in tracon.conf')
    if nova.notified.differs(engine.notified):
        yield warning(subject, f'Nova sends notifications to {nova.notified.shown}, the engine '
                      f'listens to {engine.notified.shown}: {off}',
                      'set [oslo_messaging_notifications] transport_url of tracon.conf as Nova')


def brokers(nova: Nova, engine: Engine, watcher: Plugin | None) -> Iterator[Finding]:
    """Yield where the engine cannot be heard, since options of the broker differ."""
    for file, one in (('nova.conf', nova.plugin), ('watcher.conf', watcher)):
        if one is None or one.snapshot_source != 'engine':
            continue
        if one.broker.differs(engine.broker):
            yield error('broker', f'{file} names the broker {one.broker.shown}, tracon.conf '
                        f'{engine.broker.shown}: no snapshot arrives',
                        f'set [tracon] transport_url in {file} to the broker of tracon.conf')
        different = [f'{name} ({one.options[name]}, tracon.conf {engine.options[name]})'
                     for name in sorted(one.options.keys() & engine.options.keys())
                     if one.options[name] != engine.options[name]]
        if different and engine.broker.driver == one.broker.driver == 'rabbit':
            yield error('broker', f'[oslo_messaging_rabbit] of {file} differs from tracon.conf in '
                        f'{"; ".join(different)}: RabbitMQ refuses one of them',
                        'copy these options from nova.conf; then stop all and delete the '
                        'exchanges and queues of tracon')


def intervals(engine: Engine) -> Iterator[Finding]:
    """Yield intervals of the engine that do not fit each other, and an unfit calibration."""
    subject, polling = 'engine', engine.polling_seconds
    if engine.maximum_age_seconds < _POLLS * polling:
        yield warning(subject, f'maximum_age_seconds is {engine.maximum_age_seconds:g}, less than '
                      f'{_POLLS} polling intervals of {polling:g} s: data are stale at once',
                      f'set [engine] maximum_age_seconds to {15 * polling:g}')
    if engine.granularity_seconds is not None and engine.granularity_seconds > polling:
        yield warning(subject, f'granularity_seconds is {engine.granularity_seconds:g}, coarser '
                      f'than polling_interval_seconds {polling:g}',
                      'remove [gnocchi] granularity_seconds')
    if engine.calibration is not None:
        yield error(subject, f'the engine does not start: {engine.calibration}',
                    'remove [engine] calibration_file, or make it with "tracon model calibrate"')
