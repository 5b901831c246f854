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

"""Parameters of an audit, as a JSON schema, and its blackout windows."""

from __future__ import annotations

import dataclasses
import datetime
import re
from typing import Any, Iterable, Iterator, Mapping
import zoneinfo

from tracon_watcher.decision_engine import constraints_builder
from tracon_watcher.decision_engine import records
from tracon_watcher import errors
from tracon_watcher.placement import cooldown
from tracon_watcher.placement import plan

NAME = 'blackout_windows'
REMEDY = ('expected "[DAYS ]HH:MM-HH:MM[ ZONE]", such as "Mon-Fri 08:00-18:00 Europe/Berlin", '
          '"Sat,Sun 00:00-24:00" or "22:00-02:00"')
_DAYS = ('Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat', 'Sun')
#: What the JSON schema can tell; it is shown to the operator, and so is short rather than strict.
PATTERN = (f'^((?:{"|".join(_DAYS)}|[,-])+ )?([0-2][0-9]:[0-5][0-9])-([0-2][0-9]:[0-5][0-9])'
           '( [A-Za-z0-9_+/-]+)?$')
#: Windows that follow each other for so long leave no hour of the week.
_LONGEST = datetime.timedelta(days=8)
_DAY_LENGTH = datetime.timedelta(days=1)


@dataclasses.dataclass(frozen=True)
class BlackoutWindow:
    """A span of the day that recurs.

    :param text: as the operator wrote it
    :param days: on which it begins, 0 is Monday
    :param begin: since midnight, by the zone's clocks
    :param end: likewise; a day or more where it passes midnight
    """

    text: str
    days: frozenset[int]
    begin: datetime.timedelta
    end: datetime.timedelta
    zone: datetime.tzinfo

    @classmethod
    def parse(cls, text: str) -> BlackoutWindow:
        """Read what an operator wrote.

        :raises tracon_watcher.errors.InvalidOption: with the remedy
        """
        found = re.fullmatch(PATTERN, text)
        days, begin, end, zone = found.groups() if found else (None, '', '', None)
        try:
            on = frozenset(_days(days.strip()) if days else range(len(_DAYS)))
            first, last = _since_midnight(begin), _since_midnight(end)
        except ValueError:
            raise errors.InvalidOption(NAME, text, REMEDY) from None
        if first >= _DAY_LENGTH or last > _DAY_LENGTH:
            raise errors.InvalidOption(NAME, text, REMEDY)
        if first == last:
            raise errors.InvalidOption(
                NAME, text, 'it ends when it begins: for a whole day, state 00:00-24:00')
        return cls(text, on, first, last if first < last else last + _DAY_LENGTH,
                   _zone(zone.strip(), text) if zone else datetime.timezone.utc)

    def end_after(self, now: datetime.datetime) -> datetime.datetime | None:
        """Return when it ends, where it is open now."""
        today = now.astimezone(self.zone).date()
        # One that passes midnight may have begun yesterday.
        for date in (today, today - _DAY_LENGTH):
            if date.weekday() not in self.days:
                continue
            midnight = datetime.datetime.combine(date, datetime.time())
            begin, end = midnight + self.begin, midnight + self.end
            # Where clocks are set at just that time, it begins early and ends late.
            if min(self._moments(begin)) <= now < (last := max(self._moments(end))):
                return last
        return None

    def _moments(self, local: datetime.datetime) -> Iterator[datetime.datetime]:
        for fold in (0, 1):
            yield local.replace(fold=fold, tzinfo=self.zone).astimezone(datetime.timezone.utc)


def standstill(windows: Iterable[BlackoutWindow], now: float) -> str:
    """Say which window is open now and until when nothing moves; empty where none is.

    :param now: seconds since the epoch
    """
    windows = tuple(windows)
    moment = start = datetime.datetime.fromtimestamp(now, datetime.timezone.utc)
    named: BlackoutWindow | None = None
    while open_now := [(end, window) for window in windows
                       if (end := window.end_after(moment)) is not None]:
        moment, window = max(open_now, key=lambda one: one[0])
        named = named or window
        if moment - start > _LONGEST:
            return (f'blackout window "{named.text}", with no end: together, the windows of '
                    f'{NAME} leave no hour for moves')
    if named is None:
        return ''
    local = moment.astimezone(named.zone)
    return (f'blackout window "{named.text}" until {_DAYS[local.weekday()]} '
            f'{local:%Y-%m-%d %H:%M} {local.tzname()}')


def _since_midnight(text: str) -> datetime.timedelta:
    hours, minutes = text.split(':')
    return datetime.timedelta(hours=int(hours), minutes=int(minutes))


def _days(text: str) -> Iterator[int]:
    """Yield days; Fri-Mon are four."""
    for some in text.split(','):
        begin, dash, end = some.partition('-')
        first, last = _DAYS.index(begin), _DAYS.index(end if dash else begin)
        yield from ((first + place) % len(_DAYS)
                    for place in range((last - first) % len(_DAYS) + 1))


def _zone(name: str, text: str) -> datetime.tzinfo:
    if name == 'UTC':
        # Also where there is no database of time zones.
        return datetime.timezone.utc
    try:
        return zoneinfo.ZoneInfo(name)
    # The name of a folder, or one that leads out of it, is none of a zone either.
    except (KeyError, ValueError, OSError):
        raise errors.InvalidOption(
            NAME, text, f'this machine knows no time zone {name}: state one of the IANA time zone '
            'database, such as Europe/Berlin, or none for UTC; if there is such a zone, install '
            'the package tzdata where the decision engine runs') from None


