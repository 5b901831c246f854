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

"""Checks of what the services of a cloud answered."""

from __future__ import annotations

import collections
import dataclasses
import re
from typing import Any, Iterator, Mapping

from tracon_watcher.doctor import configuration
from tracon_watcher.doctor import findings
from tracon_watcher.doctor.findings import error
from tracon_watcher.doctor.findings import Finding
from tracon_watcher.doctor.findings import warning
from tracon_watcher.engine import state
from tracon_watcher import errors
from tracon_watcher.inventory import listing
from tracon_watcher.messaging import nova as notifications
from tracon_watcher.placement import limits

#: First microversion of Nova's that the engine can list servers with.
MICROVERSION = (2, 98)
MODES = ('off', 'advise', 'weigh', 'enforce')
STRATEGY = 'tracon_interference'
#: Of oslo.messaging's own, without a pool: it needs no reader.
SPARE_QUEUE = f'{notifications.TOPIC}.info'
# Seconds by which clocks may differ: less does not show beside the time that requests take.
_CLOCKS = 5.0
# Polls, and seconds, after which a host's last sample is old; the store takes its time.
_OLD_POLLS, _OLD_SECONDS = 4, 30.0
_COARSE = 1.5
_MANY_MESSAGES = 10000
_LOOK = 'see whether it runs and can be reached, and its log'
_LAYERS = re.compile(r'HTTPS?ConnectionPool\(.*?(\[Errno -?\d+\] [^\'")]+).*')
_NTP = 'let all hosts take their time from the same NTP servers, and see whether they do'
# Strategies of Watcher's that move no VM.
_MOVING_NONE = frozenset(('dummy', 'dummy_with_resize', 'dummy_with_scorer', 'saving_energy',
                          'storage_capacity_balance'))
# Activities of the engine without which nothing is judged, and what the others are for.
_VITAL = frozenset(('lead', 'list', 'collect'))
_REMEDIES = {'listen': 'see the log of tracon-engine, and what its broker\'s user may do',
             'list': 'see the log of tracon-engine, and whether Nova and Cinder answer',
             'collect': 'see the log of tracon-engine, and whether telemetry answers'}


@dataclasses.dataclass(frozen=True)
class Answer:
    """What a service answered at its root.

    :param name: what an operator calls it
    :param trouble: why it cannot be used; None where it can
    :param remedy: what to do then
    :param vital: whether hosts are judged by nothing without it
    :param ahead: seconds by which its clock is ahead of this machine's; None where it says no time
    """

    name: str
    trouble: str | None = None
    remedy: str = _LOOK
    vital: bool = True
    ahead: float | None = None


@dataclasses.dataclass(frozen=True)
class Samples:
    """Samples of the clocks of hosts.

    :param age: seconds since the last sample, by host; negative where its time is yet to come
    :param interval: seconds between two polls, the median; None where there are too few
    :param span: seconds that were looked at
    :param asked: what was asked for, and of whom
    """

    age: Mapping[str, float]
    interval: float | None
    span: float
    asked: str = dataclasses.field(default='', compare=False)


@dataclasses.dataclass(frozen=True)
class Queue:
    """A queue of the message broker: messages in it, and consumers."""

    messages: int
    consumers: int


def services(answers: tuple[Answer, ...]) -> Iterator[Finding]:
    """Yield the services that do not answer."""
    for one in answers:
        if one.trouble is not None:
            yield (error if one.vital else warning)(
                'services', f'{one.name}: {one.trouble}', one.remedy)


def clocks(answers: tuple[Answer, ...]) -> Iterator[Finding]:
    """Yield the services whose clocks are apart from this machine's."""
    for one in answers:
        if one.ahead is not None and abs(one.ahead) > _CLOCKS:
            yield warning('clocks', f'the clock of {one.name} is {abs(one.ahead):.0f} s '
                          f'{"ahead of" if one.ahead > 0 else "behind"} this machine\'s', _NTP)


def sample_clocks(samples: Samples) -> Iterator[Finding]:
    """Yield the hosts whose samples are from the future."""
    early = [host for host, age in samples.age.items() if age < -_CLOCKS]
    if early:
        yield warning('clocks', f'samples of {findings.some(early)} are from the future: these '
                      'clocks are ahead of this machine\'s', _NTP)


def permissions(roles: frozenset[str], servers: tuple[Mapping[str, Any], ...]
                ) -> Iterator[Finding]:
    """Yield what the engine's user may not see of VMs.

    :param servers: as Nova lists those of all projects to the engine's user, one at most
    """
    remedy = ('give the user of [service_auth] the role admin, or allow it {} in Nova\'s '
              'policy.yaml')
    for what, policy in filter(None, map(listing.hidden, servers)):
        yield error('permissions', f'the engine\'s user may not see {what}',
                    remedy.format(policy))
    if not servers and 'admin' not in roles:
        yield Finding(findings.Severity.UNKNOWN, 'permissions', 'there is no VM to see whether '
                      'the engine\'s user, without the role admin, may see its host',
                      remedy.format('os_compute_api:os-extended-server-attributes'))


