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

"""Blackout windows: hours in which audits move nothing."""

from __future__ import annotations

import dataclasses
import datetime
import re
from typing import Iterable, Iterator
import zoneinfo

from tracon_watcher import errors

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
class Window:
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
    def parse(cls, text: str) -> Window:
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


def standstill(windows: Iterable[Window], now: float) -> str:
    """Say which window is open now and until when nothing moves; empty where none is.

    :param now: seconds since the epoch
    """
    windows = tuple(windows)
    moment = start = datetime.datetime.fromtimestamp(now, datetime.timezone.utc)
    named: Window | None = None
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