_DEFAULT = plan.Parameters()
#: What may be done to background VMs; all but the first are actions of Watcher's.
BACKGROUND = 'background_action'
KEEP, *ACTIONS = ('none', 'stop', 'shelve', 'delete')
#: Hosts of which an audit tells what it left.
_EXPLAINED = 20

# Python's json module reads NaN, which passes every "minimum" and "maximum". Only NaN passes two
# that contradict each other.
_FINITE: dict[str, Any] = {'type': 'number', 'not': {
    'description': 'NaN, which is no number: state a finite one, or leave the parameter out',
    'minimum': 1, 'maximum': 0}}

#: Draft 4, as Watcher validates it. Watcher itself refuses parameters that are not named here.
SCHEMA: dict[str, Any] = {
    'properties': {
        'max_migrations': {
            'description': 'Live migrations in one action plan at most.',
            'type': 'integer', 'minimum': 1, 'maximum': 1000,
            'default': _DEFAULT.max_migrations},
        'min_gain': {
            'description': 'What a migration must bring beyond its cost: the sum over all VMs of '
                           'log slowdown and -log IOPS ratio must fall by more. 0.05 is one VM '
                           'becoming 5 % faster.',
            **_FINITE, 'minimum': 0, 'maximum': 100, 'default': _DEFAULT.min_gain},
        'migration_cost': {
            'description': 'What a live migration costs, in the same unit. The default is two '
                           'minutes at half speed for the VM and two neighbours, spread over '
                           'an hour.',
            **_FINITE, 'minimum': 0, 'maximum': 100, 'default': _DEFAULT.migration_cost},
        'noise': {
            'description': 'By which share profiles may be off though no VM has changed: a '
                           'migration that ends no breach must bring more than this could '
                           'feign. Larger where telemetry is coarse; 0 where it is exact.',
            **_FINITE, 'minimum': 0, 'maximum': 1, 'default': 0.1},
        'cooldown_seconds': {
            'description': 'Seconds for which a VM stays where it is after a migration, '
                           'regardless of who ordered it, and after a migration of '
                           'Watcher\'s that failed. Each further migration within a day '
                           'doubles them, up to six hours.',
            **_FINITE, 'minimum': 0, 'maximum': 2592000, 'default': cooldown.FIRST},
        'excluded_projects': {
            'description': 'Ids of projects whose VMs stay where they are.',
            'type': 'array', 'items': {'type': 'string', 'minLength': 1}, 'default': []},
        NAME: {
            'description': 'Hours in which nothing moves: audits still judge and tell what they '
                           'find. UTC, unless a window names a time zone.',
            'type': 'array', 'items': {
                'description': REMEDY, 'type': 'string', 'pattern': PATTERN},
            'default': []},
        'opt_out_key': {
            'description': 'A VM with this key in its metadata stays where it is, unless the '
                           'value says no (false, no, off, 0).',
            'type': 'string', 'minLength': 1, 'default': 'tracon:exclude'},
        BACKGROUND: {
            'description': 'What is done to background VMs (tracon:class=background) where a '
                           'VM of the foreground is in breach, no migration ends that, and the '
                           'background VM leaving its host does: none, or an action of '
                           'Watcher\'s: stop, shelve or delete.',
            'type': 'string', 'enum': [KEEP, *ACTIONS], 'default': KEEP},
        'request_age_seconds': {
            'description': 'Seconds for which background VMs may be removed for a request of the '
                           'foreground that found no host, if background_action frees room: '
                           'shelve or delete. 0: none is removed for requests.',
            **_FINITE, 'minimum': 0, 'maximum': 86400, 'default': 900.0},
        'confidence': {
            'description': 'Probability of the one-sided bound that must cross a limit before '
                           'this counts as a breach.',
            **_FINITE, 'minimum': 0.5, 'maximum': 0.975, 'default': 0.8},
        'snapshot_file': {
            'description': 'A file with the snapshot to judge by. Empty: what the options of '
                           'group [tracon] in watcher.conf say.',
            'type': 'string', 'default': ''},
    },
}


@dataclasses.dataclass(frozen=True)
class Audit:
    """The parameters, each where it belongs."""

    planning: plan.Parameters
    wishes: constraints_builder.ConstraintParameters
    confidence: float
    snapshot_file: str
    background_action: str

    @classmethod
    def of(cls, given: Mapping[str, Any], now: float) -> Audit:
        """Sort validated and completed parameters.

        :param now: seconds since the epoch
        :raises tracon_watcher.errors.InvalidOption: for a blackout window that the schema passes
        """
        windows = [BlackoutWindow.parse(text) for text in given[NAME]]
        return cls(
            plan.Parameters(given['max_migrations'], given['min_gain'], given['migration_cost'],
                            noise=given['noise'], explained=_EXPLAINED,
                            standstill=standstill(windows, now)),
            constraints_builder.ConstraintParameters(frozenset(given['excluded_projects']),
                                                     given['opt_out_key'],
                                                     given['cooldown_seconds'],
                                                     given[BACKGROUND] != KEEP,
                                                     given['request_age_seconds']
                                                     if given[BACKGROUND] in records.FREEING
                                                     else 0.0),
            given['confidence'], given['snapshot_file'], given[BACKGROUND])