def versions(microversion: tuple[int, ...]) -> Iterator[Finding]:
    """Yield whether Nova's API is too old."""
    if microversion < MICROVERSION:
        yield error('versions', f'Nova knows microversion {_dotted(microversion)}, the engine '
                    f'needs {_dotted(MICROVERSION)}', 'upgrade Nova to 2025.1 or later')


def packages(unfit: tuple[str, ...]) -> Iterator[Finding]:
    """Yield installed packages that are older than what was tested."""
    for one in unfit:
        yield warning('versions', one, 'upgrade the package; older ones were not tested')


def extra_specs(validated: bool) -> Iterator[Finding]:
    """Yield whether Nova's API takes any value for a limit."""
    if not validated:
        yield warning('extra specs', 'Nova\'s API takes any value for tracon:max_slowdown: an '
                      'invalid limit counts as none', 'install tracon-watcher for the Python that '
                      'runs nova-api (entry point nova.api.extra_spec_validators); restart it')


def telemetry(samples: Samples, hosts: frozenset[str], engine: configuration.Engine
              ) -> Iterator[Finding]:
    """Yield where samples of hosts are missing, old or rarer than the engine is told.

    :param hosts: that are enabled and up
    """
    subject, polling = 'telemetry', engine.polling_seconds
    missing = hosts - samples.age.keys()
    remedy = ('see there whether ceilometer-polling runs with the source tracon of polling.yaml '
              'and finds the package; then the pipeline and its resource definitions')
    if missing:
        came = ''
        if missing == hosts and samples.age:
            came = (f'; samples came of {findings.some(samples.age)}, which are no names of hosts '
                    'of Nova\'s that are up')
            remedy = 'let [DEFAULT] host of ceilometer.conf be that of nova.conf on each host'
        elif missing == hosts and samples.asked:
            came = f'; {samples.asked}'
        yield (error if missing == hosts else warning)(
            subject, f'no sample for {samples.span:.0f} s of {len(missing)} of {len(hosts)} '
            f'hosts: {findings.some(missing)}{came}', remedy)
    old = {host: age for host, age in samples.age.items()
           if host in hosts and age > max(_OLD_POLLS * polling, _OLD_SECONDS)}
    if old:
        yield warning(subject, f'the last sample of {len(old)} of {len(hosts)} hosts is up to '
                      f'{max(old.values()):.0f} s old: {findings.some(old)}', remedy)
    if samples.interval is not None and samples.interval > _COARSE * polling:
        yield warning(subject, f'hosts are polled every {samples.interval:.0f} s, [engine] '
                      f'polling_interval_seconds says {polling:g}: rates come late, or never',
                      'state the same interval in polling.yaml and in tracon.conf')


def health(found: Mapping[str, Any], engine: configuration.Engine) -> Iterator[Finding]:
    """Yield what the engine says of itself.

    :param found: what it answers at /healthz
    """
    for name, works in found['checks'].items():
        if not works:
            yield (error if name in _VITAL else warning)(
                'engine', f'its activity "{name}" fails',
                _REMEDIES.get(name, 'see the log of tracon-engine'))
    if found['view'] is None:
        yield error('engine', 'it has collected nothing: it has just started, or it waits while '
                    'another engine leads', 'wait two polling intervals; of several engines let '
                    'the endpoint lead to the one whose /healthz/ready answers 200')
    elif found['view']['age_seconds'] > engine.maximum_age_seconds:
        yield error('engine', f'its latest telemetry is {found["view"]["age_seconds"]:.0f} s old, '
                    f'beyond maximum_age_seconds {engine.maximum_age_seconds:g}: all is unknown',
                    _REMEDIES['collect'])


def hosts_judged(judged: tuple[Mapping[str, Any], ...], hosts: frozenset[str]
                 ) -> Iterator[Finding]:
    """Yield the hosts that the engine cannot judge, by the reason; host types come apart.

    :param judged: as the engine lists hosts
    :param hosts: that are enabled and up
    """
    by_status = collections.defaultdict(set)
    for one in judged:
        if one['name'] in hosts:
            by_status[one['status']].add(one['name'])
    unlisted = hosts - {one['name'] for one in judged}
    if judged and unlisted:
        by_status['unknown_host'] |= unlisted
    for status, names in sorted(by_status.items()):
        # A VM that has just come has no profile yet: that goes by itself.
        fresh = status == 'unknown_profile' and 2 * len(names) < len(hosts)
        if status not in ('known', 'drifted', 'unknown_cores') and not fresh:
            yield (error if names == hosts else warning)(
                'hosts', f'{len(names)} of {len(hosts)} are not judged ({status}): '
                f'{findings.some(names)}', 'see the log of tracon-engine, and the telemetry of '
                'these hosts and their VMs')


