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

"""The first VM on a host: how fast it is, and whether console, clock and telemetry work."""

from __future__ import annotations

import datetime
from typing import Callable, Mapping, Protocol

from tracon_lab.profiling import console
from tracon_lab.profiling import errors
from tracon_lab.profiling import plan
from tracon_lab.profiling import sampling
from tracon_lab.profiling import schedule
from tracon_lab.profiling import site as sites
from tracon_watcher.telemetry import samples

#: Seconds by which a VM's clock may differ from this machine's.
CLOCKS = 30.0
#: Seconds that a VM may take from its creation until it has written its disk once.
BOOTING = 900.0
# Polling intervals, and seconds, that samples may be late.
_LATE = (6, 60.0)
_LEAST_BOOTING = 10.0


class Site(Protocol):
    """What is done in the cloud: :class:`.site.Site`, or a recorded one."""

    host: str

    def boot(self, schedules: Mapping[str, str]) -> None:
        """Boot VMs."""

    def clear(self) -> None:
        """Delete them."""

    def id(self, role: str) -> str:
        """Return a VM's uuid."""
        ...

    def console(self, role: str) -> str:
        """Return what a VM has said."""
        ...

    def others(self) -> list[str]:
        """Return who else is there."""
        ...


def late(polling: float) -> float:
    """Return the seconds after which samples are not waited for any more."""
    return _LATE[0] * polling + _LATE[1]


def calibrate(site: Site, sampler: sampling.Sampling, polling: float,
              clock: Callable[[], float],
              wait: Callable[[float], None]) -> tuple[plan.Speed, float]:
    """Boot one VM alone, and return what it says of its speed, and after how many seconds.

    :param clock: seconds since the epoch
    :raises ProfilingError: when its console, its clock or telemetry of it does not work
    """
    began = clock()
    site.boot({sites.TARGET: schedule.CALIBRATE})
    told = console.Told()
    while told.speed is None:
        wait(1.0)
        text = site.console(sites.TARGET)
        told.add(text)
        if told.failed or (told.speed is None and clock() - began > BOOTING):
            raise silent(site.host, text, told, clock() - began)
    see_clock(site.host, told, began, clock())
    seconds = max(_LEAST_BOOTING, clock() - began)
    _see_samples(site, sampler, polling, began, clock, wait)
    site.clear()
    return told.speed, seconds


def see_clock(host: str, told: console.Told, began: float, now: float) -> None:
    """See that a VM that has become ready since ``began`` has the time that is here.

    :raises ClocksApart: when it has another
    """
    if told.ready is None or not began - CLOCKS <= told.ready <= now + CLOCKS:
        shown = 'nothing' if told.ready is None else _utc(told.ready)
        raise errors.ClocksApart(
            f'the clock of a VM on {host} showed {shown} when it was ready, which was between '
            f'{_utc(began)} and {_utc(now)} by the clock of this machine: both have to show the '
            f'same time within {CLOCKS:.0f} s; let NTP set both')


def silent(host: str, text: str, told: console.Told, passed: float) -> errors.GuestSilent:
    """Return the error for a VM that is not ready.

    :param text: its console
    :param passed: seconds since it was created
    """
    where = f'the VM that measures on {host}'
    if told.failed:
        return errors.GuestSilent(f'{where} says: {"; ".join(told.failed.values())}: its flavor '
                                  f'needs a disk of 1 GiB at least')
    if not text.strip():
        return errors.GuestSilent(
            f'{where} has an empty console after {passed:.0f} s: see whether "openstack console '
            f'log show" works in this cloud, and whether VMs may have kernels of their own '
            f'(kernel_id of images)')
    last = text.strip().splitlines()[-1][-120:]
    return errors.GuestSilent(f'{where} is not ready after {passed:.0f} s; the last line of its '
                              f'console is {last!r}')


def _see_samples(site: Site, sampler: sampling.Sampling, polling: float, since: float,
                 clock: Callable[[], float], wait: Callable[[float], None]) -> None:
    uuid = site.id(sites.TARGET)
    patience = clock() + late(polling)
    reason = 'telemetry has none of its meters'
    while clock() < patience:
        try:
            found = sampler.read(since - polling, clock() + polling)
        except samples.TelemetryUnavailable as error:
            reason = str(error)
        else:
            if found.count(uuid) >= 2:
                return
        wait(max(1.0, polling / 2))
    raise errors.NoSamples(
        f'VM {uuid} on {site.host} has run for {clock() - since:.0f} s, and there are no two '
        f'samples of it: {reason}: see whether ceilometer-polling on that host polls tracon.vm '
        f'every {polling:g} s, and [engine] telemetry')


def _utc(at: float) -> str:
    return datetime.datetime.fromtimestamp(at, datetime.UTC).isoformat(timespec='seconds')
