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

"""Load generator of the probes: makes a sensor work and measures how long it takes.

Requests of the connection phase start when they are due, whether or not earlier ones have been
answered, and their times count from then. A generator that waited for answers would send the
fewer requests the slower the sensor is, and leave out those that would have waited longest
(coordinated omission): a sensor that stands still for a second of ten would look as if one request
had been slow, while a tenth of all users would have waited.

The other phases count the time of the work inside the sensor, so that nothing is lost when a
request waits for the one before; they do as many as their time allows, and three at least.
"""

from __future__ import annotations

import asyncio
import collections
import math
import time
from typing import Callable

import aiohttp
import numpy as np

from tracon_watcher.probe import answers
from tracon_watcher.probe import phases
from tracon_watcher.probe import readings

# Of requests; what is lost beyond it makes the mean of the others say too little.
_TOLERATED = 0.01
# Late starts are the generator's fault, and this share of the mean, or these seconds, too much.
# An event loop starts half a millisecond too late by itself.
_LAG_SHARE, _LAG_LEAST = 0.25, 0.002
# The work takes this much less than the answer, at most, if the sensor's clock runs.
_PATH_SHARE, _PATH_SECONDS = 0.5, 0.25
_LARGEST_ANSWER = 4096
#: Fewer make no mean.
LEAST_ANSWERS = 3


def session() -> aiohttp.ClientSession:
    """Return what requests are sent with: a connection each, as many as are due."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, force_close=True), auto_decompress=False,
        cookie_jar=aiohttp.DummyCookieJar())


async def take(client: aiohttp.ClientSession, address: str, secret: bytes, phase: phases.Phase,
               setting: phases.Setting, deadline: float = 10.0,
               report: Callable[[float], None] = lambda share: None) -> readings.Reading:
    """Run one phase.

    :param address: host:port of the sensor
    :param deadline: seconds, of one request
    :param report: called with the share of the phase that has passed
    :raises tracon_watcher.probe.readings.NoReading: when it tells nothing
    :raises tracon_watcher.errors.InvalidOption: when the setting is none
    """
    setting.check(phase)
    run = _Run(client, f'http://{address}', secret, phase, setting, deadline)
    clock = asyncio.get_running_loop().time
    begin = clock()
    try:
        async with asyncio.TaskGroup() as group:
            for index in range(setting.requests):
                due = begin + index / setting.rate
                await asyncio.sleep(max(due - clock(), 0.0))
                if (not phase.from_due and index >= LEAST_ANSWERS
                        and clock() > begin + setting.seconds):
                    break
                task = group.create_task(run.request(index, due))
                if not phase.from_due:
                    await asyncio.wait((task,))
                report(index / setting.requests)
    except ExceptionGroup as failed:
        # One forged answer is enough.
        first = failed.exceptions[0]
        if not isinstance(first, answers.BadAnswer):
            raise
        raise readings.NoReading(first.kind, str(first)) from None
    report(1.0)
    return run.reading(time.time())


class _Run:
    """The requests of one phase."""

    def __init__(self, client: aiohttp.ClientSession, url: str, secret: bytes,
                 phase: phases.Phase, setting: phases.Setting, deadline: float) -> None:
        self._client, self._url, self._secret = client, url, secret
        self._phase, self._setting, self._deadline = phase, setting, deadline
        self._times = np.full(setting.requests, math.nan)
        self._paths: list[float] = []
        self._lags: list[float] = []
        self._lost: collections.Counter[str] = collections.Counter()
        self._last_loss = ''

    async def request(self, index: int, due: float) -> None:
        """Do all the work of one request.

        :raises BadAnswer: when an answer does not count, which no network explains
        """
        clock = asyncio.get_running_loop().time
        self._lags.append(clock() - due)
        total = 0.0
        try:
            async with asyncio.timeout(self._deadline):
                for path, parameter in self._phase.work:
                    total += await self._work(path, parameter)
        except TimeoutError:
            self._lose('late', f'no answer within {self._deadline:g} s')
        except aiohttp.ClientResponseError as error:
            raise answers.BadAnswer('garbage', f'no answer of HTTP: {error.message}') from None
        except aiohttp.ClientConnectorError as error:
            self._lose('unreachable', error.os_error.strerror or str(error))
        except (aiohttp.ClientError, OSError) as error:
            self._lose('unreachable', str(error) or type(error).__name__)
        else:
            self._times[index] = clock() - due if self._phase.from_due else total

    async def _work(self, path: str, parameter: str) -> float:
        clock = asyncio.get_running_loop().time
        asked = answers.target(path, parameter, self._setting.amount)
        sent = clock()
        async with self._client.get(
                self._url + asked, allow_redirects=False,
                headers={answers.SIGNATURE: answers.sign(self._secret, asked.encode())}) as got:
            body = b''
            async for part in got.content.iter_any():
                body += part
                if len(body) > _LARGEST_ANSWER:
                    raise answers.BadAnswer('garbage', f'an answer of more than '
                                                       f'{_LARGEST_ANSWER} bytes')
            elapsed = clock() - sent
            seconds = answers.check(self._secret, asked, got.status, body,
                                    got.headers.get(answers.SIGNATURE, ''), elapsed)
        self._paths.append(elapsed - seconds)
        return seconds

    def _lose(self, reason: str, text: str) -> None:
        self._lost[reason] += 1
        self._last_loss = text

    def reading(self, at: float) -> readings.Reading:
        """Return the reading.

        :raises tracon_watcher.probe.readings.NoReading: when there is none
        """
        lost, count = self._lost.total(), len(self._lags)
        if lost > _TOLERATED * count:
            raise readings.NoReading(
                self._lost.most_common(1)[0][0],
                f'{lost} of {count} requests failed, the last one by: {self._last_loss}')
        lag = float(np.mean(self._lags))
        found = readings.summarise(self._phase, self._setting, at, self._times, lost, lag)
        if self._phase.from_due:
            if lag > max(_LAG_LEAST, _LAG_SHARE * found.mean):
                raise readings.NoReading(
                    'overloaded', f'the generator started requests {lag:.3g} s too late: give it '
                                  f'a core of its own, or fewer sensors')
            return found
        path = float(np.median(self._paths))
        if path > _PATH_SECONDS + _PATH_SHARE * found.mean:
            raise readings.NoReading(
                'lies', f'the sensor says that its work took {found.mean:.3g} s, and its '
                        f'answers came {path:.3g} s later: its clock stands, or the way there '
                        f'is slow')
        return found