def host_types(types: tuple[Mapping[str, Any], ...]) -> Iterator[Finding]:
    """Yield the host types that cannot be judged, and hosts without one beside others."""
    for one in types:
        name = one['host_type'] or 'of hosts that state none'
        if one['status'] == 'unknown_cores':
            yield error('host types', f'type {name}: Nova does not tell the cores of its '
                        f'{one["hosts"]} hosts, which are not judged', 'allow the engine\'s user '
                        'os_compute_api:os-hypervisors:list-detail in Nova\'s policy.yaml')
        elif one['status'] == 'drifted':
            yield warning('host types', f'type {name}: predictions and observations '
                          f'differ too much: its {one["hosts"]} hosts are not judged', 'see '
                          '"openstack interference host type list"; give hosts that differ '
                          'types that differ')
    untyped = sum(one['hosts'] for one in types if not one['host_type'])
    if untyped and len(types) > 1:
        yield warning('host types', f'{untyped} hosts are of no type while others are: what is '
                      'learnt of them is learnt of all together', f'set {state.HOST_TYPE} of '
                      'their aggregate, or [engine] default_host_type')


def aggregates(found: tuple[Mapping[str, Any], ...]) -> Iterator[Finding]:
    """Yield metadata of aggregates that counts as unset, and hosts with two host types."""
    types = collections.defaultdict(set)
    for one in found:
        faults: list[str] = []
        limits.from_metadata(one['metadata'], faults)
        stated = one['metadata'].get('tracon:mode', MODES[0])
        if stated.strip().lower() not in MODES:
            faults.append(f'tracon:mode={stated!r}: expected one of {", ".join(MODES)}')
        for text in faults:
            what, _colon, remedy = text.partition(': ')
            yield warning('aggregates', f'{one["name"]}: {what} counts as unset', remedy)
        for host in one['hosts']:
            if one['metadata'].get(state.HOST_TYPE):
                types[host].add(one['metadata'][state.HOST_TYPE])
    for host, names in sorted(types.items()):
        if len(names) > 1:
            yield warning('aggregates', f'host {host} has the host types {findings.some(names)} '
                          'in different aggregates', f'state one {state.HOST_TYPE}')


def audits(found: tuple[Mapping[str, Any], ...] | None) -> Iterator[Finding]:
    """Yield audits that move VMs again and again beside the one that ends interference.

    :param found: all audits; None without Watcher
    """
    running = [one for one in found or () if one['audit_type'] == 'CONTINUOUS'
               and one['state'] in ('PENDING', 'ONGOING')]
    own = [one['name'] for one in running if one['strategy_name'] == STRATEGY]
    if len(own) > 1:
        yield warning('audits', f'{len(own)} continuous audits have the strategy {STRATEGY}: '
                      f'{findings.some(own)}', 'keep one, cancel the others; or give each a '
                      'scope of its own')
    for one in running:
        if one['strategy_name'] not in {STRATEGY, *_MOVING_NONE}:
            acts = 'moves VMs' if one['auto_trigger'] else 'recommends moves'
            yield warning('audits', f'the continuous audit {one["name"]} ({one["strategy_name"]}) '
                          f'{acts} without regard to interference', 'cancel it, or give it a '
                          'scope without the hosts that the interference audit covers')


def queues(found: Mapping[str, Queue | None], engine: configuration.Engine) -> Iterator[Finding]:
    """Yield what is wrong with the queues of Nova's notifications.

    :param found: by name; None for one that there is not, all of them where it is not RabbitMQ
    """
    own, spare = found.get(notifications.POOL), found.get(SPARE_QUEUE)
    if own is not None and engine.notifications:
        if not own.consumers:
            yield warning('notifications', f'the queue {notifications.POOL} has no reader',
                          'see whether tracon-engine runs, and what /healthz says of "listen"')
        elif own.consumers > 1:
            yield warning('notifications', f'{own.consumers} read the queue {notifications.POOL}: '
                          'each gets a part of the notifications', 'let the engine that leads '
                          'alone read it; give other clouds a virtual host of their own')
    if spare is not None and not spare.consumers and spare.messages > _MANY_MESSAGES:
        yield warning('notifications', f'{spare.messages} messages wait in {SPARE_QUEUE}, which '
                      'has no reader', 'bound it with a policy of RabbitMQ\'s (max-length), and '
                      'purge it')


def nothing(_fact: object) -> Iterator[Finding]:
    """Yield nothing: that the fact could be read is all there is to see."""
    return iter(())


def _dotted(numbers: tuple[int, ...]) -> str:
    return '.'.join(map(str, numbers))


def parse_error(raised: BaseException) -> tuple[str, str]:
    """Return what an error says is wrong, and the remedy that it names."""
    # Of layers of errors about a connection the innermost says why.
    text = _LAYERS.sub(r'\1', ' '.join(str(raised).split())) or type(raised).__name__
    if not isinstance(raised, errors.TraconError):
        return text, _LOOK
    stated = getattr(raised, 'remedy', None)
    if stated and text.endswith(stated):
        return text.removesuffix(stated).rstrip(': '), stated
    what, _colon, remedy = text.rpartition(': ')
    # A colon within parentheses is part of what is wrong.
    return (what, remedy) if what and remedy.count('(') == remedy.count(')') else (text, _LOOK)
