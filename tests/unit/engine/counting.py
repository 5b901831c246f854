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

"""Synthetic telemetry: VMs whose counters rise at stated rates."""

import dataclasses

import numpy as np

from tracon_watcher.telemetry import meters
from tracon_watcher.telemetry import samples


@dataclasses.dataclass
class _VM:
    rates: dict[str, float]
    counters: dict[str, float]


class Source:
    """A reader whose samples are made as time passes.

    :param polling: seconds between samples
    """

    def __init__(self, polling, now=1_000_000.0):
        self.polling = polling
        self.resolution = 1.0
        self.ahead = 3600.0
        self.now = now
        self.broken = False
        #: Seconds of samples that it is fast enough to answer for.
        self.longest = np.inf
        self._vms = {}
        self._samples = []
        #: Meters that are stored late: of the newest samples they are missing.
        self.late = ()
        self.missing = None

    def vm(self, uuid, reads=0.0, writes=0.0, guest=0.0, host=0.0, delay=0.0,
           latency=1e-4, throttled=None, size=None):
        """Add a VM, or let it do something else.

        :param throttled: seconds a second that its quota keeps it waiting; None: not counted
        :param size: bytes of a request; None: not counted
        """
        rates = {meters.CLOCK.name: 1e9, meters.CPU_GUEST.name: 1e9 * guest,
                 meters.CPU_HOST.name: 1e9 * host, meters.CPU_DELAY.name: 1e9 * delay,
                 meters.READ_REQUESTS.name: reads, meters.WRITE_REQUESTS.name: writes,
                 meters.READ_TIME.name: 1e9 * reads * latency,
                 meters.WRITE_TIME.name: 1e9 * writes * latency}
        if throttled is not None:
            rates[meters.CPU_THROTTLED.name] = 1e9 * throttled
        if size is not None:
            rates.update({meters.READ_BYTES.name: reads * size,
                          meters.WRITE_BYTES.name: writes * size})
        counters = self._vms[uuid].counters if uuid in self._vms else dict.fromkeys(rates, 5e9)
        self._vms[uuid] = _VM(rates, counters)

    def remove(self, uuid):
        del self._vms[uuid]

    def restart(self, uuid):
        """Begin to count again from zero; the host's clock goes on."""
        counters = self._vms[uuid].counters
        for name in counters:
            if name != meters.CLOCK.name:
                counters[name] = 0.0

    def run(self, polls):
        """Let time pass."""
        for _poll in range(polls):
            self.now += self.polling
            for uuid, vm in self._vms.items():
                for name, rate in vm.rates.items():
                    vm.counters[name] += rate * self.polling
                self._samples.append((uuid, self.now, {
                    name: value for name, value in vm.counters.items() if name != self.missing}))

    def read(self, since, until, names):
        if self.broken:
            raise samples.TelemetryUnavailable('the source is broken')
        if min(until, self.now + self.polling) - since > self.longest:
            raise samples.TelemetryUnavailable('the source is too slow')
        chosen = [one for one in self._samples if since <= one[1] < until]
        uuids = sorted({one[0] for one in chosen})
        place = {uuid: index for index, uuid in enumerate(uuids)}
        newest = max((one[1] for one in chosen), default=0.0)
        for index, (uuid, at, counters) in enumerate(chosen):
            if at == newest:
                chosen[index] = uuid, at, {name: value for name, value in counters.items()
                                           if name not in self.late}
        return samples.Readings(
            tuple(uuids), tuple(names), np.array([place[one[0]] for one in chosen], dtype=np.intp),
            np.array([one[1] for one in chosen], dtype=np.float64),
            np.array([[one[2].get(name, np.nan) for name in names] for one in chosen],
                     dtype=np.float64).reshape(-1, len(names)))
